"""`edgeflare search`: find deviated behaviours."""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from datetime import datetime
from pathlib import Path
from types import FrameType

from rich.console import Console

from edgeflare.campaign.assembly import Assembly, assemble
from edgeflare.campaign.campaign import Interrupt, StoppedBy, run_campaign
from edgeflare.campaign.journal import Journal
from edgeflare.campaign.plan import MAX_QUERIES, TIME_LIMIT_SECONDS, Plan
from edgeflare.campaign.run import begin_run, resume_run
from edgeflare.campaign.run_directory import RunDirectory
from edgeflare.campaign.setting import CHAINS, Setting, Stopwatch
from edgeflare.cli import options
from edgeflare.cli.progress import observe
from edgeflare.devices.profile import find_profile
from edgeflare.errors import InfrastructureError, UserError
from edgeflare.models.pair import load_pair
from edgeflare.models.pair_file import Settings
from edgeflare.report.document import Document, write_document
from edgeflare.report.gate import exceeds
from edgeflare.report.terminal import print_dry_run, print_run
from edgeflare.search.goal import Find, Goal
from edgeflare.search.registry import find_strategy

INTERRUPTED = 130
"""The exit code that shells give a process that Ctrl-C ended."""


def search(
    pair: options.PairFolder = None,
    original: options.Original = None,
    compressed: options.Compressed = None,
    seeds: options.Seeds = None,
    preset: options.Preset = None,
    scale: options.Scale = None,
    mean: options.Mean = None,
    std: options.Std = None,
    resize: options.Resize = None,
    channels: options.Channels = None,
    outputs: options.Outputs = None,
    limit: options.Limit = None,
    device: options.Device = "emulated-builtin",
    find: options.FindWhat = Find.ANY,
    ties: options.WithTies = options.Ties.EXCLUDE,
    min_strength: options.MinStrength = 0.0,
    strategy: options.StrategyName = "dflare",
    rng_seed: options.RngSeed = 0,
    max_queries: options.MaxQueries = MAX_QUERIES,
    time_limit: options.TimeLimit = TIME_LIMIT_SECONDS,
    total_queries: options.TotalQueries = None,
    total_time: options.TotalTime = None,
    chains: options.Chains = CHAINS,
    out: options.Out = None,
    overwrite: options.Overwrite = False,
    resume: options.Resume = False,
    dry_run: options.DryRun = False,
    fail_on: options.FailOnWhat = options.FailOn.ANY,
    allow: options.Allow = 0.0,
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
        mean=_numbers("--mean", mean),
        std=_numbers("--std", std),
        resize=resize,
        channels=channels,
        outputs=outputs,
    )
    plan = Plan(
        strategy=find_strategy(strategy).name,
        goal=Goal(find, ties is options.Ties.INCLUDE, min_strength),
        devices=(device,),
        rng_seed=rng_seed,
        limit=limit,
        max_queries=max_queries,
        time_limit=time_limit,
        total_queries=total_queries,
        total_time=total_time,
    )
    profile = find_profile(device)
    loaded = load_pair(pair, given)
    path = out or Path("runs") / f"{loaded.name}-{datetime.now():%Y%m%d-%H%M%S}"
    if not (resume or dry_run):
        RunDirectory.check(path, overwrite=overwrite)
    with ExitStack() as stack:
        console.print(f"opening {loaded.name} on {device}", style="dim", highlight=False)
        assembly = assemble(loaded, find, limit, profile, stack)
        about = assembly.about(plan)
        if dry_run:
            print_dry_run(Console(), about, len(assembly.seeds), str(path))
            return 0
        if resume:
            directory, journal = resume_run(path, about)
        else:
            directory, journal = begin_run(path, about, len(assembly.seeds), overwrite=overwrite)
        stack.callback(journal.close)
        document, stopped = _run(console, assembly, plan, directory, journal, chains)
    print_run(Console(), document, str(path))
    if stopped == "interrupt":
        return INTERRUPTED
    return int(exceeds(document, fail_on.value, allow))


def _run(
    console: Console,
    assembly: Assembly,
    plan: Plan,
    directory: RunDirectory,
    journal: Journal,
    chains: int,
) -> tuple[Document, StoppedBy | None]:
    """Run the campaign; whatever happens, a valid document is written."""
    try:
        with observe(console) as observer, _interruptible() as interrupt:
            setting = Setting(
                plan=plan,
                images=assembly.seeds.images,
                labels=assembly.seeds.labels,
                panel=assembly.panel,
                recover=lambda _: assembly.device.reopen(),
                tale=find_strategy(plan.strategy).tale,
                journal=journal,
                directory=directory,
                stopwatch=Stopwatch(journal),
                observer=observer,
                chains=chains,
                stopped=interrupt.asked,
            )
            for note in assembly.pair.notes:
                observer.warned(note)
            stopped = run_campaign(setting, interrupt)
    except InfrastructureError as error:
        write_document(directory, journal)
        raise InfrastructureError(
            f"{error}; what was found is in {directory.path}, and the same command with "
            f"--out {directory.path} --resume goes on"
        ) from error
    return write_document(directory, journal), stopped


@contextmanager
def _interruptible() -> Iterator[Interrupt]:
    """Turn Ctrl-C and SIGTERM into a wish to stop, for as long as the campaign runs."""
    interrupt = Interrupt()

    def ask(_signal: int, _frame: FrameType | None) -> None:
        interrupt.ask()
        if not interrupt.urgent():
            sys.stderr.write("\nstopping: verifying what was found; Ctrl-C again stops at once\n")

    before = {number: signal.signal(number, ask) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield interrupt
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _numbers(option: str, text: str | None) -> tuple[float, ...] | None:
    if text is None:
        return None
    try:
        return tuple(float(part) for part in text.replace(",", " ").split())
    except ValueError:
        raise UserError(
            f"{option} {text!r}: expected one number, or one for each channel as in 0.49,0.48,0.45"
        ) from None
