"""The journal of a run: an SQLite database that is the truth while the campaign runs.

Everything that a report says is derived from it. A batch of answers, and what became of the
chains that it was told to, is one transaction: a host that is killed loses the batch in flight.
The answers of a chain are kept while it is open, so that a resumed campaign can tell them to the
same strategy again; when the chain ends they are replaced by its result. Those of one batch are one
row (`answer_batches`).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import nullcontext, suppress
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar

from edgeflare.errors import EdgeFlareError
from edgeflare.record.database import Database
from edgeflare.record.journal import Journal, reporting_damage, stored_json
from edgeflare.run import answer_batches
from edgeflare.run.journal_rows import (
    NEARNESS_TABLE,
    REFINEMENT_STEPS_TABLE,
    TABLES,
    WHITE_BOX_TABLE,
    AnswerRow,
    ChainRow,
    RefinementRow,
    Role,
    Times,
    TriggerRow,
    checked_about,
    checked_row,
    row_values,
)
from edgeflare.run.reliable_answers import (
    DroppedAnswers,
    Mine,
    drop_unreliable,
    mark_reliable,
)
from edgeflare.run.run_directory import refuse_other_folder
from edgeflare.run.seed_rows import SeedRows
from edgeflare.run.survey_rows import SurveyRows

if TYPE_CHECKING:
    from typing_extensions import Self

HELD_OUT_KEY = "test"
"""The key of `about` under which the journal says what the held-out inputs are."""

HEALTH_KEY = "health"
"""The key under which it says what was seen of the devices."""

MOST_WAITING = 2**16
"""Answers in batches after which they are moved: as many as a journal may have of chains that have
ended."""

MOST_WAITING_BYTES = 2**26
"""Bytes of batches after which their answers are moved: they are in memory meanwhile, and those of
a thousand scores have kilobytes each, those of masks megabytes."""

GIVEN_BACK_BYTES = 2**24
"""What has to be free at least for the database to be written anew when it is closed."""


_P = ParamSpec("_P")
_T = TypeVar("_T")


def _telling_damage(
    read: Callable[Concatenate[RunJournal, _P], _T],
) -> Callable[Concatenate[RunJournal, _P], _T]:
    """Return what reads a journal, and tells of damage where it holds what cannot be read."""

    @wraps(read)
    def told(journal: RunJournal, /, *args: _P.args, **kwargs: _P.kwargs) -> _T:
        with reporting_damage(journal.path):
            return read(journal, *args, **kwargs)

    return told


class RunJournal(Journal):
    """The journal of a run: of a search, a survey or a replay."""

    tables = TABLES
    version = 4

    _stint: int | None = None
    """The row of `stints` that has this process's times."""

    _batched: set[int] | None = None
    """The seeds of whose chains there are answers in batches; None where that is not known."""

    _waiting = _waiting_bytes = 0
    """How many answers this process has written in batches that are still there, and of what size.
    """

    @classmethod
    def create(
        cls,
        path: Path,
        about: Mapping[str, object],
        triggers: Iterable[TriggerRow] = (),
        chains: Iterable[ChainRow] = (),
        *,
        lock: int | None = None,
    ) -> RunJournal:
        """Begin a journal, and lock the run.

        Args:
            path: the journal's.
            about: what run it is, as plain JSON values.
            triggers: inputs that the run begins with.
            chains: those that led to them.
            lock: lock of the run, where whoever claimed it has it already.

        """
        with cls._begun(path, about, lock) as journal:
            for trigger in triggers:
                journal.write_trigger(trigger)
            for chain in chains:
                journal.end_chain(chain)
        return journal

    @classmethod
    def open(cls, path: Path) -> Self:
        """Open a journal that exists, to read it; see `Journal.open`."""
        journal = super().open(path)
        try:
            with reporting_damage(path):
                answer_batches.show(journal._db)
        except BaseException:
            journal.close()
            raise
        return journal

    @classmethod
    def refuse_folder(cls, path: Path) -> None:
        """Refuse a folder that has no journal of a run, and say what it has."""
        refuse_other_folder(path)

    def close(self) -> None:
        """Close the database and unlock the run; see `Journal.close`."""
        try:
            if self._lock is not None:
                # Where the disk has no room for them moved, batches stay: nothing is lost.
                with suppress(EdgeFlareError):
                    self._settle()
                # The disk gets back what answers of ended chains took, where that is most.
                (pages,), (free,), (size,) = (
                    self._db.execute(f"PRAGMA {name}").fetchone()
                    for name in ("page_count", "freelist_count", "page_size")
                )
                if free * size > GIVEN_BACK_BYTES and free > pages / 2:
                    self._db.execute("VACUUM")
        finally:
            super().close()

    # What the run is.

    @_telling_damage
    def about(self) -> dict[str, Any]:
        """Return what the run is, as plain JSON values."""
        return checked_about(self._db, super().about())

    # What is written while it runs.

    def write_answers(self, rows: Iterable[AnswerRow]) -> None:
        """Record what the arms answered."""
        answer_batches.insert(self._db, map(answer_batches.columns, rows))

    def write_batch(self, rows: Sequence[AnswerRow]) -> None:
        """Record what open chains were answered, as one row."""
        self._waiting_bytes += answer_batches.append(self._db, rows)
        if self._batched is not None:
            self._batched.update([row.seed_id for row in rows])
        self._waiting += len(rows)
        if self._waiting >= MOST_WAITING or self._waiting_bytes >= MOST_WAITING_BYTES:
            self._settle()

    def _settle(self) -> None:
        """Move what batches hold to the other answers, so that it is read there."""
        if self._lock is None or not self._db.execute("SELECT 1 FROM batches LIMIT 1").fetchone():
            return
        with nullcontext() if self._db.in_transaction else self.transaction():
            answer_batches.settle(self._db)
        self._batched, self._waiting, self._waiting_bytes = set(), 0, 0

    def end_chain(self, row: ChainRow) -> None:
        """Record the end of a chain, in place of its steps."""
        *spent, gradients, translated = row_values(row)
        self._db.execute("INSERT INTO chains VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", spent)
        if gradients or translated:
            self._db.execute(WHITE_BOX_TABLE)
            self._db.execute(
                "INSERT OR REPLACE INTO white_box VALUES (?, ?, ?)",
                (row.seed_id, gradients, translated),
            )
        self._db.execute("DELETE FROM answers WHERE role = 'step' AND seed_id = ?", (row.seed_id,))

    def write_trigger(self, row: TriggerRow) -> None:
        """Record a stored triggering input."""
        *fields, nearness_db = row_values(row)
        self._db.execute(
            "INSERT OR REPLACE INTO triggers VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            [json.dumps(value) if isinstance(value, tuple) else value for value in fields],
        )
        if nearness_db is not None:
            self._db.execute(NEARNESS_TABLE)
            self._db.execute(
                "INSERT OR REPLACE INTO nearness VALUES (?, ?)", (row.image, nearness_db)
            )

    def end_refinement(self, row: RefinementRow) -> None:
        """Record that a finding was refined, in place of its steps.

        What was verified of it before counts no more.
        """
        values = row_values(row)
        fields, steps = values[:12], values[12:]
        self._db.execute(
            "INSERT INTO refinements VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", fields
        )
        self._db.execute(REFINEMENT_STEPS_TABLE)
        self._db.execute(
            "INSERT OR REPLACE INTO refinement_steps VALUES (?, ?, ?, ?, ?, ?, ?)",
            (row.seed_id, *steps),
        )
        self._db.execute(
            "DELETE FROM answers WHERE role IN ('refine', 'verify') AND seed_id = ?",
            (row.seed_id,),
        )

    def write_times(self, times: Times) -> None:
        """Record what this process has spent so far."""
        if self._stint is None:
            self._stint = self._db.execute("INSERT INTO stints DEFAULT VALUES").lastrowid
        self._db.execute(
            "UPDATE stints SET setup_seconds = ?, wall_seconds = ?, refine_seconds = ?, "
            "verify_seconds = ?, device_busy_seconds = ? WHERE id = ?",
            (
                times.setup,
                times.wall,
                times.refine,
                times.verify,
                times.device_busy,
                self._stint,
            ),
        )

    # How far what a device answered is reliable; inside a transaction.

    def mark_reliable(self, mine: Mine, changed: Iterable[int]) -> None:
        """Mark all that a device has answered as reliable; see `reliable_answers`."""
        self._settle()
        mark_reliable(self._db, mine, changed)

    def drop_unreliable(self, mine: Mine, read: Callable[[str], bytes]) -> DroppedAnswers:
        """Drop what a device answered since its last mark; see `reliable_answers`."""
        self._settle()
        return drop_unreliable(self._db, mine, read)

    def drop_canaries(self, seed_id: int, after: int) -> None:
        """Drop the answers to the canaries of a seed whose numbers are above another."""
        self._db.execute(
            "DELETE FROM answers WHERE role = 'canary' AND seed_id = ? AND abs(n) > ?",
            (seed_id, after),
        )

    # What a survey keeps.

    @property
    def survey(self) -> SurveyRows:
        """The tables of a survey."""
        return SurveyRows(self._db)

    # What is merged.

    @property
    def seed_rows(self) -> SeedRows:
        """The rows of its tables as they are stored."""
        self._settle()
        return SeedRows(self._db)

    # What is read: on resume, and for reports.

    @_telling_damage
    def answers(self, role: Role) -> dict[int, list[AnswerRow]]:
        """Return all answers of a role, by seed id, in the order of n."""
        if role in ("step", "refine"):
            self._settle()
        found: dict[int, list[AnswerRow]] = {}
        for row in self._db.execute(
            "SELECT * FROM answers WHERE role = ? ORDER BY seed_id, n", (role,)
        ):
            answers = _answers(self._db, row)
            found.setdefault(answers.seed_id, []).append(answers)
        return found

    @_telling_damage
    def steps(self, role: Role, seed_id: int) -> list[AnswerRow]:
        """Return the answers that an open chain of a role was told, in order."""
        if self._batched is None or seed_id in self._batched:
            self._settle()
            self._batched = set()
        return [
            _answers(self._db, row)
            for row in self._db.execute(
                "SELECT * FROM answers WHERE role = ? AND seed_id = ? ORDER BY n", (role, seed_id)
            )
        ]

    @_telling_damage
    def device_queries(self) -> dict[int, int]:
        """Return the device queries of each seed's chain and refinement so far, by seed id."""
        self._settle()
        rows = self._db.execute(
            "SELECT seed_id, sum(asked) FROM ("
            "SELECT seed_id, device_queries AS asked FROM chains UNION ALL "
            "SELECT seed_id, device_queries FROM refinements UNION ALL "
            "SELECT seed_id, device IS NOT NULL FROM answers WHERE role IN ('step', 'refine')"
            ") GROUP BY seed_id"
        )
        return dict(rows)

    @_telling_damage
    def chains(self) -> dict[int, ChainRow]:
        """Return the chains that have ended, by seed id."""
        rows = self._db.execute("SELECT * FROM chains ORDER BY seed_id")
        inside = {seed_id: counts for seed_id, *counts in self._rows_of("white_box")}
        return {
            row[0]: checked_row(self._db, ChainRow, (*row, *inside.get(row[0], ()))) for row in rows
        }

    @_telling_damage
    def triggers(self) -> dict[int, TriggerRow]:
        """Return the stored triggering inputs, by seed id."""
        rows = self._db.execute("SELECT * FROM triggers ORDER BY seed_id")
        near = dict(self._rows_of("nearness"))
        found = {}
        for seed_id, kind, operators, image, *others in rows:
            read = stored_json(self._db, operators)
            row = (seed_id, kind, read, image, *others, near.get(image))
            found[seed_id] = checked_row(self._db, TriggerRow, row)
        return found

    @_telling_damage
    def refinements(self) -> dict[int, RefinementRow]:
        """Return the findings that were refined, by seed id."""
        rows = self._db.execute("SELECT * FROM refinements ORDER BY seed_id")
        steps = {seed_id: spent for seed_id, *spent in self._rows_of("refinement_steps")}
        return {
            row[0]: checked_row(self._db, RefinementRow, (*row, *steps.get(row[0], ())))
            for row in rows
        }

    def _rows_of(self, table: str) -> list[tuple[Any, ...]]:
        """Return the rows of a table that a journal need not have."""
        known = "SELECT 1 FROM sqlite_master WHERE name = ?"
        if self._db.execute(known, (table,)).fetchone() is None:
            return []
        return self._db.execute(f"SELECT * FROM {table}").fetchall()  # noqa: S608 - names of ours

    @_telling_damage
    def times(self) -> Times:
        """Return the times of all processes that worked on the run, added up."""
        spent = self._db.execute(
            "SELECT total(setup_seconds), total(wall_seconds), total(refine_seconds), "
            "total(verify_seconds), total(device_busy_seconds) FROM stints"
        ).fetchone()
        return checked_row(self._db, Times, spent)


def _answers(db: Database, row: Sequence[Any]) -> AnswerRow:
    *known, failures, seconds = row
    read = {} if failures is None else stored_json(db, failures)
    return checked_row(db, AnswerRow, (*known, read, seconds))
