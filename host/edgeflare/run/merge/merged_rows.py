"""The rows of several journals in one, by seed id."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from heapq import merge
from pathlib import PurePosixPath
from typing import Final

from edgeflare.run.journal import Journal
from edgeflare.run.journal_database import reporting_damage
from edgeflare.run.merge.run_part import RunPart
from edgeflare.run.merge.seed_owners import SeedOwners
from edgeflare.run.seed_rows import KEYS, Row

_OF_NO_SEED: Final = frozenset({"test", "canary"})
"""Roles of answers that say nothing of a seed's search: held-out inputs, and canaries."""


def merge_rows(parts: Sequence[RunPart], owners: SeedOwners, into: Journal) -> None:
    """Write what runs have of the seeds that are theirs into the journal of the merged run.

    Rows are read and written one by one in the order of their keys, so that a run of a million
    seeds takes no more memory than one of a few.

    Args:
        parts: the runs.
        owners: which of them says what became of each seed.
        into: the merged run's journal.

    Raises:
        UserError: a run is damaged.

    """
    with into.transaction():
        for table, key in KEYS.items():
            rows = [_owned(part, at, owners, table) for at, part in enumerate(parts)]
            columns = len(key)
            ordered = merge(*rows, key=lambda row: row[:columns])
            into.seed_rows.insert(table, _each_once(ordered, columns))
        for part in parts:
            with reporting_damage(part.journal.path):
                for stint in part.journal.seed_rows.stints():
                    into.seed_rows.add_stint(stint)


def _owned(part: RunPart, at: int, owners: SeedOwners, table: str) -> Iterator[Row]:
    """Yield the rows of a run's table that count: of its own seeds, and of no seed at all."""
    seed_of = _SEED_OF.get(table, _first)
    with reporting_damage(part.journal.path):
        for row in part.journal.seed_rows.each(table):
            kept = table == "answers" and row[0] in _OF_NO_SEED
            if kept or owners.of.get(seed_of(row)) == at:
                yield row


def _first(row: Row) -> int:
    return int(row[0])


def _second(row: Row) -> int:
    return int(row[1])


def _of_file(row: Row) -> int:
    """Return the seed of a stored input, which its file is named by."""
    return int(PurePosixPath(row[0]).name.partition(".")[0])


_SEED_OF: Final[dict[str, Callable[[Row], int]]] = {
    "answers": _second,
    "marks": _second,
    "nearness": _of_file,
}


def _each_once(rows: Iterator[Row], columns: int) -> Iterator[Row]:
    """Leave out rows whose key was there: two runs may hold the same held-out input."""
    before: Row | None = None
    for row in rows:
        if row[:columns] != before:
            yield row
        before = row[:columns]
