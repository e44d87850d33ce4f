"""The rows of a journal as they are stored, table by table: what is merged from several runs."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import Any, Final

from edgeflare.record.database import Database
from edgeflare.run.journal_rows import (
    MARKS_TABLE,
    NEARNESS_TABLE,
    REFINEMENT_STEPS_TABLE,
    WHITE_BOX_TABLE,
)

Row = tuple[Any, ...]

KEYS: Final = {
    "answers": ("role", "seed_id", "n"),
    "chains": ("seed_id",),
    "triggers": ("seed_id",),
    "refinements": ("seed_id",),
    "refinement_steps": ("seed_id",),
    "white_box": ("seed_id",),
    "marks": ("what", "seed_id"),
    "nearness": ("image",),
}
"""The primary key of each table: its first columns."""

_OPTIONAL: Final = {
    "white_box": WHITE_BOX_TABLE,
    "refinement_steps": REFINEMENT_STEPS_TABLE,
    "marks": MARKS_TABLE,
    "nearness": NEARNESS_TABLE,
}
"""Tables that a journal has once there is a row for them."""

_STAGES: Final = """
SELECT seed_id, 1 FROM answers WHERE role = 'seed'
UNION ALL SELECT DISTINCT seed_id, 2 FROM answers WHERE role = 'step'
UNION ALL SELECT seed_id, 3 FROM chains
UNION ALL SELECT seed_id, 3 FROM triggers
UNION ALL SELECT seed_id, 4 FROM answers WHERE role = 'verify' AND n >= ?1
UNION ALL SELECT seed_id, 5 + EXISTS (
    SELECT 1 FROM answers
    WHERE role = 'verify' AND answers.seed_id = refinements.seed_id AND n >= ?1
) FROM refinements
"""

_DONE: Final = """
SELECT count(*) FROM (
    SELECT seed_id FROM chains WHERE seed_id NOT IN (SELECT seed_id FROM triggers)
    UNION ALL
    SELECT seed_id FROM triggers WHERE seed_id IN (
        SELECT seed_id FROM answers WHERE role = 'verify' AND n >= ?
    ) AND (
        NOT ?
        OR kind IN ({kinds})
        OR seed_id IN (SELECT seed_id FROM refinements)
        OR seed_id NOT IN (SELECT seed_id FROM chains)
    )
)
"""


class SeedRows:
    """The rows of one journal's database."""

    def __init__(self, db: Database) -> None:
        """Read and write the rows of a database; inside a transaction."""
        self._db = db

    def stages(self, repetitions: int) -> Iterator[tuple[int, int]]:
        """Yield how far seeds have come, by id, perhaps several times for one of them.

        1 is evaluated, 2 searched from, 3 searched or deviating, 4 verified, 5 refined, 6 refined
        and verified: what a search that was stopped verified is verified again once it is refined.

        Args:
            repetitions: evaluations by which a finding is verified.

        """
        yield from _rows(self._db.execute(_STAGES, (repetitions - 1,)))

    def done(self, repetitions: int, unrefined_kinds: Collection[str] | None) -> int:
        """Return of how many seeds all is known that a search finds out.

        Args:
            repetitions: evaluations by which a finding is verified.
            unrefined_kinds: kinds of findings that are not refined; None where none is.

        """
        kinds = tuple(unrefined_kinds or ())
        query = _DONE.format(kinds=", ".join("?" * len(kinds)))
        given = (repetitions - 1, unrefined_kinds is not None, *kinds)
        (done,) = self._db.execute(query, given).fetchone()
        return int(done)

    def each(self, table: str) -> Iterator[Row]:
        """Yield the rows of a table in the order of its key; none where the journal lacks it."""
        known = "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = ?"
        if self._db.execute(known, (table,)).fetchone() is not None:
            order = ", ".join(KEYS[table])
            query = f"SELECT * FROM {table} ORDER BY {order}"  # noqa: S608 - names of ours
            yield from _rows(self._db.execute(query))

    def of_seed(self, table: str, seed_id: int) -> Row | None:
        """Return the row of a seed in a table that has one for each; None where it has none."""
        query = f"SELECT * FROM {table} WHERE seed_id = ?"  # noqa: S608 - names of ours
        row: Row | None = self._db.execute(query, (seed_id,)).fetchone()
        return row

    def has_screened(self, seed_id: int) -> bool:
        """Whether the answers to a seed itself are there."""
        query = "SELECT 1 FROM answers WHERE role = 'seed' AND seed_id = ?"
        return self._db.execute(query, (seed_id,)).fetchone() is not None

    def stints(self) -> Iterator[Row]:
        """Yield the times of each process that worked on the run."""
        yield from _rows(self._db.execute("SELECT * FROM stints ORDER BY id"))

    def add_stint(self, stint: Row) -> None:
        """Write the times of a process, which get a number of their own."""
        places = ", ".join("?" * len(stint[1:]))
        self._db.execute(f"INSERT INTO stints VALUES (NULL, {places})", stint[1:])  # noqa: S608

    def insert(self, table: str, rows: Iterable[Row]) -> None:
        """Write rows into a table, which is made where it is not there."""
        if table in _OPTIONAL:
            self._db.execute(_OPTIONAL[table])
        (columns,) = self._db.execute(
            "SELECT count(*) FROM pragma_table_info(?)", (table,)
        ).fetchone()
        places = ", ".join("?" * columns)
        self._db.executemany(f"INSERT INTO {table} VALUES ({places})", rows)  # noqa: S608 - names of ours


def _rows(cursor: Iterable[Row]) -> Iterator[Row]:
    """Yield rows, and close no cursor, which cannot be done after its database is closed."""
    yield from map(tuple, cursor)
