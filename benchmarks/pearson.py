"""The correlation experiment of §5.4.1: the more weights differ, the fewer queries a search needs.

    python benchmarks/pearson.py PAIR...

Of each pair's float original, x % of the weights are changed by ±10 %, for x = 10 … 50, and each
such model is searched from the same seeds. What correlates is x and the mean queries over the seeds
that deviate on none of the models; a search that found nothing counts with its whole budget. What a
smaller budget would have given is read off the same searches.
Each generator seed of --mutations draws other weights, in nested sets (see
tests/support/tflite_weights.py).
Every run is kept in --out and none is run twice, so the script can be stopped with Ctrl-C and
started again.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from rich.console import Console

from edgeflare.bench.grid import Grid, run_grid
from edgeflare.campaign.campaign_context import CHAINS
from edgeflare.cli.interruptible import interruptible
from edgeflare.core.goal import Find, Goal
from edgeflare.core.interrupt import Interrupt
from edgeflare.errors import EdgeFlareError
from edgeflare.models.pair import Pair, load_pair
from edgeflare.progress import watch_runs
from edgeflare.rank.model_runs import ModelRuns, read_runs
from edgeflare.record.atomic_file import write_atomically
from edgeflare.run.plan import Plan

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "support"))

from tflite_weights import Weights, mutated

PERCENTS = (10, 20, 30, 40, 50)
RESAMPLES = 2000

Values = NDArray[np.float64]


@dataclass(frozen=True)
class FoundByStrategy:
    """What one strategy found on the models of one pair.

    Attributes:
        queries: (generators of mutations, percents, seeds), infinite where nothing was found;
            seeds that deviate on none of the models.
        seconds: the same, of evaluation.

    """

    queries: Values
    seconds: Values


def main() -> int:
    arguments = parse()
    plan = Plan(
        strategy=arguments.strategies[0],
        goal=Goal(Find.ANY),
        devices=(arguments.device,),
        first=arguments.seeds,
        max_queries=arguments.max_queries,
        ensemble=("xnnpack",),
    )
    if not arguments.bounded:
        plan = replace(plan, max_linf=None, max_l2=None)  # as in the paper
    print(
        f"{arguments.seeds} seeds, mutation generators "
        f"{', '.join(map(str, arguments.mutations))}, at most {plan.max_queries:,} queries, "
        f"{plan.devices[0]}\n\n"
        "| pair | strategy | budget | success % | "
        + " | ".join(f"{x} %" for x in PERCENTS)
        + " | r | r of one generator | r with log x | r of seconds |\n"
        + "|---|---|--:|--:|"
        + "--:|" * (len(PERCENTS) + 4)
    )
    with interruptible() as interrupt:
        for folder in arguments.pairs:
            pair = load_pair(folder)
            models = mutants(pair, arguments.mutations, arguments.out)
            for strategy in arguments.strategies:
                grid = Grid((strategy,), (0,), strategy, replace(plan, strategy=strategy))
                out = arguments.out / pair.name
                found = search(grid, models, out, len(arguments.mutations), interrupt)
                if found is None:
                    return 130
                for budget in (b for b in arguments.budgets if b <= plan.max_queries):
                    print(row(pair.name, strategy, found, budget), flush=True)
    return 0


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("pairs", type=Path, nargs="+", help="pair folders with a float original")
    parser.add_argument(
        "--strategy", dest="strategies", nargs="+", default=["dflare-published", "boundary"]
    )
    parser.add_argument("--mutations", type=int, nargs="+", default=list(range(20)))
    parser.add_argument("--seeds", type=int, default=100, help="first seeds of each pair")
    parser.add_argument("--max-queries", type=int, default=3000, help="for each seed")
    parser.add_argument("--budgets", type=int, nargs="+", default=[3000, 1000, 300, 100])
    parser.add_argument("--bounded", action="store_true", help="within edgeflare's own bounds")
    parser.add_argument("--device", default="emulated-xnnpack")
    parser.add_argument("--out", type=Path, default=Path("runs/pearson"))
    return parser.parse_args()


def mutants(pair: Pair, generators: Sequence[int], out: Path) -> list[Pair]:
    """Write the changed models, and return each as the compressed model of a pair."""
    weights = Weights(Path(str(pair.original)).read_bytes(), str(pair.original))
    pairs = []
    for generator in generators:
        rng = np.random.default_rng(generator)
        for percent, content in mutated(weights, PERCENTS, rng).items():
            name = f"generator{generator}-{percent}"
            path = out / "models" / pair.name / f"{name}.tflite"
            if not path.exists():
                write_atomically(path, content)
            pairs.append(replace(pair, name=name, compressed=path))
    return pairs


def search(
    grid: Grid, pairs: list[Pair], out: Path, generators: int, interrupt: Interrupt
) -> FoundByStrategy | None:
    """Search every model; None if the user stopped it."""
    found: list[ModelRuns] = []
    for cell, _ in run_grid(
        grid,
        pairs,
        out,
        chains=CHAINS,
        watch=watch_runs(Console(stderr=True), lambda cell: str(cell.run)),
        interrupt=interrupt,
    ):
        found.append(read_runs([out / cell.run]))
    if len(found) < len(pairs):
        return None
    shared = sorted(frozenset.intersection(*(one.searched for one in found)))
    shape = (generators, len(PERCENTS), len(shared))
    queries = [np.nan_to_num(one.queries[shared], nan=np.inf) for one in found]
    seconds = [one.seconds[shared] for one in found]
    return FoundByStrategy(np.array(queries).reshape(shape), np.array(seconds).reshape(shape))


def row(pair: str, strategy: str, found: FoundByStrategy, budget: int) -> str:
    queries = np.minimum(found.queries, budget)
    means = queries.mean(axis=(0, 2))
    each = [correlation(one.mean(axis=1)) for one in queries]
    low, high = interval(queries)
    cells = (
        pair,
        strategy,
        f"{budget:,}",
        f"{(found.queries <= budget).mean() * 100:.1f}",
        *(f"{mean:.1f}" for mean in means),
        f"{correlation(means):.3f} ({low:.3f} to {high:.3f})",
        f"{np.median(each):.3f} ({min(each):.3f} to {max(each):.3f})",
        f"{np.corrcoef(np.log(PERCENTS), means)[0, 1]:.3f}",
        f"{correlation(found.seconds.mean(axis=(0, 2))):.3f}",
    )
    return f"| {' | '.join(cells)} |"


def correlation(means: Values) -> float:
    """Return Pearson's r between x and the mean of each x."""
    return float(np.corrcoef(PERCENTS, means)[0, 1])


def interval(queries: Values) -> tuple[float, float]:
    """Return the 95 % bootstrap interval of r over the seeds and the generators of mutations."""
    rng = np.random.default_rng(0)
    generators, _, seeds = queries.shape
    drawn = []
    for _ in range(RESAMPLES):
        some = queries[rng.integers(generators, size=generators)].mean(axis=0)
        drawn.append(correlation(some[:, rng.integers(seeds, size=seeds)].mean(axis=1)))
    low, high = np.quantile(drawn, (0.025, 0.975))
    return float(low), float(high)


if __name__ == "__main__":
    try:
        sys.exit(main())
    except EdgeFlareError as error:
        sys.exit(f"pearson: {error}")
