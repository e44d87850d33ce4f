"""`edgeflare bench`: strategies side by side."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from edgeflare.bench.bench_document import Bench, bench_section, draw_queries, write_bench
from edgeflare.bench.grid import (
    Grid,
    check_folder,
    check_pairs,
    claimed_folder,
    open_grid_pair,
    require_runnable,
    run_grid,
)
from edgeflare.campaign.campaign_context import CHAINS
from edgeflare.cli import pair_options, run_options, search_options
from edgeflare.cli.command_on_fleet import OnlyRun, make_only_run, runs_on_fleet
from edgeflare.cli.console import Console
from edgeflare.cli.fleet_options import FleetOptions
from edgeflare.cli.interruptible import INTERRUPTED, interruptible, resumable_work
from edgeflare.cli.option_values import (
    complete_strategy,
    read_operators,
    read_parameters,
    read_parts,
    read_whole_numbers,
)
from edgeflare.cli.quiet import Quiet, result
from edgeflare.core.goal import Find
from edgeflare.core.seeds import SeedChoice
from edgeflare.errors import UserError
from edgeflare.models.compressed_model import read_ensemble
from edgeflare.models.pair import Pair, load_pair
from edgeflare.pages.facts import count_of
from edgeflare.pages.terminal import print_section
from edgeflare.progress import say, watch_runs
from edgeflare.strategies.operator_pool import BUILT_IN
from edgeflare.strategies.strategy_registry import strategies as known_strategies
from edgeflare.trust import decided_by_user

Pairs = Annotated[list[Path], typer.Argument(metavar="PAIR", help="Folders that hold a pair.toml.")]
Strategies = Annotated[
    list[str] | None,
    typer.Option(
        "--strategy",
        metavar="NAME",
        autocompletion=complete_strategy,
        help="A strategy to compare; give it once for each. If not given, all"
        " that need no gradients.",
    ),
]
SeparatedStrategies = Annotated[str | None, typer.Option("--strategies", hidden=True)]
SetParameters = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="STRATEGY.NAME=VALUE",
        help="Set a parameter of a strategy; may be given several times. `edgeflare strategies"
        " NAME` lists them.",
    ),
]
Baseline = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        autocompletion=complete_strategy,
        help="The strategy whose queries the others' are divided by; the first if not given.",
    ),
]
RngSeeds = Annotated[
    str, typer.Option(metavar="NUMBERS", help="Run seeds, separated by commas; each is a run.")
]
Out = Annotated[Path, typer.Option(metavar="DIR", help="The folder of the bench, absent or empty.")]
Resume = Annotated[
    bool,
    typer.Option("--resume", help="Go on with the bench in --out; runs that ended stay."),
]


@run_options.with_option_groups
def bench(
    context: typer.Context,
    pairs: Pairs,
    out: Out,
    strategy: Strategies = None,
    parameters: SetParameters = None,
    baseline: Baseline = None,
    rng_seeds: RngSeeds = "0,1,2",
    *,
    limit: pair_options.Limit = None,
    first: pair_options.First = None,
    device: search_options.Device = "emulated-builtin",
    find: search_options.FindWhat = Find.ANY,
    limits: search_options.SearchLimits,
    bounds: search_options.MutantBounds,
    ensemble: search_options.Ensemble = None,
    operators: search_options.Operators = BUILT_IN,
    chains: search_options.Chains = CHAINS,
    on_fleet: FleetOptions,
    only: OnlyRun = None,
    resume: Resume = False,
    dry_run: run_options.DryRun = False,
    trust: run_options.Trust = False,
    strategies: SeparatedStrategies = None,
    _quiet: Quiet = False,
) -> int:
    """Run strategies on pairs with several run seeds, and print them side by side.

    Each run is a run directory of its own, DIR/PAIR/STRATEGY-RNGSEED; DIR/bench.json and
    DIR/table.md sum them up, and with the extra `plots` DIR/queries.svg draws them. Exit codes are
    those of `search`, but for 1: that something deviates is the point here.
    """
    separated = read_parts("--strategies", strategies) if strategies else []
    without_extra = [
        name for name, known in known_strategies().items() if not known.strategy.needs_gradients
    ]
    names = tuple(strategy or separated or without_extra)
    kernels, elsewhere = read_ensemble(ensemble)
    decided = decided_by_user(trust)
    grid = Grid(
        strategies=names,
        rng_seeds=read_whole_numbers("--rng-seeds", rng_seeds),
        baseline=names[0] if baseline is None else baseline,
        plan=replace(
            search_options.make_plan(
                names[0], find, (device,), SeedChoice(limit, first), limits, bounds
            ),
            ensemble=kernels,
            elsewhere=elsewhere,
            operators=read_operators(operators, names),
        ),
        trust=decided,
        parameters=read_parameters(parameters or (), names),
    )
    loaded = [load_pair(pair, trust=decided, seeds_option="") for pair in pairs]
    check_pairs(loaded)
    grid = grid.with_pool_of(loaded[0].interface.domain_name)
    grid = grid if only is None else grid.with_only(only, loaded)
    check_folder(out, resume=resume)
    if on_fleet.fleet is not None:
        return runs_on_fleet("bench", grid, loaded, on_fleet, out, resume=resume, dry_run=dry_run)
    on_fleet.require_complete()
    if dry_run:
        _try(Console(), grid, loaded, out)
        return 0
    context.with_resource(claimed_folder(out, resume=resume))
    if only is not None:
        return make_only_run(grid, loaded, out, chains=chains)
    return _run(grid, loaded, out, chains=chains)


def _run(grid: Grid, pairs: Sequence[Pair], out: Path, *, chains: int) -> int:
    """Make the runs of a bench, sum up those that ended, and return the exit code."""
    console = Console(stderr=True)
    so_far = Bench(grid, [])
    total = len(pairs) * len(grid.strategies) * len(grid.rng_seeds)
    watch = watch_runs(console, lambda cell: f"run {len(so_far.runs) + 1} of {total}: {cell.run}")
    try:
        with resumable_work(), interruptible() as interrupt:
            runs = run_grid(
                grid,
                pairs,
                out,
                chains=chains,
                watch=watch,
                interrupt=interrupt,
            )
            for run in runs:
                so_far.runs.append(run)  # one by one: progress counts them
    finally:
        if so_far.runs:
            rows = so_far.rows()
            with resumable_work():
                write_bench(so_far, rows, out)
                try:
                    draw_queries(so_far, out / "queries.svg")
                except UserError as error:
                    say(console, f"no figure: {error}")
            print_section(Console(), bench_section(so_far.grid, rows))
            result(out)
    if not interrupt.asked() or len(so_far.runs) == total:
        return 0
    say(
        console,
        f"stopped: {len(so_far.runs)} of {count_of(total, 'run')} are done, in {out}; the same"
        " command with --resume goes on",
    )
    return INTERRUPTED


def _try(console: Console, grid: Grid, pairs: Sequence[Pair], out: Path) -> None:
    """Open what a bench would open, and say what it would do."""
    for pair in pairs:
        if not any(grid.cells(pair)):
            continue
        with ExitStack() as stack:
            opened = open_grid_pair(grid, pair, stack)
            require_runnable(grid, pair, opened, out)
            say(
                console,
                f"{pair.name}: {count_of(len(opened.seeds), 'seed')}, opens on {grid.device}",
            )
    runs = sum(len(list(grid.cells(pair))) for pair in pairs)
    say(console, f"would make {runs} run{'s' * (runs != 1)} in {out}; nothing was written")
