"""Many runs made one, in groups: a merge has all of its runs open at once."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from edgeflare.run.merge.merge_runs import MERGED_RUN, merge_into, merge_runs
from edgeflare.run.run_document import RunDocument

GROUP = 100
"""Runs that are merged at once: each takes three open files, and memory for the labels of all
seeds, and is compared with each other one."""


def merge_in_groups(
    paths: Sequence[Path], out: Path, *, overwrite: bool, allow_other_host: bool = False
) -> RunDocument:
    """Merge any number of runs into a run directory; see `merge_runs`.

    Args:
        paths: of the runs, each of a search.
        out: the run directory of the merged one; may be absent or empty.
        overwrite: replace a run that is there, once all is merged.
        allow_other_host: whether runs of hosts that may answer differently are merged.

    Raises:
        UserError: as of `merge_runs`.

    """
    if len(paths) <= GROUP:
        return merge_runs(paths, out, overwrite=overwrite, allow_other_host=allow_other_host)
    with (
        MERGED_RUN.claim(out, overwrite=overwrite, by="edgeflare merge") as claimed,
        claimed.scratch() as folder,
    ):
        while len(paths) > GROUP:
            paths = [
                _merged(
                    paths[begin : begin + GROUP], folder / f"{len(paths)}-{begin}", allow_other_host
                )
                for begin in range(0, len(paths), GROUP)
            ]
        return merge_into(claimed, paths, allow_other_host=allow_other_host)


def _merged(paths: Sequence[Path], out: Path, allow_other_host: bool) -> Path:
    merge_runs(paths, out, overwrite=False, allow_other_host=allow_other_host)
    return out
