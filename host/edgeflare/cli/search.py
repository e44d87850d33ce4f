"""`edgeflare search`: find deviated behaviours."""

from __future__ import annotations

from dataclasses import replace

from edgeflare.campaign.campaign_context import CHAINS
from edgeflare.campaign.given_screening import require_screening, require_unsearched
from edgeflare.cli import pair_options, run_options, search_options
from edgeflare.cli.console import Console
from edgeflare.cli.fleet_options import FleetOptions, UnitSeeds
from edgeflare.cli.matrix_options import is_matrix
from edgeflare.cli.option_groups import with_option_groups
from edgeflare.cli.option_values import read_operators, read_thresholds, read_within
from edgeflare.cli.quiet import Quiet, result
from edgeflare.cli.requested_search import RequestedSearch, run_search, try_search
from edgeflare.cli.search_exit_code import search_exit_code
from edgeflare.cli.search_fleet import search_on_fleet
from edgeflare.cli.search_matrix import search_kernel_sets, try_searches
from edgeflare.cli.search_options import make_plan, require_whole
from edgeflare.core.goal import Find
from edgeflare.core.seed_choice import SeedChoice
from edgeflare.devices.profile_lookup import find_profiles
from edgeflare.errors import UserError
from edgeflare.models.ensemble_choice import read_ensemble
from edgeflare.models.pair import load_pair
from edgeflare.report.run_terminal import print_run
from edgeflare.run.plan import (
    SHRINK,
    default_strengthen,
)
from edgeflare.search.operator_pool import BUILT_IN, pool_names
from edgeflare.trust.asking import decided_by_user


@with_option_groups
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
    total_time: search_options.TotalTime = None,
    bounds: search_options.MutantBounds,
    ensemble: search_options.Ensemble = None,
    operators: search_options.Operators = BUILT_IN,
    strengthen: search_options.Strengthen = None,
    shrink: search_options.Shrink = SHRINK,
    coverage: search_options.Coverage = None,
    selection: search_options.SeedSelection,
    chains: search_options.Chains = CHAINS,
    on_fleet: FleetOptions,
    unit_seeds: UnitSeeds = None,
    folder: run_options.MovableRunFolder,
    dry_run: run_options.DryRun = False,
    fail_on: run_options.FailOnWhat = run_options.FailOn.ANY,
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
    given = preprocessing.settings(original, seeds, compressed)
    decided = decided_by_user(trust)
    of_others = is_matrix(device) or on_fleet.fleet_file is not None  # known elsewhere
    profiles = () if of_others else find_profiles(device, decided)
    kernels, elsewhere = read_ensemble(ensemble)
    loaded = load_pair(pair, given, decided)
    strategy = strategy or loaded.interface.opened_task.strategy
    plan = replace(
        make_plan(strategy, find, (), SeedChoice(limit, first), limits, bounds, parameters or ()),
        rng_seed=rng_seed,
        total_queries=total_queries,
        total_time=total_time,
        ensemble=kernels,
        elsewhere=elsewhere,
        strengthen=default_strengthen(min_strength) if strengthen is None else strengthen,
        shrink=shrink,
        min_strength=min_strength,
        within=read_within("--within", within),
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
    if is_matrix(device):
        require_whole(selection)
    on_fleet.require_complete()
    if unit_seeds is not None and on_fleet.fleet is None:
        raise UserError("--unit-seeds belongs to --fleet")
    if on_fleet.fleet is not None:
        return search_on_fleet(
            asked, device, on_fleet, allow, unit_seeds=unit_seeds, dry_run=dry_run
        )
    if not profiles and dry_run:
        try_searches(asked, device[0], decided)
        return 0
    if not profiles:
        return search_kernel_sets(asked, device[0], decided, allow)
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
