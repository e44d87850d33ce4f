"""`edgeflare search`: find deviated behaviours."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

from edgeflare.campaign.campaign_context import CHAINS
from edgeflare.campaign.pair_panel import OpenedPair, open_pair
from edgeflare.campaign.screening_answers import require_screening, require_unsearched
from edgeflare.cli import pair_options, run_options, search_options
from edgeflare.cli.console import Console
from edgeflare.cli.fleet_options import FleetOptions, UnitSeeds, user_words
from edgeflare.cli.interruptible import INTERRUPTED
from edgeflare.cli.option_values import read_operators, read_thresholds, read_within
from edgeflare.cli.quiet import Quiet, result
from edgeflare.cli.search_launch import RequestedSearch, run_search, search_exit_code, try_search
from edgeflare.core.goal import Find
from edgeflare.core.seeds import SeedChoice
from edgeflare.devices.profile import Profile
from edgeflare.devices.profile_lookup import find_profiles
from edgeflare.errors import InfrastructureError, UserError
from edgeflare.models.compressed_model import read_ensemble
from edgeflare.models.pair import load_pair
from edgeflare.report.run_page import print_run
from edgeflare.run.load_document import load_document
from edgeflare.run.plan import SHRINK, default_strengthen
from edgeflare.run.run_directory import RunDirectory
from edgeflare.run.run_document import RunDocument
from edgeflare.strategies.operator_pool import BUILT_IN, pool_names
from edgeflare.trust import Trust, decided_by_user


@run_options.with_option_groups
def search(
    pair: pair_options.PairFolder = None,
    original: pair_options.Original = None,
    compressed: pair_options.Compressed = None,
    seeds: pair_options.Seeds = None,
    test: pair_options.Test = None,
    *,
    preprocessing: pair_options.Preprocessing,
    limit: pair_options.Limit = None,
    first: pair_options.First = None,
    device: search_options.Devices = ["emulated-builtin"],  # noqa: B006 - never changed
    find: search_options.FindWhat = Find.ANY,
    strategy: search_options.StrategyName = None,
    parameters: search_options.SetParameters = None,
    rng_seed: search_options.RngSeed = 0,
    limits: search_options.SearchLimits,
    min_strength: search_options.MinStrength = 0.0,
    within: search_options.Within = "default",
    total_queries: search_options.TotalQueries = None,
    time_limit: search_options.TimeLimit = None,
    bounds: search_options.MutantBounds,
    ensemble: search_options.Ensemble = None,
    operators: search_options.Operators = BUILT_IN,
    strengthen: search_options.Strengthen = None,
    shrink: search_options.Shrink = SHRINK,
    shrink_by: search_options.ShrinkByWhat = "queries",
    refine: search_options.RefineUntil = "all",
    coverage: search_options.Coverage = None,
    selection: search_options.SeedSelection,
    chains: search_options.Chains = CHAINS,
    on_fleet: FleetOptions,
    unit_seeds: UnitSeeds = None,
    folder: run_options.MovableRunFolder,
    dry_run: run_options.DryRun = False,
    fail_on: run_options.FailOnWhat = "any",
    allow: run_options.Allow = 0.0,
    trust: run_options.Trust = False,
    _quiet: Quiet = False,
) -> int:
    """Find the inputs on which a compressed model on its device decides differently.

    Exit codes: 0 nothing deviates beyond what is allowed; 1 something does; 2 the command has to
    be corrected; 3 a device, a process or a disk failed; 130 Ctrl-C. After 3 and 130 the run
    directory is valid, and the same command with --resume goes on.
    """
    folder.require_one_way()
    decided = decided_by_user(trust)
    of_others = run_options.is_matrix(device) or on_fleet.fleet_file is not None  # known elsewhere
    profiles = () if of_others else find_profiles(device, decided)
    kernels, elsewhere = read_ensemble(ensemble)
    loaded = load_pair(pair, preprocessing.settings(original, seeds, compressed), decided)
    strategy = strategy or loaded.interface.opened_task.strategy
    plan = replace(
        search_options.make_plan(
            strategy, find, (), SeedChoice(limit, first), limits, bounds, parameters or ()
        ),
        rng_seed=rng_seed,
        total_queries=total_queries,
        time_limit_seconds=time_limit,
        ensemble=kernels,
        elsewhere=elsewhere,
        strengthen=default_strengthen(min_strength) if strengthen is None else strengthen,
        shrink=shrink,
        shrink_by=shrink_by,
        refine=refine,
        min_strength=min_strength,
        within_db=read_within("--within", within),
        operators=read_operators(operators, [strategy]),
        coverage=read_thresholds("--coverage", coverage),
        seed_ids=selection.read_seed_ids(),
    )
    plan = replace(plan, operators=pool_names(loaded.interface.domain_name, plan.operators))
    if on_fleet.fleet is None:  # which makes one itself
        require_screening(plan, selection.screening, screen_only=selection.screen_only)
    asked = RequestedSearch(
        loaded,
        plan,
        test,
        selection.screening,
        chains,
        fail_on,
        folder,
        screen_only=selection.screen_only,
    )
    if run_options.is_matrix(device):
        search_options.require_whole(selection)
    on_fleet.require_complete()
    if unit_seeds is not None and on_fleet.fleet is None:
        raise UserError("--unit-seeds belongs to --fleet")
    if on_fleet.fleet is not None:
        return _search_on_fleet(
            asked, device, on_fleet, allow, unit_seeds=unit_seeds, dry_run=dry_run
        )
    if not profiles:
        return _search_kernel_sets(asked, device[0], decided, allow, dry_run=dry_run)
    path = folder.choose(loaded.folder_name)
    if selection.screen_only and folder.resume:
        require_unsearched(path)
    if dry_run:
        try_search(asked, profiles, path)
        return 0
    document = run_search(asked, profiles, path, resumed_at=path)
    print_run(Console(), document, str(path))
    result(path)
    return search_exit_code(document, fail_on, allow)


def _search_on_fleet(
    asked: RequestedSearch,
    devices: Sequence[str],
    options: FleetOptions,
    allow: float,
    *,
    unit_seeds: int | None,
    dry_run: bool,
) -> int:
    """Search on a fleet, print what was found, and return the exit code.

    Args:
        asked: the search.
        devices: what `--device` names: one class.
        options: options of the fleet.
        allow: share of the seeds that may deviate before the exit code is 1.
        unit_seeds: how many seeds a unit has; None for a few units for each device.
        dry_run: say what would be done, and do nothing.

    """
    from edgeflare.cli.fleet_session import look_at_job, run_job  # noqa: PLC0415 - for this alone
    from edgeflare.fleet.search_job import SearchJob  # noqa: PLC0415

    _require_shareable(asked, devices)
    path = asked.folder.choose(asked.pair.folder_name)
    job = SearchJob(
        out=path,
        hosts=options.hosts,
        classes=tuple(devices),
        resume=asked.folder.resume,
        overwrite=asked.folder.overwrite,
        pair=asked.pair,
        plan=asked.plan,
        test=asked.test,
        fail_on=asked.fail_on,
        unit_seeds=unit_seeds,
        words=user_words(
            sys.argv[2:],
            without={"--seed-ids", "--screening", "--fail-on", "--allow"},
            without_flags={"--screen-only", "--quiet"},
        ),
        allow_other_host=asked.folder.allow_other_host,
    )
    if dry_run:
        return look_at_job(job)
    with run_options.naming_other_host():
        end = run_job(job)
    if not end.kept:
        sys.stderr.write(f"stopped before the seeds were evaluated; {job.goes_on} goes on\n")
        return INTERRUPTED
    document = load_document(RunDirectory(path))
    print_run(Console(), document, str(path))
    result(path)
    if end.complete and document.stopped_by is not None:
        raise InfrastructureError(f"{path} lacks a part of the seeds: --resume goes on")
    return search_exit_code(document, asked.fail_on, allow) if end.complete else INTERRUPTED


def _require_shareable(asked: RequestedSearch, devices: Sequence[str]) -> None:
    """Refuse what units that have a part of the seeds each cannot do."""
    if len(devices) > 1 or run_options.is_matrix(devices):
        raise UserError(
            "--fleet shares the seeds out over the devices of one class: name one with --device"
        )
    if asked.screen_only or asked.screening is not None:
        raise UserError("--fleet makes and hands on the screening itself: leave it out")
    if asked.plan.total_queries is not None or asked.plan.time_limit_seconds is not None:
        raise UserError(
            "--total-queries and --time-limit bound all seeds together, and units of a fleet cannot"
            " know their share: bound each seed with --max-queries or --max-time"
        )


def _search_kernel_sets(
    asked: RequestedSearch, device: str, trust: Trust, allow: float, *, dry_run: bool
) -> int:
    """Search on each kernel set of a device, evaluate what was found on all, and return the code.

    Args:
        asked: the search.
        device: a name with all kernel sets.
        trust: the user's decision on its profile.
        allow: share of the seeds that may have a deviation, on each kernel set.
        dry_run: only say what would be done.

    Raises:
        UserError: no kernel set takes the model, or as a search raises it.

    """
    from edgeflare.cli.kernel_set_matrix import (  # noqa: PLC0415 - for this alone
        compare_kernel_sets,
        kernel_set_runner,
        try_kernel_sets,
    )

    out = run_options.matrix_path(asked.folder, asked.pair.folder_name)
    runner = kernel_set_runner(device, trust, out, asked.folder)

    def own(path: Path) -> RequestedSearch:
        return replace(asked, folder=run_options.of_kernel_set(asked.folder, path))

    if dry_run:
        return try_kernel_sets(runner, lambda kernels, path: try_search(own(path), [kernels], path))

    def search_on(profile: Profile, path: Path) -> RunDocument:
        return run_search(own(path), [profile], path, resumed_at=out)

    def opened_on(profile: Profile, stack: ExitStack) -> OpenedPair:
        return open_pair(asked.pair, asked.on([profile]).plan, [profile], stack)

    runs = compare_kernel_sets("search", runner, search_on, opened_on)
    if runs is None:
        return INTERRUPTED
    return max(
        search_exit_code(run.result, asked.fail_on, allow, f"{run.profile.kernels}: ")
        for run in runs
        if run.result is not None
    )
