"""Which names classes are assumed to have, and whether sub-folders of the inputs are labels."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from edgeflare.errors import UserError
from edgeflare.models.associated_files import NO_ARCHIVE
from edgeflare.models.folder_labels import folder_labels
from edgeflare.models.pair_file import Settings
from edgeflare.outside_text import text_of
from edgeflare.regular_file import read_regular
from edgeflare.release.assumptions.assumption import Assumption
from edgeflare.release.assumptions.input_source import GivenInputs

_FILE: Final = "labels.txt"

_MOST_BYTES: Final = 2**20
"""Bytes of a file of class names, at most."""

_SHOWN: Final = 3
"""Names that a note has."""


def assumed_classes(content: bytes, given: GivenInputs, classes: int) -> Assumption:
    """Return the names of classes, by which sub-folders of the inputs are labels.

    They are the first that are as many as the classes: those of a file of labels in the model, of
    `labels.txt` in the folder of the inputs or beside it, or of the sub-folders themselves, in
    alphabetical order.

    Args:
        content: content of the compressed model's file.
        given: what lies where the inputs are.
        classes: how many the model tells apart.

    """
    unlike: list[str] = []
    for file, where in _named(content, given.path):
        try:
            names = tuple(text_of(file, where).rstrip().splitlines())
        except UserError as error:
            unlike.append(f"{error}; until then it is not used")
            continue
        if len(names) == classes:
            note = f"the classes are named by {where}: {_listed(names)}"
            return Assumption(Settings(classes=names), (note, *_labels(given.folders, names)))
        unlike.append(f"{where} has {len(names)} names for {classes} scores, so it is not used")
    return Assumption(notes=tuple(unlike)).beside(_of_folders(given, classes))


def _of_folders(given: GivenInputs, classes: int) -> Assumption:
    """Return the names that sub-folders say."""
    folders = given.folders
    if not folders or (numbers := folder_labels(folders, ())):
        return Assumption(notes=_labels(folders, ())) if folders and numbers else Assumption()
    if len(folders) == classes:
        note = (
            "the inputs have the labels of their sub-folders, whose alphabetical order is that of"
            f" the scores: {_listed(folders)}"
        )
        return Assumption(Settings(classes=folders), (note,))
    return Assumption(
        notes=(
            f"the {len(folders)} sub-folders are no labels, since nothing names the {classes}"
            f" scores: write their names into {given.path / _FILE}, a line for each",
        )
    )


def _labels(folders: Sequence[str], names: Sequence[str]) -> tuple[str, ...]:
    """Return what is said of sub-folders whose names are known, or numbers."""
    if not folders:
        return ()
    known = folder_labels(folders, names)
    if not known:
        return (f"the sub-folders are no labels: {_listed(folders)} are not among these names",)
    others = [folder for folder in folders if folder not in known]
    without = f"; those in {_listed(others)} have none" if others else ""
    return (f"the inputs have the labels of their sub-folders{without}",)


def _named(content: bytes, path: Path) -> Iterator[tuple[bytes, str]]:
    """Yield files of names in a model's own file, then those beside the inputs, and where."""
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as packed:
            for member in packed.infolist():
                if member.filename.endswith(".txt") and member.file_size <= _MOST_BYTES:
                    yield packed.read(member), f"{member.filename} in the model"
    except NO_ARCHIVE:
        pass
    for folder in (path, path.parent):
        try:
            yield read_regular(folder / _FILE, _MOST_BYTES), str(folder / _FILE)
        except (OSError, UserError):
            continue


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return ", ".join(names[:_SHOWN]) + more
