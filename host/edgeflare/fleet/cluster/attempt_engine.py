"""The seam between the units of a fleet and what carries attempts to hosts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from edgeflare.fleet.plan.fleet_file import DevicePlace
from edgeflare.fleet.work.unit_attempt import AttemptOrder, AttemptReport, AttemptResult


@dataclass(frozen=True, slots=True)
class EndedAttempt:
    """An attempt that ended, or of which nothing will be heard any more.

    Attributes:
        unit: name of the unit.
        number: of the attempt.
        result: how it ended; None where the host or the process was lost.
        why: it was lost; empty where it was not.

    """

    unit: str
    number: int
    result: AttemptResult | None
    why: str = ""


class AttemptEngine(Protocol):
    """Carries attempts to hosts, and brings back what came of them."""

    def start(
        self, place: DevicePlace, order: AttemptOrder, screening: bytes | None, backup: bytes | None
    ) -> None:
        """Begin an attempt at a place."""

    def ended(self, seconds: float) -> Sequence[EndedAttempt]:
        """Return the attempts that ended, waiting at most so many seconds for the first."""

    def reports(self) -> Sequence[AttemptReport]:
        """Return what attempts have reported since the last call."""

    def is_up(self, host: str) -> bool:
        """Whether a host takes part in the cluster right now."""

    def stop(self) -> None:
        """Ask all attempts to end as Ctrl-C would."""
