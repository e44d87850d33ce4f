"""Which search, and which measure, tells compressed models apart: pruned, calibrated, or others.

    python benchmarks/rank.py PAIR --prune 0.6 --calibrate 1 20 --compressed MODEL...

As in §5.4.2 of the paper, the smallest weights of one layer of the pair's float original are set
to 0, a model for each layer. The pair's int8 model is calibrated anew on its first so many seeds,
or on its seeds of one class. The model itself and those of --compressed join them. They are ranked
by each strategy on the same seeds, as `edgeflare rank` does. The last table says how well each
strategy tells them apart, by queries and by area: how many comparisons are significant, how often
a draw of as many seeds orders two models as all of these seeds do, and, of the comparisons that
the deviations on the labelled set tell apart, how many come out the same way and how many the
contrary. Its queries are those of the searches, and for the area those of shrinking too.
Every run is kept in --out and none is run twice, so the script can be stopped with Ctrl-C and
started again.
"""

from __future__ import annotations

import argparse
import sys
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import fmean, median

from rich.console import Console

from edgeflare.bench.bench_document import heading
from edgeflare.bench.grid import Grid
from edgeflare.campaign.campaign_context import CHAINS
from edgeflare.cli.interruptible import interruptible
from edgeflare.core.goal import Find, Goal
from edgeflare.core.interrupt import Interrupt
from edgeflare.errors import EdgeFlareError, UserError
from edgeflare.models.model_inputs import ModelInputs
from edgeflare.models.pair import Pair, load_pair
from edgeflare.models.pair_file import Settings
from edgeflare.models.tflite import open_tflite
from edgeflare.pages.markdown import markdown_section
from edgeflare.progress import watch_runs
from edgeflare.rank.candidates import gather
from edgeflare.rank.model_measurements import measure_all, search_all
from edgeflare.rank.rank_section import ranking_section, sentences
from edgeflare.rank.ranking import Candidate, Ranking, rank
from edgeflare.record.atomic_file import write_atomically
from edgeflare.run.load_document import load_document
from edgeflare.run.plan import SHRINK, Plan
from edgeflare.run.run_directory import RunDirectory

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "support"))
sys.path.insert(0, str(Path(__file__).resolve().parent / "support"))

from calibration import recalibrated
from tflite_weights import Weights, pruned


@dataclass(frozen=True)
class QueriesSpent:
    """Queries of the searches, and of the shrinking of what they found."""

    searching: int
    shrinking: int


def main() -> int:
    arguments = parse()
    models = candidates(arguments)
    plan = Plan(
        strategy=arguments.strategies[0],
        goal=Goal(Find.ANY),
        devices=(arguments.device,),
        first=arguments.seeds,
        max_queries=arguments.max_queries,
        ensemble=("xnnpack",),
        shrink=arguments.shrink,
    )
    rankings: dict[str, tuple[Ranking, QueriesSpent]] = {}
    with interruptible() as interrupt:
        for strategy in arguments.strategies:
            chosen = replace(plan, strategy=strategy)
            grid = Grid((strategy,), tuple(arguments.rng_seeds), strategy, chosen)
            ranking = put_in_order(grid, models, arguments, interrupt)
            if ranking is None:
                return 130
            rankings[strategy] = ranking, spent(grid, models, arguments.out)
            told = sentences(ranking, strategy, plan.max_queries)
            shown = ranking_section(ranking, f"{strategy} · {heading(grid)}", told)
            print(markdown_section(shown), flush=True)
    print(separation(rankings))
    return 0


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("pair", type=Path, help="pair folder")
    parser.add_argument("--compressed", nargs="+", default=[], help="further compressed models")
    parser.add_argument("--original", help="instead of the pair's")
    parser.add_argument("--seed-inputs", help="instead of the pair's")
    parser.add_argument("--prune", type=float, help="share of a layer's weights, such as 0.6")
    parser.add_argument("--calibrate", type=int, nargs="+", default=[], help="numbers of seeds")
    parser.add_argument("--calibrate-on", type=int, nargs="+", default=[], help="classes")
    parser.add_argument("--test", dest="labelled", type=Path, help="an .npz of labelled images")
    parser.add_argument(
        "--strategy",
        dest="strategies",
        nargs="+",
        default=["dflare-published", "dflare", "boundary", "random"],
    )
    parser.add_argument("--seeds", type=int, default=100, help="first seeds of the pair")
    parser.add_argument("--rng-seeds", type=int, nargs="+", default=[0])
    parser.add_argument("--max-queries", type=int, default=3000, help="for each seed")
    parser.add_argument("--shrink", type=int, default=SHRINK, help="queries for each finding")
    parser.add_argument("--device", default="emulated-xnnpack")
    parser.add_argument("--out", type=Path, default=Path("runs/rank"))
    return parser.parse_args()


