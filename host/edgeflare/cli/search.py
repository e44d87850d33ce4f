"""`edgeflare search`: find deviated behaviours."""

from __future__ import annotations

import sqlite3
from contextlib import ExitStack
from datetime import datetime
from pathlib import Path

from rich.markup import escape

from edgeflare.campaign.campaign_context import CHAINS
from edgeflare.campaign.dry_run import evaluate_first_seeds
from edgeflare.campaign.held_out import HeldOut, note_held_out
from edgeflare.campaign.opened_pair import OpenedPair, open_pair
from edgeflare.campaign.recorded_campaign import run_recorded_campaign
from edgeflare.campaign.run_description import describe_run
from edgeflare.cli import search_options
from edgeflare.cli.console import Console
from edgeflare.cli.interruptible import INTERRUPTED, interruptible
from edgeflare.cli.option_values import read_bound, read_ensemble, read_numbers, read_within
from edgeflare.cli.progress import observe
from edgeflare.cli.quiet import Quiet, result
from edgeflare.core.arm import Arm
from edgeflare.core.bounds import DEFAULT_LINF
from edgeflare.core.goal import Find, Goal
from edgeflare.devices.profile import find_profiles
from edgeflare.errors import InfrastructureError, UserError
from edgeflare.models.pair import load_pair
from edgeflare.models.pair_file import Settings
from edgeflare.report.run_terminal import print_dry_run, print_run
from edgeflare.run.begin_or_resume import begin_run, resume_run
from edgeflare.run.gate import deviation_rate, exceeds, require_labels, searched_nothing
from edgeflare.run.journal import Journal, damaged_journal, is_damage
from edgeflare.run.plan import (
    MAX_QUERIES,
    SHRINK,
    TIME_LIMIT_SECONDS,
    WITHIN_DB,
    Plan,
    default_strengthen,
)
from edgeflare.run.run_directory import RunDirectory
from edgeflare.run.run_document import Document
from edgeflare.search.strategy_registry import find_strategy
from edgeflare.trust.asking import decided_by_user
from edgeflare.untrusted_text import printable


