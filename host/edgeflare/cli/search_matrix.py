"""`edgeflare search --device NAME/all`: a search on each kernel set of a device, and one table."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

from edgeflare.campaign.opened_pair import OpenedPair, open_pair
from edgeflare.cli.interruptible import INTERRUPTED
from edgeflare.cli.kernel_set_matrix import (
    compare_kernel_sets,
    run_kernel_sets,
    stopping_said,
    try_kernel_sets,
)
from edgeflare.cli.matrix_options import matrix_path, of_kernel_set
from edgeflare.cli.requested_search import RequestedSearch, run_search, try_search
from edgeflare.cli.search_exit_code import search_exit_code
from edgeflare.core.interrupt import INTERRUPTED_BY
from edgeflare.devices.profile import Profile
from edgeflare.matrix.kernel_set_runs import RunStopped
from edgeflare.matrix.matrix_folder import claimed_matrix
from edgeflare.run.run_document import RunDocument
from edgeflare.trust.trust import Trust


def search_kernel_sets(asked: RequestedSearch, device: str, trust: Trust, allow: float) -> int:
    """Search on each kernel set of a device, evaluate what was found on all, and return the code.

    Args:
        asked: the search.
        device: a name with all kernel sets.
        trust: the user's decision on its profile.
        allow: share of the seeds that may have a deviation, on each kernel set.

    Raises:
        UserError: no kernel set takes the model, or as a search raises it.
        InfrastructureError: as a search raises it.

    """
    out = matrix_path(asked.folder, asked.pair.folder_name)

    def search_on(profile: Profile, path: Path) -> RunDocument:
        own = replace(asked, folder=of_kernel_set(asked.folder, path))
        document = run_search(own, [profile], path, resumed_at=out)
        if document.stopped_by in INTERRUPTED_BY:
            raise RunStopped
        return document

    def opened_on(profile: Profile, stack: ExitStack) -> OpenedPair:
        return open_pair(asked.pair, asked.on([profile]).plan, [profile], stack)

    overwrite = asked.folder.overwrite
    try:
        with (
            claimed_matrix(out, resume=asked.folder.resume, overwrite=overwrite),
            stopping_said(out),
        ):
            runs = run_kernel_sets(device, trust, out, search_on, overwrite=overwrite)
            compare_kernel_sets("search", runs, out, opened_on)
    except RunStopped:
        return INTERRUPTED
    return max(
        search_exit_code(one.result, asked.fail_on, allow, f"{one.profile.kernels}: ")
        for one in runs
        if one.result is not None
    )


def try_searches(asked: RequestedSearch, device: str, trust: Trust) -> None:
    """Say what a search on each kernel set of a device would do.

    Raises:
        UserError, InfrastructureError: see `search_kernel_sets`.

    """
    out = matrix_path(asked.folder, asked.pair.folder_name)
    try_kernel_sets(device, trust, out, lambda one, path: try_search(asked, [one], path))
