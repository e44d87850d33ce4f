"""The table `groups.csv` in a folder of inputs: to which group each file belongs."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from edgeflare.errors import UserError
from edgeflare.outside_text import read_text
from edgeflare.suggestion import suggestion

GROUPS_FILE = "groups.csv"
"""In a folder of inputs: a column `name` with the files' names, and one for each grouping."""

_MOST_BYTES = 2**28
"""Of a table of groups, which may be a stranger's."""


def groups_of_files(folder: Path, names: Sequence[str], column: str) -> list[str]:
    """Return the group of each file, as the table in its folder says it.

    Args:
        folder: of the files.
        names: of the files, without their folder.
        column: of the table.

    Raises:
        UserError: the table cannot be read, has no such column, names a file that is not there or
            gives one two groups, or has none for one of `names`.

    """
    file = folder / GROUPS_FILE
    groups: dict[str, str] = {}
    for name, group in _rows(file, column):
        if groups.setdefault(name, group) != group:
            raise UserError(
                f"--groups {column}: {file} gives {name} two groups, {groups[name]!r} and"
                f" {group!r}: leave one line of it"
            )
    _require_files(folder, groups, column)
    missing = [name for name in names if not groups.get(name)]
    if missing:
        raise UserError(
            f"--groups {column}: {file} gives {missing[0]} no group: expected a line for each file"
        )
    return [groups[name] for name in names]


def no_column(path: Path, column: str, wanted: str, known: Sequence[str]) -> UserError:
    """Return what is said where a column is missing.

    Args:
        path: of the file that should have it.
        column: which the user named.
        wanted: the one that is missing.
        known: those that there are.

    """
    if column.lower().endswith(".csv"):
        return UserError(
            f"--groups {column}: expected the name of a column, of {GROUPS_FILE} in a folder of"
            " inputs or of an array in an .npz, and no file"
        )
    listed = ", ".join(known) or "nothing"
    of = "of that name" if wanted == column else f"{wanted!r}"
    return UserError(
        f"--groups {column}: {path} has no column {of}{suggestion(wanted, known)}; it has {listed}"
    )


def _rows(file: Path, column: str) -> Iterable[tuple[str, str]]:
    """Return the rows of a table: a file's name and its group, without blanks around them."""
    try:
        lines = list(csv.reader(io.StringIO(read_text(file, _MOST_BYTES), newline="")))
    except (OSError, csv.Error):
        raise UserError(
            f"--groups {column}: {file} cannot be read: expected a table with the columns name and"
            f" {column}, and a line for each file"
        ) from None
    header = [cell.strip() for cell in lines[0]] if lines else []
    for wanted in ("name", column):
        if wanted not in header:
            raise no_column(file, column, wanted, header)
        if header.count(wanted) > 1:
            raise UserError(f"--groups {column}: {file} has two columns {wanted!r}: rename one")
    places = header.index("name"), header.index(column)
    for line in lines[1:]:
        if line:
            name, group = (line[at].strip() if at < len(line) else "" for at in places)
            yield name, group


def _require_files(folder: Path, groups: Mapping[str, str], column: str) -> None:
    """Refuse names in a table that no file in its folder has."""
    files = {one.name for one in folder.iterdir()} - {GROUPS_FILE}
    unknown = [name for name in groups if name not in files]
    if unknown:
        left = sorted(files - set(groups))
        like = suggestion(unknown[0], left) or suggestion(unknown[0], sorted(files))
        raise UserError(
            f"--groups {column}: {folder / GROUPS_FILE} names {unknown[0]!r}, and there is no such"
            f" file{like}"
        )
