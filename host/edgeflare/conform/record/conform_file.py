"""`conform.json`, the result of a conformance run, read back."""

from __future__ import annotations

from typing import Any, Final

from edgeflare.errors import UserError
from edgeflare.run.json_file import load_json, packaged_schema
from edgeflare.run.run_directory import CONFORM_DOCUMENT, CONFORM_JOURNAL, RunDirectory

SCHEMA: Final = "edgeflare.conform/v1"
"""What the document has under `schema`."""


def holds_conformance(directory: RunDirectory) -> bool:
    """Return whether a run directory is that of a conformance run."""
    return any((directory.path / name).is_file() for name in (CONFORM_DOCUMENT, CONFORM_JOURNAL))


def read_conformance(directory: RunDirectory) -> dict[str, Any]:
    """Return the document of a conformance run.

    Raises:
        UserError: the run was cut off before it was written, or it is damaged.

    """
    path = directory.inside(CONFORM_DOCUMENT)
    if not path.is_file() and (directory.path / CONFORM_JOURNAL).is_file():
        raise UserError(
            f"{directory.path} holds a conformance run that was cut off: go on with it by the same"
            f" `edgeflare conform` with --out {directory.path} --resume, and then show it"
        )
    schema = packaged_schema("edgeflare.conform.record", "conform.schema.json")
    try:
        return load_json(path, schema)
    except UserError as error:
        if not (directory.path / CONFORM_JOURNAL).is_file():
            raise
        raise UserError(
            f"{error}; move it away, and the same `edgeflare conform` with --out {directory.path}"
            " --resume writes it anew"
        ) from error
