"""How many queries a second the engine makes, on a quick link and on a slow one.

    python benchmarks/throughput.py [PAIR]

`random` with all three arms evaluated (`--find compression`), the journal on: on emulated-builtin,
and on emulated-builtin-slow, which adds 20 ms to each round trip. The two take turns, so that
whatever else the machine does meets both. Queries a second are of `wall_seconds`; the device's
share is the time for which it was computing; the ratio is that of neighbours.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path
from statistics import median

from edgeflare.campaign.assembly import assemble
from edgeflare.campaign.campaign import Interrupt
from edgeflare.campaign.plan import Plan
from edgeflare.campaign.run import begin_run
from edgeflare.campaign.setting import CHAINS, Progress
from edgeflare.devices.profile import find_profile
from edgeflare.errors import EdgeFlareError
from edgeflare.models.pair import Pair, load_pair
from edgeflare.report.document import Document
from edgeflare.report.documented import run_documented
from edgeflare.search.goal import Find, Goal

EXAMPLE = Path(__file__).parents[1] / "examples" / "fashion_lenet4"
DEVICES = ("emulated-builtin", "emulated-builtin-slow")


def main() -> None:
    arguments = parse()
    pair = load_pair(arguments.pair)
    print(f"{pair.name}, {arguments.chains} chains, {os.cpu_count()} cores\n")
    print("| device | queries | wall s | queries/s | device busy | load before |")
    print("|---|--:|--:|--:|--:|--:|", flush=True)
    speeds: dict[str, list[float]] = {device: [] for device in DEVICES}
    for _ in range(arguments.times):
        for device in DEVICES:
            load = os.getloadavg()[0]
            totals = measure(pair, device, arguments.max_queries, arguments.chains)["totals"]
            seconds = totals["wall_seconds"]
            speeds[device].append(totals["queries"] / seconds)
            busy = totals["device_busy_seconds"] / seconds
            print(
                f"| {device} | {totals['queries']:,} | {seconds:.2f} | {speeds[device][-1]:,.0f} "
                f"| {busy:.0%} | {load:.1f} |",
                flush=True,
            )
    quick, slow = (speeds[device] for device in DEVICES)
    ratio = median(b / a for a, b in zip(quick, slow, strict=True))
    print(f"\nmedians: {median(quick):,.0f} and {median(slow):,.0f} queries/s, ratio {ratio:.0%}")


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("pair", type=Path, nargs="?", default=EXAMPLE, help="a pair folder")
    parser.add_argument("--max-queries", type=int, default=200, help="for each seed")
    parser.add_argument("--times", type=int, default=3, help="runs on each device")
    parser.add_argument("--chains", type=int, default=CHAINS)
    return parser.parse_args()


def measure(pair: Pair, device: str, max_queries: int, chains: int) -> Document:
    """Return the document of one campaign."""
    goal = Goal(Find.COMPRESSION)
    plan = Plan("random", goal, (device,), max_queries=max_queries)
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        assembly = assemble(pair, goal.find, None, [find_profile(device)], stack)
        seeds = len(assembly.seeds)
        directory, journal = begin_run(folder / "run", assembly.about(plan), seeds, overwrite=False)
        stack.callback(journal.close)
        return run_documented(assembly, plan, directory, journal, Silent(), Interrupt(), chains)


class Silent:
    """An observer that says nothing."""

    def warned(self, line: str) -> None:
        """Say nothing."""

    def screened(self, done: int, total: int) -> None:
        """Say nothing."""

    def searched(self, progress: Progress) -> None:
        """Say nothing."""

    def refined(self, done: int, total: int) -> None:
        """Say nothing."""

    def verified(self, done: int, total: int) -> None:
        """Say nothing."""


if __name__ == "__main__":
    try:
        main()
    except EdgeFlareError as error:
        sys.exit(f"throughput: {error}")
