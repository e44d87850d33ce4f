"""The published search and its kin on a folder of pairs: success, queries, seconds, side by side.

    python benchmarks/baselines.py PAIRS_FOLDER

Four tables in Markdown: `--find any` on a device with XNNPACK and `--find kernel` on one with the
built-in kernels, ties excluded and included. Mutants are not bounded, since the published search
does not bound them. Every run is kept in --out and none is run twice, so the script can be stopped
with Ctrl-C and started again.
"""

from __future__ import annotations

import argparse
import sys
from itertools import product
from pathlib import Path

from rich.console import Console

from edgeflare.bench.bench_document import Bench, bench_section, write_bench
from edgeflare.bench.grid import Grid, run_grid
from edgeflare.campaign.campaign_context import CHAINS
from edgeflare.cli.interruptible import interruptible
from edgeflare.core.goal import Find, Goal
from edgeflare.core.interrupt import Interrupt
from edgeflare.errors import EdgeFlareError
from edgeflare.models.pair import Pair, load_pair
from edgeflare.pages.markdown import markdown_section
from edgeflare.progress import watch_runs
from edgeflare.run.plan import Plan

STRATEGIES = ("dflare-published", "dflare", "dflare-r", "random")
QUESTIONS = ((Find.ANY, "emulated-xnnpack"), (Find.KERNEL, "emulated-builtin"))
TIES = (False, True)


def main() -> int:
    arguments = parse()
    pairs = [load_pair(file.parent) for file in sorted(arguments.folder.glob("*/pair.toml"))]
    chosen = [pair for pair in pairs if pair.name in (arguments.pairs or [pair.name])]
    if not chosen:
        print(f"there are no such pairs in {arguments.folder}", file=sys.stderr)
        return 2
    with interruptible() as interrupt:
        for (find, device), ties in product(QUESTIONS, TIES):
            if find.value in arguments.find and not interrupt.asked():
                plan = Plan(
                    strategy=STRATEGIES[0],
                    goal=Goal(find, ties),
                    devices=(device,),
                    first=arguments.seeds,
                    max_queries=arguments.max_queries,
                    ensemble=("xnnpack",),
                    max_linf=None,
                    max_l2=None,
                )
                grid = Grid(STRATEGIES, tuple(arguments.rng_seeds), STRATEGIES[0], plan)
                folder = arguments.out / f"{find}-ties-{'included' if ties else 'excluded'}"
                print(measure(grid, chosen, folder, interrupt), flush=True)
    return 0


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path, help="holds pair folders")
    parser.add_argument("--pairs", nargs="+", help="names of the pairs; all by default")
    parser.add_argument("--find", nargs="+", choices=["any", "kernel"], default=["any", "kernel"])
    parser.add_argument("--seeds", type=int, default=60, help="first seeds of each pair")
    parser.add_argument("--rng-seeds", type=int, nargs="+", default=[0])
    parser.add_argument("--max-queries", type=int, default=3000, help="for each seed")
    parser.add_argument("--out", type=Path, default=Path("runs/baselines"))
    return parser.parse_args()


def measure(grid: Grid, pairs: list[Pair], out: Path, interrupt: Interrupt) -> str:
    """Return the table of what has been run by the end, or by Ctrl-C."""
    bench = Bench(grid, [])
    for run in run_grid(
        grid,
        pairs,
        out,
        chains=CHAINS,
        watch=watch_runs(
            Console(stderr=True), lambda cell: f"find {cell.plan.goal.find}: {cell.run}"
        ),
        interrupt=interrupt,
    ):
        bench.runs.append(run)
    rows = bench.rows()
    write_bench(bench, rows, out)
    return markdown_section(bench_section(grid, rows))


if __name__ == "__main__":
    try:
        sys.exit(main())
    except EdgeFlareError as error:
        sys.exit(f"baselines: {error}")
