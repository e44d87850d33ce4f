"""The inputs of a survey, and the group that each belongs to.

For a folder of inputs, the table `groups.csv` in it says to which group each file belongs.
"""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from edgeflare.array_file import NotArrays, read_npz
from edgeflare.core.seeds import SeedChoice, Seeds
from edgeflare.errors import UserError, suggestion
from edgeflare.outside_text import read_text
from edgeflare.record.json_types import Count, CountFromOne
from edgeflare.statistics.binomial import exact_interval

LEAST_INPUTS = 30
"""Inputs at least: 0 of 29 leave 12 % possible, which says little of a device."""

MOST_GROUPS = 100
"""Most different values of a grouping column; one with more is likely to tell inputs apart."""

_STARTS = (
    ("there are no seeds at ", "--inputs: there are no inputs at "),
    ("seeds: ", "--inputs: "),
    ("seeds ", "--inputs "),
)
_PHRASES = (
    (" each seed", " each input"),
    (" of seeds,", " of inputs,"),
    (": seed ", ": input "),
    ("give seeds of ", "give inputs of "),
)
"""How complaints about seeds begin and go on, and what they say of the inputs of a survey, which
are loaded as seeds are, by code that speaks of seeds: who surveys has given none."""

_MOST_DIGITS = 20
"""Most digits of a group's name that is a number; Python refuses to read thousands."""


@dataclass(frozen=True, slots=True)
class AskedInputs:
    """The inputs of a survey.

    Attributes:
        path: absolute path, for the pair's own seeds too; may be null.
        count: how many there are.
        sha256: digest of the inputs, unchanged.

    """

    path: str | None
    count: CountFromOne
    sha256: str

    def __str__(self) -> str:
        return f"{self.path} ({self.count} with sha256 {self.sha256[:12]}…)"


@dataclass(frozen=True, slots=True)
class AskedGroups:
    """The groups of a survey's inputs.

    Attributes:
        column: name of the column that holds them.
        names: the groups' names, in their order.
        of_inputs: the place of each input's group in `names`.

    """

    column: str
    names: tuple[str, ...]
    of_inputs: tuple[Count, ...]

    def __str__(self) -> str:
        return f"{self.column} ({', '.join(self.names)})"


def require_enough(path: Path, inputs: Seeds) -> None:
    """Refuse inputs that are too few for a rate."""
    count = len(inputs)
    if count >= LEAST_INPUTS:
        return
    _, high = exact_interval(0, count)
    raise UserError(
        f"{path} gives {count} input{'s' if count != 1 else ''}, too few for a rate: if none of"
        f" them deviated, up to {high:.0%} still could; give {LEAST_INPUTS} or more with --inputs"
    )


@contextmanager
def speaking_of_inputs(*, own_inputs: bool) -> Iterator[None]:
    """Have what refuses seeds within it speak of `--inputs`, unless they are the pair's seeds.

    Raises:
        UserError: what is within it raised one.

    """
    try:
        yield
    except UserError as error:
        if not own_inputs:
            raise
        raise UserError(_complaint_of_inputs(str(error))) from error


def describe_inputs(path: Path, inputs: Seeds) -> AskedInputs:
    """Return what the journal is told of the inputs."""
    return AskedInputs(path=os.path.abspath(path), count=len(inputs), sha256=inputs.sha256)


def read_groups(path: Path, inputs: Seeds, column: str, choice: SeedChoice) -> AskedGroups:
    """Return the groups of inputs.

    Args:
        path: path of the inputs: an `.npz` file with an array of the column's name, a string or an
            integer for each input; or a folder with a file `groups.csv`, which has a column `name`
            for the files' names, of one in a sub-folder `SUB/FILE`, and one of that name.
        inputs: as they were loaded.
        column: name of the column.
        choice: choice of the inputs that were loaded.

    Raises:
        UserError: there is no such column, or it does not give each input a group.

    """
    if path.is_dir():
        values = groups_of_files(path, inputs.names, column)
    else:
        values = _of_inputs(path, inputs, column, choice)
    count = len(inputs)
    if "" in values:
        raise UserError(
            f"--groups {column}: {path} gives input {inputs.names[values.index('')]} an empty word:"
            " expected a group for each"
        )
    names = tuple(sorted(set(values), key=_order))
    if not 2 <= len(names) <= MOST_GROUPS:
        has = (
            f"the inputs have {len(names)} different values" if names[1:] else "all have one value"
        )
        raise UserError(f"--groups {column}: {has} in it: expected 2 to {MOST_GROUPS} groups")
    if len(names) == count:
        raise UserError(
            f"--groups {column}: each of the {count} inputs has a group of its own: expected groups"
            " of several inputs, which can be compared"
        )
    place = {name: at for at, name in enumerate(names)}
    of_inputs = np.array([place[value] for value in values], np.int64)
    return AskedGroups(column, names, tuple(of_inputs.tolist()))


