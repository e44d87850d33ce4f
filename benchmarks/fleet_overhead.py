"""What a fleet costs: a unit with and without Ray, and empty units on the head.

    python benchmarks/fleet_overhead.py [--times 5] [--limit 400] [--empty 1000]

One unit is searched as an attempt in this process and as one that Ray carries, in turns, both timed
from the start of their command to its end, so that Ray's own start does not count. Seconds of CPU
are told too, which other work on the machine changes less: alone those of the attempt, by Ray those
of all its daemons as well. Before that, empty units are queued, whose attempts end at once, and
what each takes on the head is told: the loop over them and their files.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from edgeflare.fleet.cluster.attempt_engine import AttemptEngine, EndedAttempt
from edgeflare.fleet.cluster.ray_cluster import LOCAL, cluster
from edgeflare.fleet.fleet_file import DevicePlace, Fleet, local_fleet
from edgeflare.fleet.record.fleet_folder import FleetFolder
from edgeflare.fleet.record.fleet_state import FleetState
from edgeflare.fleet.unit_runs import WAIT_SECONDS, UnitRuns
from edgeflare.fleet.work.unit_attempt import (
    AttemptOrder,
    AttemptReport,
    AttemptResult,
    run_attempt,
)
from edgeflare.fleet.work_units import DEVICE, RUN, WorkUnit

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests" / "support"))

from processes import children  # noqa: E402

CLASS = "emulated-builtin"
_USER, _CHILDREN = 11, 15
"""Places of a process's user time and of its reaped children's system time, behind its name."""


def order(limit: int) -> AttemptOrder:
    command = (
        *(
            "search",
            "--device",
            DEVICE,
            "--out",
            RUN,
            "examples/fashion_lenet4",
            "--first",
            str(limit),
            "--max-queries",
            "800",
        ),
        *("--fail-on", "none", "--quiet"),
    )
    return AttemptOrder("overhead", "unit-0000", 1, command, str(ROOT), CLASS, 60.0)


@dataclass(frozen=True)
class UnitSeconds:
    """Seconds that a unit took: on the clock, and of CPU."""

    wall: float
    cpu: float


def spent_without(asked: AttemptOrder) -> UnitSeconds:
    """Return what a unit takes as an attempt of this process."""
    began, cpu = time.monotonic(), cpu_seconds([os.getpid()])
    result = run_attempt(asked, {}, None, lambda _: True)
    if result.exit_code:
        raise RuntimeError(result.said)
    return UnitSeconds(time.monotonic() - began, cpu_seconds([os.getpid()]) - cpu)


def spent_with(engine: AttemptEngine, fleet: Fleet, asked: AttemptOrder) -> UnitSeconds:
    """Return what a unit takes that Ray carries, with all that Ray does meanwhile."""
    began, cpu = time.monotonic(), cpu_seconds(with_descendants(os.getpid()))
    engine.start(fleet.places([CLASS])[0], asked, {}, None)
    while not (ended := engine.ended(WAIT_SECONDS)):
        engine.reports()
    took = time.monotonic() - began
    (one,) = ended
    if one.result is None or one.result.exit_code:
        raise RuntimeError(one.why if one.result is None else one.result.said)
    return UnitSeconds(took, cpu_seconds(with_descendants(os.getpid())) - cpu)


def with_descendants(pid: int) -> list[int]:
    """Return a process and all below it."""
    return [pid, *(one for child in children(pid) for one in with_descendants(child))]


def cpu_seconds(pids: Iterable[int]) -> float:
    """Return what processes and their children that have ended have used."""
    ticks = 0
    for pid in pids:
        with suppress(OSError):
            told = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
            ticks += sum(map(int, told[_USER:_CHILDREN]))
    return ticks / os.sysconf("SC_CLK_TCK")


def ratios(asked: AttemptOrder, times: int) -> Iterator[UnitSeconds]:
    """Yield what a unit takes by Ray as a multiple of what it takes alone, in turns."""
    fleet = local_fleet([CLASS], 1)
    with cluster(LOCAL, fleet):
        # Ray reads the token that `cluster` makes when it is imported, and once in a process.
        from edgeflare.fleet.cluster.ray_engine import RayEngine  # noqa: PLC0415

        engine = RayEngine(fleet, (CLASS,), "overhead")
        engine.require_same_versions()  # by which a worker has started
        for number in range(1, times + 1):
            by_ray = partial(spent_with, engine, fleet, replace(asked, number=number))
            if number % 2:
                alone, carried = spent_without(asked), by_ray()
            else:  # or what changes steadily would count for one of them
                carried, alone = by_ray(), spent_without(asked)
            ratio = UnitSeconds(carried.wall / alone.wall, carried.cpu / alone.cpu)
            print(
                f"{alone.wall:.1f} s alone, {carried.wall:.1f} s by Ray: {ratio.wall:.3f};"
                f" CPU {alone.cpu:.1f} s, {carried.cpu:.1f} s: {ratio.cpu:.3f}",
                flush=True,
            )
            yield ratio


class ImmediateEngine:
    """Ends each attempt as soon as it is asked: what is left is the work of the head."""

    def __init__(self, archived: bytes) -> None:
        self._archived = archived
        self._begun: list[AttemptOrder] = []

    def start(
        self,
        place: DevicePlace,
        order: AttemptOrder,
        given: Mapping[str, bytes],
        backup: bytes | None,
    ) -> None:
        """Take an order."""
        del place, given, backup
        self._begun.append(order)

    def ended(self, seconds: float) -> Sequence[EndedAttempt]:
        """Return all that were asked for."""
        del seconds
        begun, self._begun = self._begun, []
        result = AttemptResult(0, "", self._archived, 0.0)
        return [EndedAttempt(one.unit, one.number, result) for one in begun]

    def reports(self) -> Sequence[AttemptReport]:
        """Return nothing."""
        return ()

    def is_up(self, place: DevicePlace) -> bool:
        """Return that it is."""
        return bool(place)

    def give_up(self, unit: str) -> None:
        """Do nothing."""

    def stop(self) -> None:
        """Do nothing."""


def head_milliseconds(units: int, devices: int) -> float:
    """Return what one empty unit takes on the head, in milliseconds."""
    from io import BytesIO  # noqa: PLC0415 - for this alone
    from zipfile import ZipFile  # noqa: PLC0415 - likewise

    empty = BytesIO()
    with ZipFile(empty, "w") as archive:
        archive.writestr("run.json", "{}")
    with tempfile.TemporaryDirectory() as folder:
        runs = UnitRuns(
            engine=ImmediateEngine(empty.getvalue()),
            folder=FleetFolder(Path(folder)),
            state=FleetState("overhead"),
            places=local_fleet([CLASS], devices).places([CLASS]),
            cwd=str(ROOT),
            stopped=lambda: False,
            shown=lambda _: None,
        )
        began = time.monotonic()
        runs.run([WorkUnit(f"unit-{at:04d}", CLASS, ("search",)) for at in range(units)])
        return (time.monotonic() - began) / units * 1000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--times", type=int, default=5, help="of each, in turns (default: 5)")
    parser.add_argument("--limit", type=int, default=400, help="seeds of the unit (default: 400)")
    parser.add_argument("--empty", type=int, default=1000, help="empty units (default: 1000)")
    options = parser.parse_args()
    # Ray sets it for what it starts; both are to have it.
    os.environ["OMP_NUM_THREADS"] = "1"
    print(f"{options.empty} empty units: {head_milliseconds(options.empty, 10):.1f} ms each")
    if found := list(ratios(order(options.limit), options.times)):
        wall, cpu = (
            statistics.median(getattr(one, what) for one in found) for what in ("wall", "cpu")
        )
        print(f"median ratio {wall:.3f}, of CPU {cpu:.3f}")


if __name__ == "__main__":
    main()
