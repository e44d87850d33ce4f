"""`edgeflare rank`: choose among compressed models of one original."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from edgeflare.bench.bench_document import heading
from edgeflare.bench.grid import (
    Grid,
    check_folder,
    claimed_folder,
    open_grid_pair,
    require_runnable,
)
from edgeflare.campaign.campaign_context import CHAINS
from edgeflare.cli import pair_options, run_options, search_options
from edgeflare.cli.command_on_fleet import OnlyRun, make_only_run, runs_on_fleet
from edgeflare.cli.console import Console
from edgeflare.cli.fleet_options import FleetOptions
from edgeflare.cli.interruptible import INTERRUPTED, interruptible, resumable_work
from edgeflare.cli.option_values import complete_strategy, read_operators, read_whole_numbers
from edgeflare.cli.quiet import Quiet, result
from edgeflare.core.goal import Find
from edgeflare.core.interrupt import Interrupt
from edgeflare.core.seeds import SeedChoice
from edgeflare.errors import UserError
from edgeflare.models.pair import Pair
from edgeflare.pages.terminal import print_section
from edgeflare.progress import say, watch_runs
from edgeflare.rank.candidates import gather
from edgeflare.rank.model_measurements import check_labelled, measure_all, search_all
from edgeflare.rank.rank_document import write_ranking
from edgeflare.rank.rank_section import ranking_section, sentences
from edgeflare.rank.ranking import Candidate
from edgeflare.rank.ranking import rank as put_in_order
from edgeflare.run.plan import SHRINK
from edgeflare.strategies.operator_pool import BUILT_IN
from edgeflare.strategies.strategy_registry import find_strategy
from edgeflare.trust import decided_by_user

DEFAULT_STRATEGY = "dflare-published"
"""What tells compressed models apart with the fewest seeds; see docs/rank.md."""

Pairs = Annotated[
    list[Path] | None,
    typer.Argument(
        metavar="PAIR",
        help="Folders that hold a pair.toml: a model each, all of one original.",
    ),
]
Compressed = Annotated[
    list[str] | None,
    typer.Option(
        "--compressed",
        metavar="MODEL",
        help="A further compressed .tflite; all else is as in the first PAIR. Give it once for "
        "each model.",
    ),
]
Labelled = Annotated[
    Path | None,
    typer.Option(
        "--test",
        metavar="FILE",
        help="Labelled inputs, such as the test set, for accuracy and deviation rate: seeds are "
        "often chosen so that all models are right on them.",
    ),
]
Strategy = Annotated[
    str,
    typer.Option(
        "--strategy",
        metavar="NAME",
        autocompletion=complete_strategy,
        help="How to search; see `edgeflare search --help`.",
    ),
]
RngSeeds = Annotated[
    str,
    typer.Option(metavar="NUMBERS", help="Run seeds, separated by commas; each is a run of each."),
]
Shrink = Annotated[
    int,
    typer.Option(
        min=0,
        metavar="N",
        help="Bring each finding nearer to its seed, with at most N queries: by that the area is "
        "measured. Changes nothing else; 0 leaves the area out.",
    ),
]
Out = Annotated[
    Path, typer.Option(metavar="DIR", help="The folder of the ranking, absent or empty.")
]
Resume = Annotated[
    bool,
    typer.Option("--resume", help="Go on with the ranking in --out; what was done stays."),
]


@run_options.with_option_groups
def rank(
    context: typer.Context,
    out: Out,
    pairs: Pairs = None,
    original: pair_options.Original = None,
    compressed: Compressed = None,
    seeds: pair_options.Seeds = None,
    *,
    preprocessing: pair_options.Preprocessing,
    labelled: Labelled = None,
    limit: pair_options.Limit = None,
    first: pair_options.First = None,
    device: search_options.Device = "emulated-builtin",
    strategy: Strategy = DEFAULT_STRATEGY,
    parameters: search_options.SetParameters = None,
    rng_seeds: RngSeeds = "0",
    limits: search_options.SearchLimits,
    bounds: search_options.MutantBounds,
    operators: search_options.Operators = BUILT_IN,
    shrink: Shrink = SHRINK,
    chains: search_options.Chains = CHAINS,
    on_fleet: FleetOptions,
    only: OnlyRun = None,
    resume: Resume = False,
    dry_run: run_options.DryRun = False,
    trust: run_options.Trust = False,
    _quiet: Quiet = False,
) -> int:
    """Rank compressed models of one original: the more queries a deviation takes, the better.

    Accuracy often cannot tell compressed models apart; how hard they are to make deviate may. Each
    is searched from the same seeds with the same budget, and the rank says which differences
    chance does not explain. Beside queries stands how near to the seeds the findings lie, once
    they are shrunk. Each search is a run directory, DIR/MODEL/STRATEGY-RNGSEED;
    DIR/rank.json and DIR/rank.md hold the result.

    Exit codes are those of `search`, but for 1: that something deviates is the point here.
    """
    _require_queries(strategy)
    decided = decided_by_user(trust)
    grid = Grid(
        strategies=(strategy,),
        rng_seeds=read_whole_numbers("--rng-seeds", rng_seeds),
        baseline=strategy,
        plan=replace(
            search_options.make_plan(
                strategy,
                Find.ANY,
                (device,),
                SeedChoice(limit, first),
                limits,
                bounds,
                parameters or (),
            ),
            shrink=shrink,
            operators=read_operators(operators, [strategy]),
        ),
        trust=decided,
    )
    given = preprocessing.settings(original, seeds)
    models = gather(pairs or [], compressed or [], given, decided)
    grid = grid.with_pool_of(models[0].interface.domain_name)
    grid = grid if only is None else grid.with_only(only, models)
    check_folder(out, resume=resume, holds="ranking")
    if on_fleet.fleet is not None:
        if labelled is not None:
            check_labelled(models[0], labelled)  # which is measured last
        return runs_on_fleet("rank", grid, models, on_fleet, out, resume=resume, dry_run=dry_run)
    on_fleet.require_complete()
    if dry_run:
        _try(Console(), grid, models, labelled, out)
        return 0
    context.with_resource(claimed_folder(out, resume=resume, holds="ranking"))
    if only is not None:
        return make_only_run(grid, models, out, chains=chains)
    return _run(grid, models, labelled, out, chains)


def _run(grid: Grid, models: Sequence[Pair], labelled: Path | None, out: Path, chains: int) -> int:
    """Measure and search the models, rank them, and return the exit code."""
    console = Console(stderr=True)
    with resumable_work(), interruptible() as interrupt:
        candidates = _gather_facts(console, grid, models, labelled, out, chains, interrupt)
    if candidates is None:
        say(
            console,
            f"stopped: what is complete is in {out}, nothing is ranked until all is; the same "
            "command with --resume goes on",
        )
        return INTERRUPTED
    plan = grid.plan
    ranking = put_in_order(candidates, plan.max_queries)
    lines = sentences(ranking, plan.strategy, plan.max_queries)
    runs = {model.name: [cell.run.as_posix() for cell in grid.cells(model)] for model in models}
    shown = ranking_section(ranking, heading(grid), lines)
    with resumable_work():
        write_ranking(ranking, grid, runs, lines, shown, out)
    print_section(Console(), shown)
    result(out)
    return 0


def _require_queries(strategy: str) -> None:
    """Refuse a strategy whose queries say nothing about a model."""
    if find_strategy(strategy).strategy.needs_gradients:
        raise UserError(
            f"--strategy {strategy}: models are ranked by the queries that a deviation takes, and"
            f" {strategy} spends gradients instead of them: say --strategy boundary, or leave the"
            " option out"
        )


def _gather_facts(
    console: Console,
    grid: Grid,
    models: Sequence[Pair],
    labelled: Path | None,
    out: Path,
    chains: int,
    interrupt: Interrupt,
) -> list[Candidate] | None:
    """Measure all models, then search all: so no search warms the device before the last."""

    def telling(pair: Pair) -> None:
        say(console, f"measuring {models.index(pair) + 1} of {len(models)}: {pair.name}")

    measured = measure_all(grid, models, out, labelled, telling, interrupt)
    if measured is None:
        return None
    total = len(models) * len(grid.rng_seeds)
    number = iter(range(1, total + 1))
    watch = watch_runs(console, lambda cell: f"run {next(number)} of at most {total}: {cell.run}")
    searched = search_all(grid, models, out, chains, watch, interrupt)
    if searched is None:
        return None
    return [Candidate(*measures) for measures in zip(models, measured, searched, strict=True)]


def _try(
    console: Console, grid: Grid, models: Sequence[Pair], labelled: Path | None, out: Path
) -> None:
    """Open what a ranking would open, and say what it would do."""
    if labelled is not None:
        inputs = check_labelled(models[0], labelled)
        say(console, f"{inputs} labelled input{'s' * (inputs != 1)}")
    for pair in models:
        if not any(grid.cells(pair)):
            continue
        with ExitStack() as stack:
            opened = open_grid_pair(grid, pair, stack)
            require_runnable(grid, pair, opened, out)
            seeds = len(opened.seeds)
            say(
                console,
                f"{pair.name}: {seeds} seed{'s' * (seeds != 1)}, opens on {grid.device}",
            )
        for note in pair.notes:
            say(console, f"warning: {note}")
    runs = sum(len(list(grid.cells(model))) for model in models)
    say(
        console,
        f"would make {runs} run{'s' * (runs != 1)} of {grid.plan.strategy} in {out}; nothing was"
        " written",
    )
