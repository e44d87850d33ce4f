"""`edgeflare replay --device NAME/all`: stored inputs on each kernel set, and one table."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

from edgeflare.campaign.opened_pair import OpenedPair
from edgeflare.cli.interruptible import INTERRUPTED
from edgeflare.cli.kernel_set_matrix import compare_kernel_sets, run_kernel_sets, stopping_said
from edgeflare.cli.requested_replay import RequestedReplay, run_requested_replay
from edgeflare.core.interrupt import INTERRUPTED_BY
from edgeflare.devices.profile import Profile
from edgeflare.matrix.kernel_set_runs import RunStopped
from edgeflare.matrix.matrix_folder import check_matrix_folder, claimed_matrix, is_begun
from edgeflare.replay.replay_run import open_replay
from edgeflare.run.replay_outcome import regressed
from edgeflare.run.run_document import Finding, RunDocument
from edgeflare.trust.trust import Trust


def replay_on_kernel_sets(
    asked: RequestedReplay,
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
        counts: which deviations make the exit code 1.

    Raises:
        UserError: no kernel set takes the model, or as a replay raises it.
        InfrastructureError: as a replay raises it.

    """
    check_matrix_folder(out, resume=asked.resume, overwrite=asked.overwrite)

    def replay_on(profile: Profile, path: Path) -> RunDocument:
        own = replace(asked, resume=asked.resume and is_begun(path))
        document = run_requested_replay(own, [profile], path, resumed_at=out)
        if document.stopped_by in INTERRUPTED_BY:
            raise RunStopped
        return document

    def opened_on(profile: Profile, stack: ExitStack) -> OpenedPair:
        return open_replay(asked.past, asked.pair, [profile], stack).opened

    try:
        with (
            claimed_matrix(out, resume=asked.resume, overwrite=asked.overwrite),
            stopping_said(out),
        ):
            runs = run_kernel_sets(device, trust, out, replay_on, overwrite=asked.overwrite)
            compare_kernel_sets("replay", runs, out, opened_on)
    except RunStopped:
        return INTERRUPTED
    documents = [one.result for one in runs if one.result is not None]
    return int(any(regressed(one, counts) for one in documents))