def candidates(arguments: argparse.Namespace) -> list[Pair]:
    """Return the models that are ranked; those that are made for it are written first."""
    given = Settings(original=arguments.original, seeds=arguments.seed_inputs)
    pair = load_pair(arguments.pair, given)
    made: dict[str, bytes] = {}
    if arguments.prune is not None:
        weights = Weights(Path(str(pair.original)).read_bytes(), str(pair.original))
        for layer in range(len(weights.layers)):
            made[f"layer{layer + 1}"] = pruned(weights, layer, arguments.prune)
    if arguments.calibrate or arguments.calibrate_on:
        made |= calibrated(pair, arguments.calibrate, arguments.calibrate_on)
    paths = []
    for name, content in made.items():
        path = arguments.out / "models" / f"{name}.tflite"
        write_atomically(path, content)
        paths.append(str(path))
    return gather([arguments.pair], [*paths, *arguments.compressed], given)


def calibrated(pair: Pair, numbers: list[int], classes: list[int]) -> dict[str, bytes]:
    """Return the pair's int8 model calibrated on some of its seeds."""
    content = pair.compressed.read_bytes()
    with closing(open_tflite(pair.compressed)) as model:
        inputs = ModelInputs(pair.interface, model.signature.inputs, str(pair.compressed))
    seeds = inputs.load(pair.seeds)
    encoded = inputs.encoder().encode(seeds.inputs)
    made = {f"calibrated{number}": recalibrated(content, encoded[:number]) for number in numbers}
    for one in classes:
        if seeds.labels is None:
            raise UserError(f"{pair.seeds} has no labels: calibrate by --calibrate alone")
        made[f"calibrated-on-class{one}"] = recalibrated(content, encoded[seeds.labels == one])
    return made


def put_in_order(
    grid: Grid, models: list[Pair], arguments: argparse.Namespace, interrupt: Interrupt
) -> Ranking | None:
    """Rank the models by one strategy; None if the user stopped it."""
    out = arguments.out
    measured = measure_all(grid, models, out, arguments.labelled, lambda _: None, interrupt)
    if measured is None:
        return None
    searched = search_all(
        grid,
        models,
        out,
        CHAINS,
        watch_runs(Console(stderr=True), lambda cell: str(cell.run)),
        interrupt,
    )
    if searched is None:
        return None
    facts = [Candidate(*one) for one in zip(models, measured, searched, strict=True)]
    return rank(facts, grid.plan.max_queries)


def spent(grid: Grid, models: list[Pair], out: Path) -> QueriesSpent:
    """Return what the runs of all models took."""
    documents = [
        load_document(RunDirectory(out / cell.run)) for pair in models for cell in grid.cells(pair)
    ]
    refined = [finding.refined for one in documents for finding in one.findings]
    return QueriesSpent(
        sum(one.totals.queries for one in documents),
        sum(one.queries for one in refined if one is not None),
    )


def separation(rankings: dict[str, tuple[Ranking, QueriesSpent]]) -> str:
    """Return the table that sets the strategies and the measures side by side."""
    lines = [
        "| strategy | measure | significant | order kept % | median effect | as the set | "
        "contrary | queries |",
        "|---|---|--:|--:|--:|--:|--:|--:|",
    ]
    for strategy, (ranking, costs) in rankings.items():
        known = told_by_set(ranking)
        for measure, sign, compared, queries in (
            ("queries", 1.0, ranking.comparisons, costs.searching),
            ("area", -1.0, ranking.area_comparisons, costs.searching + costs.shrinking),
        ):
            if not compared:
                continue
            significant = [one for one in compared if one.significant]
            kept = fmean(one.order_kept for one in compared) * 100.0
            effect = median(abs(one.effect or 0.0) for one in compared)
            agree = [
                known[one.first, one.second] == (one.difference.value * sign > 0.0)
                for one in significant
                if (one.first, one.second) in known
            ]
            lines.append(
                f"| `{strategy}` | {measure} | {len(significant)} of {len(compared)} | {kept:.1f} "
                f"| {effect:.2f} | {sum(agree)} of {len(known)} | {len(agree) - sum(agree)} "
                f"| {queries:,} |"
            )
    return "\n".join(lines)


def told_by_set(ranking: Ranking) -> dict[tuple[int, int], bool]:
    """Return the comparisons that the labelled set tells apart, and whether the first is better.

    It does where the intervals of the shares of images that deviate do not overlap.
    """
    known = {}
    for one in ranking.comparisons:
        first = ranking.models[one.first].labelled_deviation_rate
        second = ranking.models[one.second].labelled_deviation_rate
        if first and second and (first.high < second.low or second.high < first.low):
            known[one.first, one.second] = first.high < second.low
    return known


if __name__ == "__main__":
    try:
        sys.exit(main())
    except EdgeFlareError as error:
        sys.exit(f"rank: {error}")