def search(
    pair: search_options.PairFolder = None,
    original: search_options.Original = None,
    compressed: search_options.Compressed = None,
    seeds: search_options.Seeds = None,
    test: search_options.Test = None,
    preset: search_options.Preset = None,
    scale: search_options.Scale = None,
    mean: search_options.Mean = None,
    std: search_options.Std = None,
    resize: search_options.Resize = None,
    channels: search_options.Channels = None,
    outputs: search_options.Outputs = None,
    limit: search_options.Limit = None,
    device: search_options.Devices = ["emulated-builtin"],  # noqa: B006 - never changed
    find: search_options.FindWhat = Find.ANY,
    ties: search_options.WithTies = search_options.Ties.EXCLUDE,
    min_strength: search_options.MinStrength = 0.0,
    within: search_options.Within = f"{WITHIN_DB:g}",
    strategy: search_options.StrategyName = "boundary",
    rng_seed: search_options.RngSeed = 0,
    max_queries: search_options.MaxQueries = MAX_QUERIES,
    time_limit: search_options.TimeLimit = TIME_LIMIT_SECONDS,
    total_queries: search_options.TotalQueries = None,
    total_time: search_options.TotalTime = None,
    max_linf: search_options.MaxLinf = f"{DEFAULT_LINF:g}",
    max_l2: search_options.MaxL2 = "default",
    ensemble: search_options.Ensemble = None,
    strengthen: search_options.Strengthen = None,
    shrink: search_options.Shrink = SHRINK,
    chains: search_options.Chains = CHAINS,
    out: search_options.Out = None,
    overwrite: search_options.Overwrite = False,
    resume: search_options.Resume = False,
    dry_run: search_options.DryRun = False,
    fail_on: search_options.FailOnWhat = search_options.FailOn.ANY,
    allow: search_options.Allow = 0.0,
    trust: search_options.Trust = False,
    _quiet: Quiet = False,
) -> int:
    """Find the inputs on which a compressed model on its device decides differently.

    Exit codes: 0 nothing deviates beyond what is allowed; 1 something does; 2 the command has to
    be mended; 3 a device, a process or a disk failed; 130 Ctrl-C. After 3 and 130 the run
    directory is valid, and the same command with --resume goes on.
    """
    console = Console(stderr=True)
    if resume and out is None:
        raise UserError("--resume has to know which run: add --out RUN")
    if resume and overwrite:
        raise UserError("--resume goes on with a run and --overwrite replaces it: give one of them")
    given = Settings(
        original=original,
        compressed=compressed,
        seeds=seeds,
        preset=preset,
        scale=scale,
        mean=read_numbers("--mean", mean),
        std=read_numbers("--std", std),
        resize=resize,
        channels=channels,
        outputs=outputs,
    )
    decided = decided_by_user(trust)
    profiles = find_profiles(device, decided)
    kernels, elsewhere = read_ensemble(ensemble)
    plan = Plan(
        strategy=find_strategy(strategy).name,
        goal=Goal(find, ties is search_options.Ties.INCLUDE),
        devices=tuple(profile.name for profile in profiles),
        rng_seed=rng_seed,
        limit=limit,
        max_queries=max_queries,
        time_limit=time_limit,
        total_queries=total_queries,
        total_time=total_time,
        max_linf=read_bound("--max-linf", max_linf),
        max_l2="default" if max_l2 == "default" else read_bound("--max-l2", max_l2),
        ensemble=kernels,
        elsewhere=elsewhere,
        strengthen=default_strengthen(min_strength) if strengthen is None else strengthen,
        shrink=shrink,
        min_strength=min_strength,
        within=read_within("--within", within),
    )
    loaded = load_pair(pair, given, decided)
    path = out or Path("runs") / f"{loaded.folder_name}-{datetime.now():%Y%m%d-%H%M%S}"
    if not resume:
        RunDirectory.check(path, overwrite=overwrite)
    with ExitStack() as stack:
        # Seen on a terminal only: elsewhere, an error is the one line that is printed.
        with console.status(
            f"opening {escape(printable(loaded.name))} on {escape(', '.join(plan.devices))}"
        ):
            opened = open_pair(loaded, plan, profiles, stack)
        header = describe_run(opened, plan)
        if fail_on is search_options.FailOn.HARMFUL:
            require_labels(header.labels, header.arms[Arm.DEVICE].classes)
        held_out = _held_out(test, opened)
        if dry_run:
            look = evaluate_first_seeds(opened)
            seeds_there = len(opened.seeds)
            print_dry_run(Console(), header, look, seeds_there, str(path), loaded.notes)
            return 0
        if resume:
            directory, journal = resume_run(path, header)
        else:
            directory, journal = begin_run(path, header, len(opened.seeds), overwrite=overwrite)
        stack.callback(journal.close)
        note_held_out(journal, held_out, resumed=resume)
        document = _run(console, opened, header.plan, directory, journal, chains, held_out)
    print_run(Console(), document, str(path))
    result(path)
    if document["stopped_by"] == "interrupt":
        return INTERRUPTED
    if not exceeds(document, fail_on.value, allow):
        if fail_on is not search_options.FailOn.NONE and searched_nothing(document):
            raise UserError(
                f"--total-time {total_time:g} ended before the search from any of"
                f" {document['totals']['seeds']} seeds did, so nothing can pass: give it more time,"
                " or fewer seeds with --limit"
            )
        return 0
    rate = deviation_rate(document, fail_on.value)
    Console().print(
        f"exit code 1: {rate:.1%} of the seeds deviate or lead to it, {allow:.1%} allowed "
        "(--allow, --fail-on, --within, --min-strength)"
    )
    return 1


def _held_out(test: Path | None, opened: OpenedPair) -> HeldOut | None:
    if test is None:
        return None
    return HeldOut.load(test, opened.image_shape, opened.pair.preprocess.resize)


def _run(
    console: Console,
    opened: OpenedPair,
    plan: Plan,
    directory: RunDirectory,
    journal: Journal,
    chains: int,
    held_out: HeldOut | None,
) -> Document:
    try:
        with observe(console) as observer, interruptible() as interrupt:
            return run_recorded_campaign(
                opened,
                plan,
                journal,
                observer=observer,
                interrupt=interrupt,
                chains=chains,
                held_out=held_out,
            )
    except (InfrastructureError, OSError, sqlite3.Error) as error:
        if isinstance(error, sqlite3.Error) and is_damage(error):
            raise InfrastructureError(str(damaged_journal(directory.journal, str(error)))) from None
        raise InfrastructureError(
            f"{error}; what was found is in {directory.path}, and the same command with "
            f"--out {directory.path} --resume goes on"
        ) from error
