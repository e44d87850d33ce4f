"""A `survey.json` that somebody hands over: held to its schema before it is used."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from edgeflare.errors import UserError
from edgeflare.record.json_file import Schema, load_json, packaged_schema, parse_json
from edgeflare.run.run_directory import SURVEY_DOCUMENT, RunDirectory

WRITTEN_FROM_IT = ("survey.html", "survey.csv", "junit.xml", "summary.md")
"""What `edgeflare report` writes of a survey beside its document."""

SCHEMA = "edgeflare.survey/v1"


def read_survey(directory: RunDirectory) -> dict[str, Any]:
    """Return the document of a survey.

    Args:
        directory: the run directory that `edgeflare survey` wrote.

    Raises:
        UserError: the file cannot be read, is damaged or of another schema; names it, and the
            place in it.

    """
    if not directory.inside(SURVEY_DOCUMENT).is_file():
        raise UserError(
            f"{directory.path} has no {SURVEY_DOCUMENT}: name the run directory of a finished"
            " `edgeflare survey`, or finish it with --resume"
        )
    path = directory.inside(SURVEY_DOCUMENT)
    try:
        return _consistent(load_json(path, _schema()), path)
    except UserError as error:
        raise UserError(f"{error}{_remedy(directory)}") from None


def check_survey(data: bytes, path: Path) -> dict[str, Any]:
    """Return a document that was derived from a journal, held to all that one in a file is held to.

    Args:
        data: the document.
        path: the journal.

    Raises:
        UserError: the journal is damaged; names it, and the place in the document.

    """
    return _consistent(parse_json(data, path, _schema()), path)


def _remedy(directory: RunDirectory) -> str:
    """Say what helps where a document is damaged and its journal is there."""
    if not directory.journal.is_file():
        return ""
    return (
        f"; move it away, and the command that surveyed writes it anew from"
        f" {directory.journal.name} with --out {directory.path} --resume"
    )


def _schema() -> Schema:
    return packaged_schema("edgeflare.survey.record", "survey.schema.json")


def _consistent(document: dict[str, Any], path: Path) -> dict[str, Any]:
    for wrong in _inconsistencies(document):
        raise UserError(f"{path} is damaged: {wrong}")
    return document


_NAMED = {
    "by_condition": ("condition",),
    "by_severity": ("severity",),
    "by_cell": ("condition", "severity"),
    "by_class": ("label",),
    "by_group": ("group",),
    "by_device": ("device",),
}
"""What each slice of a table says that it is the slice of."""


def _inconsistencies(document: Mapping[str, Any]) -> Iterator[str]:
    """Yield what a schema cannot say, each with its place."""
    if not document["by_cell"]["slices"]:
        yield "by_cell.slices is empty, and the unchanged inputs are a cell"
    yield from _wrong_slice(document, "overall", document["overall"], ())
    yield from _wrong_slice(document, "unchanged", document["unchanged"], _NAMED["by_cell"])
    for table, keys in _NAMED.items():
        for at, one in enumerate(document[table]["slices"]):
            yield from _wrong_slice(document, f"{table}.slices[{at}]", one, keys)


def _wrong_slice(
    document: Mapping[str, Any], place: str, one: Mapping[str, Any], keys: Sequence[str]
) -> Iterator[str]:
    for key in keys:
        if one[key] is None:
            yield f"{place}.{key} is null, and it is what the slice is of"
    if document["has_original"] and one["deviation"] is None:
        yield f"{place}.deviation is null, and has_original says that there is one"
    accuracy = one["accuracy"]
    if accuracy is not None and (accuracy["original"] is None) != (accuracy["drop"] is None):
        yield f"{place}.accuracy has one of original and drop, and the other is null"
