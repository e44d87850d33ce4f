"""How many queries a second the engine makes: on a quick link, a slow one, and two slow ones.

    python benchmarks/throughput.py [PAIR] [--device NAME]... [--first N] [--shrink N]

`random` with all three arms evaluated (`--find compression`), the journal on: on emulated-builtin,
on emulated-builtin-slow, which adds 20 ms to each round trip, and on two of the latter. They take
turns, so that whatever else the machine does meets all of them. Queries a second are of
`wall_seconds`; busy is the time for which the devices were computing; ratios are those of
neighbours. With few `--chains` the link decides, with many the machine's cores. With `--device`
each that is named is measured in their place, by itself: one whose kernels are slow, such as
emulated-reference, should never wait for the host. With `--shrink` it is the refinement of what
`boundary` finds that is measured, which asks the device about what would be kept alone, or, with
`--find kernel`, about all but probes, since no other kernels of the host answer in its place.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from statistics import median
from typing import NamedTuple
from unittest.mock import patch

from edgeflare.campaign.campaign_context import CHAINS
from edgeflare.campaign.campaign_record import describe_run, search_into
from edgeflare.campaign.observer import Unobserved
from edgeflare.campaign.pair_panel import open_pair
from edgeflare.campaign.plan_defaults import TWIN_KERNELS
from edgeflare.campaign.refinement_phase import RefinementPhase
from edgeflare.core.goal import Find, Goal
from edgeflare.core.interrupt import Interrupt
from edgeflare.devices.profile_lookup import find_profiles
from edgeflare.errors import EdgeFlareError
from edgeflare.models.pair import Pair, load_pair
from edgeflare.run.plan import Plan

EXAMPLE = Path(__file__).parents[1] / "examples" / "fashion_lenet4"
QUICK, SLOW = "emulated-builtin", "emulated-builtin-slow"
BENCHES = {QUICK: (QUICK,), SLOW: (SLOW,), "two such": (SLOW, SLOW)}


def main() -> None:
    arguments = parse()
    pair = load_pair(arguments.pair)
    print(f"{pair.name}, {arguments.chains} chains, {os.cpu_count()} cores\n")
    print("| devices | queries | on the device | s | queries/s | device busy | load before |")
    print("|---|--:|--:|--:|--:|--:|--:|", flush=True)
    benches = {name: (name,) for name in arguments.device} or BENCHES
    speeds: dict[str, list[float]] = {bench: [] for bench in benches}
    for _ in range(arguments.times):
        for bench, devices in benches.items():
            load = os.getloadavg()[0]
            spent = measure(pair, devices, arguments)
            speeds[bench].append(spent.queries / spent.seconds)
            print(
                f"| {bench} | {spent.queries:,} | {spent.device_queries:,} | {spent.seconds:.2f}"
                f" | {speeds[bench][-1]:,.0f} | {spent.busy / spent.seconds:.0%} | {load:.1f} |",
                flush=True,
            )
    if arguments.device:
        return
    quick, slow, two = speeds.values()
    print(
        f"\nmedians: {median(quick):,.0f}, {median(slow):,.0f} and {median(two):,.0f} queries/s;"
        f" slow / quick {ratio(slow, quick):.0%}, two slow / one {ratio(two, slow):.2f}"
    )


def ratio(ours: Sequence[float], theirs: Sequence[float]) -> float:
    return median(a / b for a, b in zip(ours, theirs, strict=True))


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("pair", type=Path, nargs="?", default=EXAMPLE, help="a pair folder")
    parser.add_argument("--device", action="append", default=[], help="measure this one instead")
    parser.add_argument("--first", type=int, help="seeds that are searched from; all by default")
    parser.add_argument("--max-queries", type=int, default=200, help="for each seed")
    parser.add_argument(
        "--find", default="compression", help="what counts: compression, kernel, any"
    )
    parser.add_argument("--shrink", type=int, default=0, help="measure the refinement, so long")
    parser.add_argument("--times", type=int, default=3, help="runs of each")
    parser.add_argument("--chains", type=int, default=CHAINS, help="for each device")
    return parser.parse_args()


class SpentTime(NamedTuple):
    """What searching, or refining, spent: seconds, and those for which devices were computing."""

    queries: int
    device_queries: int
    seconds: float
    busy: float


@contextmanager
def busy_while_refining() -> Iterator[list[float]]:
    """Give the seconds for which devices compute while findings are refined, of each batch."""
    busy: list[float] = []

    def add_time(phase: RefinementPhase, device_busy_seconds: float) -> None:
        busy.append(device_busy_seconds)
        counted(phase, device_busy_seconds)

    counted = RefinementPhase.add_time
    with patch.object(RefinementPhase, "add_time", add_time):
        yield busy


def measure(pair: Pair, devices: Sequence[str], asked: argparse.Namespace) -> SpentTime:
    """Return what one campaign spent on its search, or on its refinement."""
    profiles = find_profiles(devices)
    names = tuple(profile.name for profile in profiles)
    plan = Plan(
        "boundary" if asked.shrink else "random",
        Goal(Find(asked.find)),
        names,
        first=asked.first,
        max_queries=asked.max_queries,
        shrink=asked.shrink,
        ensemble=(TWIN_KERNELS,) if asked.find == "kernel" else (),
    )
    with ExitStack() as stack:
        busy = stack.enter_context(busy_while_refining())
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        opened = open_pair(pair, plan, profiles, stack)
        totals = search_into(
            folder / "run",
            opened,
            describe_run(opened, plan),
            observer=Unobserved(),
            interrupt=Interrupt(),
            chains=asked.chains,
        ).totals
    if asked.shrink:
        queries, on_device = totals.refine_queries or 0, totals.refine_device_queries or 0
        return SpentTime(queries, on_device, totals.refine_seconds, sum(busy))
    return SpentTime(
        totals.queries, totals.device_queries, totals.wall_seconds, totals.device_busy_seconds
    )


if __name__ == "__main__":
    try:
        main()
    except EdgeFlareError as error:
        sys.exit(f"throughput: {error}")