def _order(name: str) -> tuple[bool, int, str]:
    """Order numbers by their size, before words; numbers too long to be any size are words."""
    number = len(name) <= _MOST_DIGITS and name.removeprefix("-").isdecimal()
    return (not number, int(name) if number else 0, name)


def _of_inputs(path: Path, inputs: Seeds, column: str, choice: SeedChoice) -> list[str]:
    """Return the value of each input, whose name says where it is in the file."""
    values, places = _of_file(path, column), [*map(int, inputs.names)]
    if len(values) <= max(places) or (choice.takes_all and len(values) != len(places)):
        raise UserError(
            f"--groups {column}: {path} has {len(values)} value{'s' if len(values) != 1 else ''}"
            f" in it for {max(places) + 1} inputs: expected one for each"
        )
    return [values[place] for place in places]


def _of_file(path: Path, column: str) -> list[str]:
    try:
        archive = read_npz(path, (column,))
    except NotArrays as error:
        raise UserError(
            f"--groups {column}: {path} has no array of strings or integers of that name that can"
            f" be read ({error}): write it with numpy.savez"
        ) from None
    values = archive.arrays.get(column)
    if values is None:
        raise _no_column(path, column, column, archive.names)
    if values.ndim != 1 or values.dtype.kind not in "Uiub":
        raise UserError(
            f"--groups {column}: in {path} it is {values.dtype} {values.shape}: expected a string"
            " or an integer for each input"
        )
    return [str(value).strip() for value in values.tolist()]


def _complaint_of_inputs(complaint: str) -> str:
    for of_seeds, of_inputs in _PHRASES:
        complaint = complaint.replace(of_seeds, of_inputs)
    for start, instead in _STARTS:
        if complaint.startswith(start):
            return instead + complaint.removeprefix(start)
    return f"--inputs: {complaint}"


GROUPS_FILE = "groups.csv"
"""Table of groups in a folder of inputs: a column `name` of file names, relative to the folder, and
one per grouping."""

_MOST_BYTES = 2**28
"""Largest table of groups that is read, in bytes; it may be a stranger's."""


def groups_of_files(folder: Path, names: Sequence[str], column: str) -> list[str]:
    """Return the group of each file, as the table in its folder says it.

    Args:
        folder: folder of the files.
        names: names of the files, relative to the folder.
        column: column of the table.

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
    files = set(_files(folder)) - {GROUPS_FILE}
    unknown = [name for name in groups if name not in files]
    if unknown:
        left = sorted(files - set(groups))
        like = suggestion(unknown[0], left) or suggestion(unknown[0], sorted(files))
        raise UserError(
            f"--groups {column}: {folder / GROUPS_FILE} names {unknown[0]!r}, and there is no such"
            f" file{like}"
        )
    missing = [name for name in names if not groups.get(name)]
    if missing:
        raise UserError(
            f"--groups {column}: {file} gives {missing[0]} no group: expected a line for each file"
        )
    return [groups[name] for name in names]


def _files(folder: Path) -> Iterator[str]:
    """Yield the names of the files in a folder, and of those in its own folders, relative to it."""
    for path in folder.iterdir():
        if path.is_dir():
            yield from (f"{path.name}/{inner.name}" for inner in path.iterdir())
        else:
            yield path.name


def _no_column(path: Path, column: str, wanted: str, known: Sequence[str]) -> UserError:
    """Return what is said where a column is missing.

    Args:
        path: path of the file that should have it.
        column: name that the user gave.
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
            raise _no_column(file, column, wanted, header)
        if header.count(wanted) > 1:
            raise UserError(f"--groups {column}: {file} has two columns {wanted!r}: rename one")
    places = header.index("name"), header.index(column)
    for line in lines[1:]:
        if line:
            name, group = (line[at].strip() if at < len(line) else "" for at in places)
            yield name, group
