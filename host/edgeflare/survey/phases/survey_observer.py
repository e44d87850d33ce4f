"""What is told of the progress of a survey."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class DeviceProgress:
    """How far the device's part of a survey is.

    Attributes:
        asked: items that the device was asked about.
        most: items that it may be asked about at most; fewer may be enough.
        ended: whether it is asked no further.
        estimate: the rate of deviations over all; None while answers are not estimated yet.
        half_width: half the width of its interval; None with it.
        aim: the half width at which the survey ends; None where that is no reason.

    """

    asked: int
    most: int
    ended: bool
    estimate: float | None
    half_width: float | None
    aim: float | None


class SurveyObserver(Protocol):
    """Receives the progress of a survey."""

    def judged(self, done: int, total: int) -> None:
        """See that the host's arms answered so many items."""

    def asked(self, progress: DeviceProgress) -> None:
        """See how far the device's part is."""

    def repeated(self, done: int, total: int) -> None:
        """See that a rare event's rate was estimated so many times."""


class UnobservedSurvey:
    """An observer of a survey that shows nothing."""

    def judged(self, done: int, total: int) -> None:
        """Show nothing."""

    def asked(self, progress: DeviceProgress) -> None:
        """Show nothing."""

    def repeated(self, done: int, total: int) -> None:
        """Show nothing."""
