"""The journal of a conformance run: an SQLite database, to which each round adds a transaction."""

from __future__ import annotations

import json
import os
import sqlite3
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from edgeflare.run.journal_database import (
    connect_journal,
    damaged_journal,
    note_about,
    open_database,
    read_about,
)
from edgeflare.run.run_lock import lock_run

_VERSION: Final = 1

_TABLES: Final = """
CREATE TABLE about (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
-- number: from 0, in the order in which the rounds were run. digest: of the models that were drawn.
-- outcomes: JSON, compressed. seconds: that the rounds up to its end took, without what was done
-- again.
CREATE TABLE rounds (
    number INTEGER PRIMARY KEY, digest TEXT NOT NULL, outcomes BLOB NOT NULL, seconds REAL NOT NULL
);
-- One row. seconds: that the run has taken, all its processes added up, whatever they did.
CREATE TABLE duration (run INTEGER PRIMARY KEY CHECK (run = 0), seconds REAL NOT NULL);
"""


@dataclass(slots=True)
class ConformJournal:
    """The journal of one conformance run."""

    path: Path
    _db: sqlite3.Connection
    _lock: int | None = field(default=None)

    @classmethod
    def create(cls, path: Path, about: Mapping[str, Any]) -> ConformJournal:
        """Begin a journal, and lock the run.

        Args:
            path: the journal's.
            about: what run it is, as plain JSON values.

        Raises:
            UserError: another process works on the run.

        """
        lock = lock_run(path.parent)
        db = connect_journal(path)
        # In one transaction, so that a host that is killed here leaves no half of a journal.
        db.executescript(f"BEGIN; {_TABLES} PRAGMA user_version = {_VERSION};")
        for key, value in about.items():
            note_about(db, key, value)
        db.execute("COMMIT")
        return cls(path, db, lock)

    @classmethod
    def open(cls, path: Path) -> ConformJournal:
        """Open the journal of a run that exists, to read it.

        Raises:
            UserError: there is none, or it is damaged, or another version's.

        """
        return cls(path, open_database(path, _TABLES, _VERSION))

    def lock(self) -> None:
        """Lock the run, to go on with it.

        Raises:
            UserError: another process works on it.

        """
        self._lock = lock_run(self.path.parent)

    def about(self) -> dict[str, Any]:
        """Return what run it is, as plain JSON values."""
        return read_about(self._db)

    def note_request(self, request: Mapping[str, Any]) -> None:
        """Keep what is asked for in the place of what was, as plain JSON values."""
        note_about(self._db, "request", request)

    def keep(self, number: int, digest: str, outcomes: Any, seconds: float) -> None:
        """Keep a round, in one transaction.

        Args:
            number: of the round.
            digest: of the models that were drawn for it.
            outcomes: what came of them, as plain JSON values.
            seconds: that the rounds up to its end took.

        """
        packed = zlib.compress(json.dumps(outcomes, separators=(",", ":")).encode(), 1)
        self._db.execute(
            "INSERT INTO rounds VALUES (?, ?, ?, ?)", (number, digest, packed, seconds)
        )

    def has(self, number: int) -> bool:
        """Return whether a round has ended."""
        found = self._db.execute("SELECT 1 FROM rounds WHERE number = ?", (number,)).fetchone()
        return found is not None

    def kept(self, number: int) -> tuple[str, Any] | None:
        """Return the digest and the outcomes of a round; None where it has not ended.

        Raises:
            UserError: the round is damaged.

        """
        row = self._db.execute(
            "SELECT digest, outcomes FROM rounds WHERE number = ?", (number,)
        ).fetchone()
        if row is None:
            return None
        try:
            return row[0], json.loads(zlib.decompress(row[1]))
        except (ValueError, zlib.error) as error:
            raise damaged_journal(self.path, f"round {number}: {error}") from None

    def seconds_of_rounds(self) -> float:
        """Return the seconds that the rounds took, without what was done again."""
        (seconds,) = self._db.execute("SELECT COALESCE(MAX(seconds), 0) FROM rounds").fetchone()
        return float(seconds)

    def note_seconds(self, seconds: float) -> None:
        """Keep what the run has taken so far, all its processes added up."""
        self._db.execute("INSERT OR REPLACE INTO duration VALUES (0, ?)", (seconds,))

    def seconds(self) -> float:
        """Return what the run has taken, all its processes added up, when that was last noted."""
        (seconds,) = self._db.execute("SELECT COALESCE(MAX(seconds), 0) FROM duration").fetchone()
        return float(seconds)

    def close(self) -> None:
        """Close it, and unlock the run. Closing twice is no error."""
        self._db.close()
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None
