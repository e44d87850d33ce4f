"""The seam between the units of a fleet and what carries attempts to hosts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from edgeflare.fleet.fleet_file import DevicePlace
from edgeflare.fleet.work.unit_attempt import AttemptOrder, AttemptReport, AttemptResult


@dataclass(frozen=True, slots=True)
class EndedAttempt:
    """An attempt that ended, or of which nothing will be heard any more.

    Attributes:
        unit: name of the unit.
        number: the attempt's number.
        result: how it ended; None where the host or the process was lost.
        why: why it was lost; empty where it was not.
        refused: whether its host cannot do it, now or later, for the reason in `why`.

    """

    unit: str
    number: int
    result: AttemptResult | None
    why: str = ""
    refused: bool = False


class AttemptEngine(Protocol):
    """Carries attempts to hosts, and brings back what came of them."""

    def start(
        self,
        place: DevicePlace,
        order: AttemptOrder,
        given: Mapping[str, bytes],
        backup: bytes | None,
    ) -> None:
        """Begin an attempt at a place; see `run_attempt`."""

    def ended(self, seconds: float) -> Sequence[EndedAttempt]:
        """Return the attempts that ended, waiting at most so many seconds for the first."""

    def reports(self) -> Sequence[AttemptReport]:
        """Return what attempts have reported since the last call."""

    def is_up(self, place: DevicePlace) -> bool:
        """Whether a device's host takes part in the cluster right now, and offers its class."""

    def give_up(self, unit: str) -> None:
        """End the attempt at a unit, of which nothing has been heard for long."""

    def stop(self) -> None:
        """Ask all attempts to end as Ctrl-C would."""
