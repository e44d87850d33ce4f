"""`edgeflare replay`: what a run found, tried again on a device."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from enum import Enum
from pathlib import Path
from typing import Annotated

import typer

from edgeflare.cli import moved_models, run_options
from edgeflare.cli.completion import complete_device, complete_run
from edgeflare.cli.console import Console
from edgeflare.cli.interruptible import INTERRUPTED
from edgeflare.cli.matrix_options import is_matrix
from edgeflare.cli.options_of_searches import refuse_options_of_searches
from edgeflare.cli.quiet import Quiet, result
from edgeflare.cli.replay_matrix import replay_on_kernel_sets
from edgeflare.cli.requested_replay import (
    RequestedReplay,
    refuse_as_target,
    run_requested_replay,
)
from edgeflare.conform.record.conform_file import holds_conformance
from edgeflare.core.arm import Arm
from edgeflare.errors import UserError
from edgeflare.replay.past_run import PastRun
from edgeflare.report.run_terminal import print_run
from edgeflare.run.gate import require_labels
from edgeflare.run.harm import is_harmful
from edgeflare.run.replay_outcome import regressed
from edgeflare.run.run_directory import RunDirectory
from edgeflare.run.run_document import Finding
from edgeflare.trust.asking import decided_by_user

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
        "emulated-all is each kernel set, in one table.",
    ),
]
Compressed = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="Another compressed model, such as the corrected one."),
]
Baseline = Annotated[
    Path | None,
    typer.Option(
        metavar="REPLAY",
        autocompletion=complete_run,
        help="An earlier replay, or a run: what deviated there is known, and alone is allowed to.",
    ),
]


class ReplayFailOn(str, Enum):
    """Which deviations of a replay make the exit code 1."""

    ANY = "any"
    HARMFUL = "harmful"


FailOnWhat = Annotated[
    ReplayFailOn,
    typer.Option(
        "--fail-on",
        help="Which deviations make the exit code 1; harmful: as for `edgeflare search`.",
    ),
]


def replay(
    run: Run,
    device: Devices = None,
    compressed: Compressed = None,
    original: moved_models.Original = None,
    function: moved_models.Functions = None,
    baseline: Baseline = None,
    fail_on: FailOnWhat = ReplayFailOn.ANY,
    out: run_options.Out = None,
    overwrite: run_options.Overwrite = False,
    resume: run_options.Resume = False,
    trust: run_options.Trust = False,
    _quiet: Quiet = False,
) -> int:
    """Try what a run found again: on another device or firmware, or with a new compressed model.

    Says which of the stored inputs still deviate, which are mended, and what is new; writes a run
    directory of its own. Keep one as the baseline, and this is the regression suite of a release.
    Of a conformance run the smallest models of its findings are tried again.

    Exit codes: 0 nothing deviates that did not in the baseline (without one: nothing deviates);
    1 something does; 2 the command has to be corrected; 3 a device, a process or a disk failed;
    130 Ctrl-C. After 3 and 130, the same command with --out REPLAY --resume goes on.
    """
    if holds_conformance(directory := RunDirectory(run)):
        from edgeflare.cli.replayed_conformance import replay_conformance  # noqa: PLC0415

        harmful = fail_on is ReplayFailOn.HARMFUL
        refuse_options_of_searches(
            {
                "--compressed": compressed,
                "--original": original,
                "--function": function,
                "--baseline": baseline,
                "--fail-on harmful": harmful,
                "--resume": resume,
            },
            run,
        )
        trusted = decided_by_user(trust)
        return replay_conformance(directory, device, trusted, out, overwrite=overwrite)
    if resume and out is None:
        raise UserError("--resume has to know which replay: add --out REPLAY")
    past = PastRun.open(run)
    if fail_on is ReplayFailOn.HARMFUL:
        require_labels(past.header.labels, past.header.arms[Arm.DEVICE].choices)
    against = None if baseline is None else PastRun.open(baseline)
    decided = decided_by_user(trust)
    matrix = device is not None and is_matrix(device)
    profiles = [] if matrix else past.profiles(device, decided)
    path = out or Path("runs") / f"replay-{run.resolve().name}-{datetime.now():%Y%m%d-%H%M%S}"
    needed = [one.directory.path for one in (past, against) if one is not None]
    refuse_as_target(path, "what is replayed, or its baseline", *needed)
    pair = past.pair(original, instead=compressed, functions=function or ())
    asked = RequestedReplay(past, pair, against, overwrite, resume)
    counts = _COUNTS[fail_on]
    if device is not None and matrix:
        return replay_on_kernel_sets(asked, device[0], decided, path, counts)
    document = run_requested_replay(asked, profiles, path, resumed_at=path)
    print_run(Console(), document, str(path))
    result(path)
    if document.stopped_by == "interrupt":
        return INTERRUPTED
    return int(regressed(document, counts))


_COUNTS: Mapping[ReplayFailOn, Callable[[Finding], bool]] = {
    ReplayFailOn.ANY: lambda _entry: True,
    ReplayFailOn.HARMFUL: is_harmful,
}
