"""How long a conformance run takes: all its processes added up, and what counts to its limit."""

from __future__ import annotations

import time
from dataclasses import dataclass

from edgeflare.conform.record.conform_journal import ConformJournal


@dataclass(slots=True)
class ConformClock:
    """Counts the seconds of a run, from where its journal says that earlier processes were.

    Attributes:
        journal: of the run.

    """

    journal: ConformJournal
    _began: float = 0.0
    _counted_from: float = 0.0
    _before: float = 0.0
    _spent_before: float = 0.0

    def __post_init__(self) -> None:
        self._began = self._counted_from = time.monotonic()
        self._before = self.journal.seconds()
        self._spent_before = self.journal.seconds_of_rounds()

    @property
    def total(self) -> float:
        """What the run has taken, all its processes added up."""
        return self._before + time.monotonic() - self._began

    @property
    def spent(self) -> float:
        """What counts to the limit: not what is done again since a process was cut off.

        That is to take rounds from the journal, and to shrink what an earlier process had shrunk.
        """
        return self._spent_before + time.monotonic() - self._counted_from

    def leave_out(self) -> None:
        """Count nothing to the limit of what this process has done so far."""
        self._counted_from = time.monotonic()

    def note(self) -> None:
        """Keep what the run has taken, in case that the process is killed."""
        self.journal.note_seconds(self.total)
