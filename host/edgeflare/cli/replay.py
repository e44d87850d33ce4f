"""`edgeflare replay`: what a run found, tried again on a device."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated

import typer
from msgspec import structs
from rich.markup import escape

from edgeflare.campaign.pair_panel import OpenedPair
from edgeflare.cli import run_options
from edgeflare.cli.command_on_fleet import ANEW, AskedOfEach, command_on_fleet, run_on_fleet
from edgeflare.cli.console import Console
from edgeflare.cli.fleet_options import FleetOptions
from edgeflare.cli.interruptible import INTERRUPTED, failures_reported, interruptible
from edgeflare.cli.kernel_set_matrix import compare_kernel_sets, kernel_set_runner
from edgeflare.cli.option_values import complete_device, complete_run, require_one_of
from edgeflare.cli.quiet import Quiet, result
from edgeflare.cli.search_options import refuse_options_of_searches
from edgeflare.core.interrupt import INTERRUPTED_BY
from edgeflare.devices.profile import Profile
from edgeflare.errors import UserError
from edgeflare.matrix.matrix_folder import check_matrix_folder
from edgeflare.models.pair import Pair
from edgeflare.progress import observe
from edgeflare.record.folder import new_folder
from edgeflare.replay.past_run import PastRun
from edgeflare.replay.replay_run import (
    begin_replay,
    open_replay,
    resume_replay,
    run_replay,
)
from edgeflare.report.run_page import print_run
from edgeflare.run.gate import FAIL_ON, require_truth
from edgeflare.run.replay_outcome import regressed
from edgeflare.run.run_directory import RunDirectory, holds_conformance
from edgeflare.run.run_document import Finding, RunDocument
from edgeflare.trust import Trust, decided_by_user

Run = Annotated[
    Path,
    typer.Argument(
        metavar="RUN",
        help="The run directory of a search, a survey or a conformance run.",
        autocompletion=complete_run,
    ),
]
Devices = Annotated[
    list[str] | None,
    typer.Option(
        "--device",
        metavar="NAME",
        autocompletion=complete_device,
        help="Where to try again, as for `edgeflare search`. If not given the run's own devices, "
        "as far as they are shipped emulated ones; others have to be named again. NAME/all or "
        "emulated-all is each kernel set, in one table. Several share one replay; with --fleet, "
        "each class has a replay of its own.",
    ),
]
Compressed = Annotated[
    Path | None,
    typer.Option(metavar="MODEL", help="Another compressed model, such as the corrected one."),
]
Baseline = Annotated[
    Path | None,
    typer.Option(
        metavar="REPLAY",
        autocompletion=complete_run,
        help="An earlier replay, or a run: what deviated there is known, and alone is allowed to.",
    ),
]


_FAIL_ON = [name for name, condition in FAIL_ON.items() if condition.of_replays]

FailOnWhat = Annotated[
    str,
    typer.Option(
        "--fail-on",
        callback=require_one_of(_FAIL_ON),
        autocompletion=lambda: _FAIL_ON,
        metavar=f"<{'|'.join(_FAIL_ON)}>",
        help="Which deviations make the exit code 1; harmful: as for `edgeflare search`.",
    ),
]

LiesAt = Annotated[Path | None, typer.Option(metavar="PATH", hidden=True)]
"""Where the run lies that a fleet has sent a copy of, which is what a replay records."""


@run_options.with_option_groups
def replay(
    run: Run,
    *,
    device: Devices = None,
    compressed: Compressed = None,
    original: run_options.Original = None,
    function: run_options.Functions = None,
    baseline: Baseline = None,
    fail_on: FailOnWhat = "any",
    versions: run_options.Versions = None,
    on_fleet: FleetOptions,
    run_lies_at: LiesAt = None,
    baseline_lies_at: LiesAt = None,
    folder: run_options.RunFolder,
    trust: run_options.Trust = False,
    _quiet: Quiet = False,
) -> int:
    """Try what a run found again: on another device or firmware, or with a new compressed model.

    Says which of the stored inputs still deviate, which are mended, and what is new; writes a run
    directory of its own. Keep one as the baseline, and this is the regression suite of a release.
    Of a conformance run the smallest models of its findings are tried again; with --versions on
    released versions of the runtime.

    Exit codes: 0 nothing deviates that did not in the baseline (without one: nothing deviates);
    1 something does; 2 the command has to be corrected; 3 a device, a process or a disk failed;
    130 Ctrl-C. After 3 and 130, the same command with --out REPLAY --resume goes on.
    """
    on_fleet.require_complete()
    decided = decided_by_user(trust)
    name = f"replay-{run.resolve().name}"
    if holds_conformance(directory := RunDirectory(run)):
        from edgeflare.cli.conformance_replay import (  # noqa: PLC0415
            replay_conformance,
            replay_on_versions,
        )

        refuse_options_of_searches(
            {
                "--compressed": compressed,
                "--original": original,
                "--function": function,
                "--baseline": baseline,
                f"--fail-on {fail_on}": fail_on != "any",
                "--resume": folder.resume and on_fleet.fleet is None,
            },
            run,
        )
        if versions is not None:
            if device is not None or on_fleet.fleet is not None:
                raise UserError("--versions are of this host: leave --device and --fleet out")
            return replay_on_versions(directory, versions, folder.out, overwrite=folder.overwrite)
        if on_fleet.fleet is not None:
            each = AskedOfEach("replay", name, run=run, again=ANEW)
            return run_on_fleet(command_on_fleet(each, device, on_fleet, folder))
        return replay_conformance(
            directory, device, decided, folder.out, overwrite=folder.overwrite
        )
    if versions is not None:
        raise UserError(
            f"--versions is for what a conformance run found, and {run} is a search or a survey:"
            " leave it out"
        )
    folder.require_one_way()
    past = PastRun.open(run, run_lies_at)
    require_truth(fail_on, past.header.truths)
    against = None if baseline is None else PastRun.open(baseline, baseline_lies_at)
    pair = past.pair(original, instead=compressed, functions=function or ())
    if on_fleet.fleet is not None:
        each = AskedOfEach(
            "replay", name, tuple(map(str, structs.astuple(pair.model_hashes()))), run, baseline
        )
        return run_on_fleet(command_on_fleet(each, device, on_fleet, folder))
    asked = _RequestedReplay(past, pair, against, folder)
    path = folder.out or new_folder(name)
    needed = [other.directory.path for other in (past, against) if other is not None]
    run_options.refuse_as_target(path, "what is replayed, or its baseline", *needed)
    return _replay_here(asked, device, decided, path, FAIL_ON[fail_on].counts)


def _replay_here(
    asked: _RequestedReplay,
    device: Sequence[str] | None,
    decided: Trust,
    path: Path,
    counts: Callable[[Finding], bool],
) -> int:
    """Replay a run on devices of this host, and return the exit code."""
    if device is not None and run_options.is_matrix(device):
        return _replay_on_kernel_sets(asked, device[0], decided, path, counts)
    profiles = asked.past.profiles(device, decided)
    document = _run_requested(asked, profiles, path, resumed_at=path)
    print_run(Console(), document, str(path))
    result(path)
    if document.stopped_by in INTERRUPTED_BY:
        return INTERRUPTED
    return int(regressed(document, counts))


def _replay_on_kernel_sets(
    asked: _RequestedReplay,
    device: str,
    trust: Trust,
    out: Path,
    counts: Callable[[Finding], bool],
) -> int:
    """Replay a run on each kernel set of a device, and return the exit code.

    Args:
        asked: the replay.
        device: a name with all kernel sets.
        trust: the user's decision on its profile.
        out: the folder of the replays.
        counts: deviations that make the exit code 1.

    Raises:
        UserError: no kernel set takes the model, or as a replay raises it.

    """
    check_matrix_folder(out, resume=asked.folder.resume, overwrite=asked.folder.overwrite)

    def replay_on(profile: Profile, path: Path) -> RunDocument:
        own = replace(asked, folder=run_options.of_kernel_set(asked.folder, path))
        return _run_requested(own, [profile], path, resumed_at=out)

    def opened_on(profile: Profile, stack: ExitStack) -> OpenedPair:
        return open_replay(asked.past, asked.pair, [profile], stack).opened

    runner = kernel_set_runner(device, trust, out, asked.folder)
    runs = compare_kernel_sets("replay", runner, replay_on, opened_on)
    if runs is None:
        return INTERRUPTED
    return int(any(regressed(run.result, counts) for run in runs if run.result is not None))


@dataclass(frozen=True, slots=True)
class _RequestedReplay:
    """A replay that was asked for.

    Attributes:
        past: the run.
        pair: pair of the run, perhaps with another compressed model.
        baseline: what it is held against; None for nothing.
        folder: whether it begins anew, replaces a run or goes on.

    """

    past: PastRun
    pair: Pair
    baseline: PastRun | None
    folder: run_options.RunFolder


def _run_requested(
    asked: _RequestedReplay, profiles: Sequence[Profile], path: Path, resumed_at: Path
) -> RunDocument:
    """Run a replay, its progress shown, and return its document.

    Args:
        asked: the replay.
        profiles: the devices.
        path: run directory of the replay.
        resumed_at: what the user names to go on with it.

    """
    console = Console(stderr=True)
    if not asked.folder.resume:
        RunDirectory.check(path, overwrite=asked.folder.overwrite)
    with ExitStack() as stack:
        names = ", ".join(profile.name for profile in profiles)
        with console.status(f"opening {escape(str(asked.past.directory.path))} on {escape(names)}"):
            opened = open_replay(asked.past, asked.pair, profiles, stack)
        if asked.folder.resume:
            directory, journal = resume_replay(opened, path, asked.baseline)
        else:
            directory, journal = begin_replay(
                opened, path, asked.baseline, overwrite=asked.folder.overwrite
            )
        stack.callback(journal.close)
        with (
            failures_reported(directory, resumed_at),
            observe(console) as observer,
            interruptible() as interrupt,
        ):
            return run_replay(opened, journal, observer, interrupt)
