"""A replay as it was asked for on the command line, run on one device or on several."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from rich.markup import escape

from edgeflare.cli.console import Console
from edgeflare.cli.interruptible import failures_reported, interruptible
from edgeflare.cli.run_options import RunFolder
from edgeflare.devices.profile import Profile
from edgeflare.errors import UserError
from edgeflare.models.pair import Pair
from edgeflare.progress import observe
from edgeflare.replay.past_run import PastRun
from edgeflare.replay.replay_run import (
    begin_replay,
    open_replay,
    resume_replay,
    run_replay,
)
from edgeflare.run.run_directory import RunDirectory
from edgeflare.run.run_document import RunDocument


@dataclass(frozen=True, slots=True)
class RequestedReplay:
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
    folder: RunFolder


def refuse_as_target(path: Path, what: str, *needed: Path) -> None:
    """Refuse to write over what is replayed, or its baseline.

    Args:
        path: the run directory of a replay, or the folder of several.
        what: what the needed ones are, in words.
        needed: the run directories that are read.

    """
    for file in needed:
        if file.resolve().is_relative_to(path.resolve()):
            verb = "is" if file.resolve() == path.resolve() else "holds"
            raise UserError(f"{path} {verb} {what}: name another --out")


def run_requested_replay(
    asked: RequestedReplay, profiles: Sequence[Profile], path: Path, resumed_at: Path
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
