"""The time that this process spends on each phase of a run, written into the journal."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Literal

from edgeflare.run.journal import Journal
from edgeflare.run.journal_rows import Times


class Stopwatch:
    """Times what this process spends on the run, and writes it into the journal."""

    def __init__(self, journal: Journal, opening_seconds: float = 0.0) -> None:
        """Start the first lap, to which the opening of models and device belongs."""
        self._journal = journal
        self._mark = time.monotonic() - opening_seconds
        self._times = Times()

    def lap(
        self, phase: Literal["setup", "wall", "refine", "verify"], device_busy: float = 0.0
    ) -> None:
        """Add the time since the last lap to a phase."""
        now = time.monotonic()
        spent = getattr(self._times, phase) + now - self._mark
        self._times = replace(
            self._times, **{phase: spent}, device_busy=self._times.device_busy + device_busy
        )
        self._mark = now
        self._journal.write_times(self._times)

    @property
    def wall(self) -> float:
        """Seconds that this process has searched."""
        return self._times.wall
