"""How far one head goes: a fleet of 10 to 10,000 devices, simulated with measured service times.

    python benchmarks/fleet_simulation.py
    python benchmarks/fleet_simulation.py --measure PAIR

The model is benchmarks/support/simulated_fleet.py. `--measure` prints what its steps take on this
machine: passes of `UnitRuns` over an engine that does nothing, archives and a merge of findings of
PAIR, and, where Ray is installed, attempts, reports and nodes of a cluster of this host. Where it
is the processor that decides, its time counts, so that other work on the machine does not.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any

import typer

sys.path.insert(0, str(Path(__file__).resolve().parent / "support"))

from edgeflare.fleet.cluster.attempt_engine import EndedAttempt
from edgeflare.fleet.cluster.ray_cluster import LOCAL, cluster
from edgeflare.fleet.fleet_file import DevicePlace, Fleet, FleetHost, local_fleet
from edgeflare.fleet.record.fleet_folder import FleetFolder, UnitEnding
from edgeflare.fleet.record.fleet_state import FleetState
from edgeflare.fleet.unit_runs import UnitRuns
from edgeflare.fleet.work.folder_archive import archive_folder
from edgeflare.fleet.work.unit_attempt import AttemptOrder, AttemptReport, AttemptResult
from edgeflare.fleet.work_units import WorkUnit
from edgeflare.record.atomic_file import write_atomically
from edgeflare.run.merge.merge_runs import merge_runs
from multiplied_run import MultipliedRun
from simulated_fleet import (
    FINDING_BYTES,
    FINDINGS_A_MINUTE,
    FleetFigures,
    FleetScenario,
    ServiceTimes,
    SimulatedFleet,
)

SIZES = (10, 30, 100, 300, 1000, 3000, 10000)
UNIT_MINUTES = (1, 5, 10)
HOURS = 2
"""Of work that each device has."""

MOST_UNITS = 500_000
"""Of a fleet that is simulated: with more, the head is saturated long before, and it takes long."""

_SEARCHED = ("--first", "40", "--max-queries", "300", "--fail-on", "none", "--quiet")


def main(
    pair: Annotated[
        Path | None, typer.Option("--measure", help="Measure the service times with this pair.")
    ] = None,
    findings_a_minute: Annotated[float, typer.Option(help="Of device time.")] = FINDINGS_A_MINUTE,
    finding_bytes: Annotated[float, typer.Option(help="In an archive.")] = FINDING_BYTES,
    most: Annotated[int, typer.Option(help="Devices at most.")] = SIZES[-1],
) -> None:
    """Print a table of fleets, or what steps take here."""
    if pair is not None:
        measures = (_head_times, partial(_run_times, pair), partial(_merge_times, pair), _ray_times)
        for measure in measures:
            for name, seconds in measure().items():
                print(f"{name:<14} {seconds:.2e} s", flush=True)
        return
    print(
        "| devices | units of | busy | with the screening | screening | of this merging"
        " | head | collector | link | lost | repeated | merge |"
    )
    print("|--:" * 12 + "|")
    for devices, minutes in fleets(most):
        asked = scenario(devices, minutes, findings_a_minute, finding_bytes)
        print(_row(asked, SimulatedFleet(asked, ServiceTimes()).run()), flush=True)


def fleets(most: int) -> list[tuple[int, int]]:
    """Return how many devices the fleets have, with the minutes of their units."""
    return [
        (devices, minutes)
        for devices in SIZES
        for minutes in UNIT_MINUTES
        if devices <= most and devices * 60 * HOURS // minutes <= MOST_UNITS
    ]


def scenario(
    devices: int,
    unit_minutes: int,
    findings_a_minute: float = FINDINGS_A_MINUTE,
    finding_bytes: float = FINDING_BYTES,
) -> FleetScenario:
    """Return a fleet with some hours of work for each device, in units of some minutes."""
    return FleetScenario(
        devices,
        unit_seconds=60.0 * unit_minutes,
        units_of_a_device=60 * HOURS // unit_minutes,
        findings_a_minute=findings_a_minute,
        finding_bytes=finding_bytes,
    )


def _row(asked: FleetScenario, of: FleetFigures) -> str:
    devices = " | ".join(f"{100 * one:.1f} %" for one in (of.busy, of.busy_in_all))
    beside = " | ".join(f"{100 * one:.1f} %" for one in (of.head, of.collector, of.link))
    return (
        f"| {asked.devices:,} | {asked.unit_seconds / 60:.0f} min | {devices}"
        f" | {of.screening:,.0f} s | {of.screening_merge:,.0f} s | {beside} | {of.lost}"
        f" | {of.repeated / 60:,.0f} min | {of.merge:,.0f} s |"
    )


# What steps take: the head.


class _EnoughPassesError(Exception):
    """Ends a measurement."""


@dataclass(slots=True)
class _StillEngine:
    """Carries attempts nowhere; notes when passes come to wait, and has each attempt report once.

    Attributes:
        passes: how many are made.
        at: when each came to wait, by the clock of the processor.
        units: of the attempts that were begun.

    """

    passes: int
    at: list[float] = field(default_factory=list)
    units: list[str] = field(default_factory=list)

    def start(
        self,
        place: DevicePlace,  # noqa: ARG002
        order: AttemptOrder,
        given: Mapping[str, bytes],  # noqa: ARG002
        backup: bytes | None,  # noqa: ARG002
    ) -> None:
        """Begin nothing."""
        self.units.append(order.unit)

    def ended(self, seconds: float) -> Sequence[EndedAttempt]:  # noqa: ARG002
        """Note the time, and return that nothing has ended."""
        self.at.append(time.process_time())
        if len(self.at) > self.passes:
            raise _EnoughPassesError
        return ()

    def reports(self) -> Sequence[AttemptReport]:
        """Return a report of each attempt in the last pass."""
        last = len(self.at) == self.passes
        return [AttemptReport(unit, 1, 1, 1, 1.0) for unit in self.units] if last else ()

    def is_up(self, place: DevicePlace) -> bool:  # noqa: ARG002
        """Say that each host is up."""
        return True

    def give_up(self, unit: str) -> None:
        """Give up nothing."""

    def stop(self) -> None:
        """Stop nothing."""


def _head_times(hosts: int = 100, host_devices: int = 10) -> dict[str, float]:
    """Measure passes of the head."""
    devices = {"phone": tuple(f"phone-{at}" for at in range(host_devices))}
    fleet = Fleet(tuple(FleetHost(f"host-{at}", f"192.0.2.{at}", devices) for at in range(hosts)))
    places = fleet.places(("phone",))
    units = [WorkUnit(f"unit-{at:04d}", "phone", ("--version",)) for at in range(24 * len(places))]
    engine = _StillEngine(passes=12)
    with TemporaryDirectory(prefix="edgeflare-fleet-") as folder:
        runs = UnitRuns(
            engine=engine,
            folder=FleetFolder(Path(folder)),
            state=FleetState("measured"),
            places=places,
            cwd=os.getcwd(),
            stopped=lambda: False,
            shown=lambda _: None,
        )
        with suppress(_EnoughPassesError):
            runs.run(units)
        show = _seconds(lambda: runs.folder.show(runs.state), times=3)
    passes = [after - before for before, after in pairwise(engine.at)]
    look = min(passes[:-1])
    found = _seconds(lambda: [list(places).index(place) for place in places[::10]], times=3)
    hosts_found = _seconds(lambda: [fleet.host(place.host) for place in places], times=3)
    return {
        "look": look / len(places),
        "look_host": hosts_found / len(places) / hosts,
        "find_place": found / len(places[::10]) / len(places),
        "take": max(0.0, passes[-1] - look) / len(places),
        "show": show / len(units),
    }


def _order(unit: str, number: int, device: str) -> AttemptOrder:
    return AttemptOrder("measured", unit, number, ("--version",), os.getcwd(), device, 60.0)


# What steps take: runs.


def _run_times(pair: Path, findings: int = 1000) -> dict[str, float]:
    """Measure archives and a merge of findings."""
    with TemporaryDirectory(prefix="edgeflare-fleet-") as made:
        folder = Path(made)
        command = [sys.executable, "-m", "edgeflare", "search", str(pair), *_SEARCHED]
        subprocess.run([*command, "--out", str(folder / "run")], check=True, stdout=sys.stderr)
        run = MultipliedRun(folder / "run", findings)
        parts = [folder / f"part-{at}" for at in range(4)]
        for at, path in enumerate(parts):
            run.write_part(path, range(at, findings, len(parts)), with_inputs=True)
        run.write_part(folder / "few", range(5), with_inputs=True)
        few, many = archive_folder(folder / "few") or b"", archive_folder(parts[0]) or b""
        size = findings // len(parts)
        kept = FleetFolder(folder / "kept")
        keep_few = _seconds(lambda: kept.keep_unit("few", few, UnitEnding(0, 0, "")))
        keep_many = _seconds(lambda: kept.keep_unit("many", many, UnitEnding(0, 0, "")), times=3)
        each = (keep_many - keep_few) / (size - 5)
        whole = _seconds(lambda: merge_runs(parts, folder / "merged", overwrite=True), times=1)
        written = _seconds(lambda: write_atomically(folder / "backup", bytes(10_000_000)))
        (folder / "few" / "findings" / "999999.png").write_bytes(os.urandom(10_000_000))
        large = archive_folder(folder / "few") or b""
        keep_large = _seconds(lambda: kept.keep_unit("large", large, UnitEnding(0, 0, "")))
        archive = _seconds(lambda: archive_folder(parts[0]), times=3)
    return {
        "keep": max(0.0, keep_few - 5 * each),
        "keep_finding": each,
        "unpack_byte": (keep_large - keep_few) / 1e7,
        "keep_byte": written / 1e7,
        "archive, each": archive / size,
        "merge_finding": whole / findings,
    }


def _merge_times(pair: Path) -> dict[str, float]:
    """Measure merges of screenings: more seeds, more runs, and more of both."""
    with TemporaryDirectory(prefix="edgeflare-fleet-") as made:
        folder = Path(made)
        command = [sys.executable, "-m", "edgeflare", "search", str(pair), *_SEARCHED]
        command += ["--screen-only", "--out", str(folder / "run")]
        subprocess.run(command, check=True, stdout=sys.stderr)
        few, seeds = _merge_seconds(folder, 2000, 10), _merge_seconds(folder, 22_000, 10)
        runs, pairs = _merge_seconds(folder, 2000, 200), _merge_seconds(folder, 2000, 1000)
        both = _merge_seconds(folder, 22_000, 200)
    labels = (both - seeds - (runs - few)) / 190 / 20_000
    each, later = (runs - few) / 190, (pairs - runs) / 800
    pair_of_runs = (later - each) / (1200 - 210)  # by the sums of the numbers of runs
    return {
        "merge_seed": (seeds - few) / 20_000 - 10 * labels,
        "merge_part": each - 210 * pair_of_runs - 2000 * labels,
        "merge_pair": pair_of_runs,
        "merge_part_seed": labels,
    }


def _merge_seconds(folder: Path, seeds: int, runs: int) -> float:
    """Return what a merge of so many screenings takes, with so many seeds in all."""
    screened, size = MultipliedRun(folder / "run", seeds), seeds // runs
    paths = [folder / f"{seeds}-{runs}-{at}" for at in range(runs)]
    for at, path in enumerate(paths):
        screened.write_screening(path, range(at * size, (at + 1) * size))
    return _seconds(lambda: merge_runs(paths, folder / "merged", overwrite=True), times=1)


# What steps take: Ray.


def _ray_times() -> dict[str, float]:
    """Measure attempts and reports in a cluster of this host; nothing where Ray is missing."""
    if find_spec("ray") is None:
        return {}
    fleet = local_fleet(["phone"], 2)
    with cluster(LOCAL, fleet):
        import ray  # noqa: PLC0415 - an extra, which reads how it is kept when it is imported

        from edgeflare.fleet.cluster.ray_engine import RayEngine  # noqa: PLC0415 - likewise

        engine: Any = RayEngine(fleet, ("phone",), "measured")
        (place, _) = fleet.places(("phone",))
        for unit in ("warm-1", "warm-2"):
            engine.start(place, _order(unit, 1, "phone"), {}, None)
        results: list[AttemptResult | None] = []
        while len(results) < 2:
            results += [one.result for one in engine.ended(60.0)]
        times = 20
        orders = iter([_order(f"unit-{at}", 1, "phone") for at in range(times)])
        begin = _seconds(lambda: engine.start(place, next(orders), {}, None), times, time.monotonic)
        waits = _seconds(lambda: ray.wait(list(engine._under_way), timeout=0), clock=time.monotonic)
        while engine._under_way:
            engine.ended(60.0)
        round_trip = _seconds(engine.reports, clock=time.monotonic)
        engine._numbers = {f"unit-{at:05d}": 1 for at in range(24_000)}
        told = _seconds(engine.reports, clock=time.monotonic)
        engine._numbers = {"unit": 1}
        engine.reports()
        one = AttemptReport("unit", 1, 1, 1, 1.0)
        reports = _seconds(
            lambda: ray.get([engine._collector.report.remote(one) for _ in range(1000)]),
            clock=time.monotonic,
        )
        take = _seconds(engine.reports, times=1, clock=time.monotonic)
        nodes = _seconds(ray.nodes, times=50, clock=time.monotonic)
    return {
        "begin": begin,
        "wait": waits / times,
        "collector": reports / 1000,
        "take, a call": round_trip,
        "visit_unit": (told - round_trip) / 24_000,
        "take, by Ray": take / 10_000,
        "node_fixed": nodes,
    }


def _seconds(
    act: Callable[[], object], times: int = 10, clock: Callable[[], float] = time.process_time
) -> float:
    """Return the least time that something took, of the processor unless told otherwise."""
    taken = []
    for _ in range(times):
        begun = clock()
        act()
        taken.append(clock() - begun)
    return min(taken)


if __name__ == "__main__":
    typer.run(main)
