"""An engine of attempts within this process: it stands in for the cluster, and for nothing else."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from edgeflare.fleet.cluster.attempt_engine import EndedAttempt
from edgeflare.fleet.fleet_file import DevicePlace
from edgeflare.fleet.work.unit_attempt import AttemptOrder, AttemptReport, AttemptResult


@dataclass
class BegunAttempt:
    """An attempt that was asked for."""

    place: DevicePlace
    order: AttemptOrder
    given: Mapping[str, bytes]
    backup: bytes | None


@dataclass
class EngineInMemory:
    """Ends each attempt as a function says, one at each look; no process and no device runs.

    Attributes:
        outcome: returns how an attempt ends: a result, why it was lost, or all of it.
        up: whether a host takes part, given its name.
        told: reports that arrive, given the attempts so far, at each look.

    """

    outcome: Callable[[BegunAttempt], AttemptResult | EndedAttempt | str]
    up: Callable[[str], bool] = lambda _: True
    told: Callable[[Sequence[BegunAttempt]], Sequence[AttemptReport]] = lambda _: ()
    begun: list[BegunAttempt] = field(default_factory=list)
    running: list[BegunAttempt] = field(default_factory=list)
    most_at_once: int = 0
    stopped: bool = False
    given_up: list[str] = field(default_factory=list)

    def start(
        self,
        place: DevicePlace,
        order: AttemptOrder,
        given: Mapping[str, bytes],
        backup: bytes | None,
    ) -> None:
        assert set(given) <= set(order.command), "what the command does not take"
        assert all(one.place != place for one in self.running), "two attempts on one device"
        assert all(one.order.unit != order.unit for one in self.running), "two at one unit"
        attempt = BegunAttempt(place, order, given, backup)
        self.begun.append(attempt)
        self.running.append(attempt)
        self.most_at_once = max(self.most_at_once, len(self.running))

    def ended(self, seconds: float) -> Sequence[EndedAttempt]:
        del seconds
        if not self.running:
            return ()
        one = self.running.pop(0)
        ended = self.outcome(one)
        unit, number = one.order.unit, one.order.number
        if isinstance(ended, EndedAttempt):
            return (ended,)
        if isinstance(ended, str):
            return (EndedAttempt(unit, number, None, ended),)
        return (EndedAttempt(unit, number, ended),)

    def reports(self) -> Sequence[AttemptReport]:
        return self.told(self.begun)

    def is_up(self, place: DevicePlace) -> bool:
        return self.up(place.host)

    def give_up(self, unit: str) -> None:
        self.given_up.append(unit)

    def stop(self) -> None:
        self.stopped = True
