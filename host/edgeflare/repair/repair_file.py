"""A `repair.json` that somebody hands over: held to its schema before it is used."""

from __future__ import annotations

from typing import Any

from edgeflare.errors import UserError
from edgeflare.record.json_file import MOST_BYTES, packaged_schema, parse_json
from edgeflare.regular_file import read_regular
from edgeflare.run.run_directory import RunDirectory

DOCUMENT = "repair.json"

SCHEMA = "edgeflare.repair/v2"


def holds_repair(directory: RunDirectory) -> bool:
    """Whether a folder is that of a repair, and not of a run."""
    here = directory.path / DOCUMENT
    return here.is_file() and not directory.document.exists() and not directory.journal.exists()


def read_repair(directory: RunDirectory) -> dict[str, Any]:
    """Return the document of a repair.

    Args:
        directory: the folder that `edgeflare repair` wrote.

    Raises:
        UserError: the file cannot be read, is damaged or of another schema; names it, and the
            place in it.

    """
    path = directory.inside(DOCUMENT)
    try:
        data = read_regular(path, MOST_BYTES)
    except OSError as error:
        raise UserError(f"{path} cannot be read: {error.strerror}") from None
    return parse_json(data, path, packaged_schema("edgeflare.repair", "repair.schema.json"))
