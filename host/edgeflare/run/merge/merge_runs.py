"""Several runs that searched parts of the same seeds, made one."""

from __future__ import annotations

import resource
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import replace
from pathlib import Path

from edgeflare.errors import UserError
from edgeflare.record.folder import ClaimedFolder
from edgeflare.run.derive_document import write_document
from edgeflare.run.journal import Journal
from edgeflare.run.journal_database import DamagedJournalError, reporting_damage
from edgeflare.run.merge.merged_description import describe_merged
from edgeflare.run.merge.merged_inputs import copy_inputs
from edgeflare.run.merge.merged_rows import merge_rows
from edgeflare.run.merge.run_part import RunPart, open_part, require_mergeable
from edgeflare.run.merge.seed_owners import find_owners
from edgeflare.run.run_directory import RUN, RunDirectory, list_journals
from edgeflare.run.run_document import RunDocument

MERGED_RUN = replace(RUN, resumable=False)
"""Run directories of merges, which are done anew where they were killed."""

_FILES_OF_A_RUN, _FILES_BESIDE = 3, 512
"""Open files: those of SQLite for a run, and what a process has beside them."""


def merge_runs(
    paths: Sequence[Path],
    out: Path,
    *,
    overwrite: bool,
    allow_other_host: bool = False,
    copied: Callable[[int], None] = lambda _: None,
) -> RunDocument:
    """Merge runs into a run directory, and return the document of the merged run.

    What became of a seed is taken from the run that has come farthest with it. The merged run is
    that which a search of all seeds makes, but for its times and what was seen of the devices; it
    is gone on with, replayed, explained and reported as any.

    Args:
        paths: of the runs, each of a search; their order changes nothing.
        out: the run directory of the merged one; may be absent or empty.
        overwrite: replace a run that is there, once all is merged.
        allow_other_host: whether runs of hosts that may answer differently are merged, which the
            merged run then says.
        copied: is told of how many findings the inputs are copied.

    Raises:
        UserError: a run is none of a search, is damaged, is no part of the same one, or disagrees
            with another on a seed; or there is something at `out`.

    """
    _require_apart(paths, out)
    with MERGED_RUN.claim(out, overwrite=overwrite, by="edgeflare merge") as claimed:
        return merge_into(claimed, paths, allow_other_host=allow_other_host, copied=copied)


def merge_into(
    claimed: ClaimedFolder,
    paths: Sequence[Path],
    *,
    allow_other_host: bool = False,
    copied: Callable[[int], None] = lambda _: None,
) -> RunDocument:
    """Merge runs into a run directory that is claimed; see `merge_runs`."""
    _allow_open_files(_FILES_OF_A_RUN * len(paths))
    with ExitStack() as stack:
        parts = opened_parts(paths, stack, allow_other_host=allow_other_host)
        owners = find_owners(parts)
        with claimed.replaced() as folder:
            list_journals(folder)
            into = RunDirectory(folder)
            copy_inputs(parts, owners, into, copied)
            with (
                closing(Journal.create(into.journal, {})) as journal,
                _naming_parts(),
                reporting_damage(into.journal),
            ):
                merge_rows(parts, owners, journal)
                for key, value in describe_merged(parts, journal).items():
                    journal.note(key, value)
                return write_document(into, journal)


def _allow_open_files(count: int) -> None:
    """Have this process open so many files more, as far as the system lets a user say so."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = count + _FILES_BESIDE
    if soft != resource.RLIM_INFINITY and soft < wanted:
        most = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, most), hard))


def opened_parts(
    paths: Sequence[Path], stack: ExitStack, *, allow_other_host: bool
) -> list[RunPart]:
    """Open runs that are parts of one, in the order of their seeds; `stack` closes them.

    Raises:
        UserError: a run is none of a search, is damaged, or is no part of the same one.

    """
    parts = [stack.enter_context(open_part(path)) for path in paths]
    parts.sort(key=lambda part: (part.seed_ids.ranges, part.name))
    require_mergeable(parts, allow_other_host=allow_other_host)
    return parts


def _require_apart(paths: Sequence[Path], out: Path) -> None:
    resolved = [path.resolve() for path in paths]
    named = Counter(resolved)
    for path, place in zip(paths, resolved, strict=True):
        if named[place] > 1:
            raise UserError(f"{path} is named twice: name each run once")
        if place == out.resolve():
            raise UserError(f"{out} is one of the runs that are merged: name another with --out")


@contextmanager
def _naming_parts() -> Iterator[None]:
    """Say of a merged journal that cannot be worked with that one of the parts is damaged."""
    try:
        yield
    except DamagedJournalError as damaged:
        raise UserError(
            f"a run that is merged is damaged ({damaged.why}): `edgeflare report RUN` shows which"
        ) from damaged
