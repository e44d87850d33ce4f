"""The journal of a conformance run: an SQLite database, to which each round adds a transaction."""

from __future__ import annotations

import json
import zlib
from pathlib import Path
from typing import Any, Final, Literal

import msgspec

from edgeflare.conform.record.conform_header import ConformHeader, ConformRequest
from edgeflare.outside_text import json_value
from edgeflare.record.journal import Journal, damaged_journal, reporting_damage
from edgeflare.record.json_types import plain_json
from edgeflare.run.journal_rows import Amount
from edgeflare.run.run_directory import (
    CONFORM_DOCUMENT,
    CONFORM_JOURNAL,
    RunDirectory,
    refuse_other_folder,
)

_MOST_BYTES: Final = 2**27
"""Most bytes of the outcomes of a round, unpacked; those of 1,000 models have about 1 MB."""

_DEVICES: Final = "devices"
"""The key of `about` that names the devices, where several have worked on the run."""

RoundKind = Literal["operators", "graphs"]
"""What is drawn in a round. Each kind has numbers of its own, so that a run that goes on for longer
draws more of both."""

_TABLES: Final = """
-- number: from 0, in the order in which the rounds of a kind were run. digest: of the models that
-- were drawn. outcomes: JSON, compressed. seconds: that the rounds up to its end took, without what
-- was done again.
CREATE TABLE rounds (
    kind TEXT NOT NULL, number INTEGER NOT NULL, digest TEXT NOT NULL, outcomes BLOB NOT NULL,
    seconds REAL NOT NULL, PRIMARY KEY (kind, number)
) WITHOUT ROWID;
-- One row. seconds: that the run has taken, all its processes added up, whatever they did.
CREATE TABLE duration (run INTEGER PRIMARY KEY CHECK (run = 0), seconds REAL NOT NULL);
"""


class ConformJournal(Journal):
    """The journal of one conformance run."""

    tables = _TABLES
    version = 1

    @classmethod
    def refuse_folder(cls, path: Path) -> None:
        """Refuse a folder that has no journal of a conformance run, and say what it has."""
        refuse_other_folder(path)

    def header(self) -> ConformHeader:
        """Return what run it is.

        Raises:
            ValueError: a value is of another type, or missing; names it.

        """
        return msgspec.convert(self.about(), ConformHeader)

    def note_device(self, name: str) -> None:
        """Keep the name of a device that goes on with the run."""
        if name not in (names := self.devices()):
            self.note(_DEVICES, [*names, name])

    def devices(self) -> list[str]:
        """Return the names of the devices that have worked on the run, the first one's first."""
        about = self.about()
        return about.get(_DEVICES) or [about["device"]["name"]]

    def keep(
        self,
        number: int,
        digest: str,
        outcomes: Any,
        seconds: float,
        kind: RoundKind = "operators",
    ) -> None:
        """Keep a round, in one transaction.

        Args:
            number: the round's number.
            digest: digest of the models that were drawn for it.
            outcomes: what came of them, as plain JSON values.
            seconds: time that the rounds up to its end took.
            kind: what was drawn.

        """
        packed = zlib.compress(json.dumps(outcomes, separators=(",", ":")).encode(), 1)
        self._db.execute(
            "INSERT INTO rounds VALUES (?, ?, ?, ?, ?)", (kind, number, digest, packed, seconds)
        )

    def has(self, number: int, kind: RoundKind = "operators") -> bool:
        """Return whether a round has ended."""
        query = "SELECT 1 FROM rounds WHERE kind = ? AND number = ?"
        return self._db.execute(query, (kind, number)).fetchone() is not None

    def kept(self, number: int, kind: RoundKind = "operators") -> tuple[str, Any] | None:
        """Return the digest and the outcomes of a round; None where it has not ended."""
        row = self._db.execute(
            "SELECT digest, outcomes FROM rounds WHERE kind = ? AND number = ?", (kind, number)
        ).fetchone()
        if row is None:
            return None
        try:
            return row[0], json_value(_unpacked(row[1]))
        except (ValueError, TypeError, zlib.error) as error:
            raise damaged_journal(self.path, f"round {number}: {error}") from None

    def seconds_of_rounds(self) -> float:
        """Return the seconds that the rounds took, without what was done again."""
        return self._seconds("rounds")

    def note_seconds(self, seconds: float) -> None:
        """Keep what the run has taken so far, all its processes added up."""
        self._db.execute("INSERT OR REPLACE INTO duration VALUES (0, ?)", (seconds,))

    def seconds(self) -> float:
        """Return what the run has taken, all its processes added up, when that was last noted."""
        return self._seconds("duration")

    def _seconds(self, table: str) -> float:
        query = f"SELECT COALESCE(MAX(seconds), 0) FROM {table}"  # noqa: S608 - names of ours
        try:
            return msgspec.convert(self._db.execute(query).fetchone()[0], Amount)
        except ValueError as error:
            raise damaged_journal(self.path, f"seconds of {table}: {error}") from None


def _unpacked(packed: bytes) -> bytes:
    """Return the outcomes of a round, which a few bytes may unpack to without end."""
    unpacking = zlib.decompressobj()
    data = unpacking.decompress(packed, _MOST_BYTES)
    if not unpacking.eof:
        raise ValueError("it is cut off, or larger than it may be")
    return data


def begin_journal(path: Path, header: ConformHeader, *, overwrite: bool) -> ConformJournal:
    """Begin a run.

    Raises:
        UserError: there is something at the path that must not be written over.

    """
    directory, lock = RunDirectory.claim(path, overwrite=overwrite)
    return ConformJournal.create(directory.conform_journal, plain_json(header), lock=lock)


def asked_before(path: Path) -> ConformRequest:
    """Return what a run was asked for that is to be gone on with.

    Raises:
        UserError: there is no run, or its journal is damaged.

    """
    file = path / CONFORM_JOURNAL
    with ConformJournal.read(file) as journal:
        return journal.header().request


def require_same_run(path: Path, header: ConformHeader) -> None:
    """Refuse a run directory that holds another run than `header` says."""
    with ConformJournal.read(path / CONFORM_JOURNAL) as journal:
        journal.header().require_same(header, str(path))


def resume_journal(path: Path, header: ConformHeader) -> ConformJournal:
    """Go on with a run; one that is refused stays as it was.

    Raises:
        UserError: there is no run, it is another than `header` says, others have changed its
            document, or another process works on it.

    """

    def go_on(journal: ConformJournal) -> None:
        with reporting_damage(journal.path):
            journal.header().require_same(header, str(path))
            journal.note_device(header.device.name)
        # It may take longer now, and must not be gone on with for less than that later.
        journal.note("request", plain_json(header.request))

    return ConformJournal.resume(path / CONFORM_JOURNAL, go_on, [CONFORM_DOCUMENT])
