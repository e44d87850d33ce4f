"""Several runs that searched parts of the same seeds, made one."""

from __future__ import annotations

import resource
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import replace
from heapq import merge
from pathlib import Path, PurePosixPath
from typing import Final

from edgeflare.errors import UserError
from edgeflare.record.atomic_file import write_atomically
from edgeflare.record.folder import ClaimedFolder
from edgeflare.record.journal import DamagedJournalError, reporting_damage
from edgeflare.run.derive_document import write_document
from edgeflare.run.journal import RunJournal
from edgeflare.run.merge.merge_description import describe_merged
from edgeflare.run.merge.run_part import RunPart, open_part, require_mergeable
from edgeflare.run.merge.seed_owners import SeedOwners, find_owners
from edgeflare.run.run_directory import FIXED_FILES, RUN, RunDirectory, fixed_name, list_journals
from edgeflare.run.run_document import RunDocument
from edgeflare.run.seed_rows import KEYS, Row

GROUP = 100
"""Runs that are merged at once: each takes three open files, and memory for the labels of all
seeds, and is compared with each other one."""


_OF_NO_SEED: Final = frozenset({"test", "canary"})
"""Roles of answers that say nothing of a seed's search: held-out inputs, and canaries."""

_TOLD_EVERY = 100
"""Findings between two reports of progress."""

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
        paths: paths of the runs, each of a search; their order changes nothing.
        out: the run directory of the merged one; may be absent or empty.
        overwrite: replace a run that is there, once all is merged.
        allow_other_host: whether runs of hosts that may answer differently are merged, which the
            merged run then says.
        copied: is told of how many findings the inputs are copied.

    Raises:
        UserError: a run is none of a search, is damaged, is no part of the same one, or disagrees
            with another on a seed; or there is something at `out`.

    """
    resolved = [path.resolve() for path in paths]
    named = Counter(resolved)
    for path, place in zip(paths, resolved, strict=True):
        if named[place] > 1:
            raise UserError(f"{path} is named twice: name each run once")
        if place == out.resolve():
            raise UserError(f"{out} is one of the runs that are merged: name another with --out")
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
            _copy_inputs(parts, owners, into, copied)
            with (
                closing(RunJournal.create(into.journal, {})) as journal,
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


@contextmanager
def _naming_parts() -> Iterator[None]:
    """Say of a merged journal that cannot be worked with that one of the parts is damaged."""
    try:
        yield
    except DamagedJournalError as damaged:
        raise UserError(
            f"a run that is merged is damaged ({damaged.why}): `edgeflare report RUN` shows which"
        ) from damaged


def _copy_inputs(
    parts: Sequence[RunPart],
    owners: SeedOwners,
    into: RunDirectory,
    copied: Callable[[int], None],
) -> None:
    """Copy what was found from each seed, the seed, and what goes with them.

    Args:
        parts: the runs.
        owners: run that says what became of each seed.
        into: the merged run's directory.
        copied: is told of how many findings all is copied.

    Raises:
        UserError: a file is gone, or is not what the run stored.

    """
    done = 0
    # Models take something beside the inputs that are searched: of each seed, or of none.
    has_fixed = any(any(part.directory.path.glob(FIXED_FILES)) for part in parts)
    for at, part in enumerate(parts):
        with reporting_damage(part.journal.path):
            # The input that the search found, of each finding that was refined.
            before = {row[0]: row[7] for row in part.journal.seed_rows.each("refinements")}
        for seed_id, image, sha256, seed_image in _stored(part):
            if owners.of.get(seed_id) != at:
                continue
            _copy(part, into, image, sha256)
            names = {seed_image, before.get(seed_id, image)} - {image}
            for name in (*names, *([fixed_name(seed_id)] if has_fixed else ())):
                _copy(part, into, name)
            done += 1
            if done % _TOLD_EVERY == 0:
                copied(done)
    copied(done)


def _stored(part: RunPart) -> Iterator[tuple[int, str, str, str]]:
    with reporting_damage(part.journal.path):
        for row in part.journal.seed_rows.each("triggers"):
            yield row[0], row[3], row[4], row[5]


def _copy(part: RunPart, into: RunDirectory, name: str, sha256: str | None = None) -> None:
    data = part.read_input(name, sha256)
    write_atomically(into.inside(name), data)


def merge_rows(parts: Sequence[RunPart], owners: SeedOwners, into: RunJournal) -> None:
    """Write what runs have of the seeds that are theirs into the journal of the merged run.

    Rows are read and written one by one in the order of their keys, so that a run of a million
    seeds takes no more memory than one of a few.

    Args:
        parts: the runs.
        owners: run that says what became of each seed.
        into: the merged run's journal.

    Raises:
        UserError: a run is damaged.

    """
    with into.transaction():
        for table, key in KEYS.items():
            rows = [_owned(part, at, owners, table) for at, part in enumerate(parts)]
            columns = len(key)
            ordered = merge(*rows, key=lambda row: row[:columns])
            into.seed_rows.insert(table, _each_once(ordered, columns))
        for part in parts:
            with reporting_damage(part.journal.path):
                for stint in part.journal.seed_rows.stints():
                    into.seed_rows.add_stint(stint)


def _owned(part: RunPart, at: int, owners: SeedOwners, table: str) -> Iterator[Row]:
    """Yield the rows of a run's table that count: of its own seeds, and of no seed at all."""
    seed_of = _SEED_OF.get(table, _first)
    with reporting_damage(part.journal.path):
        for row in part.journal.seed_rows.each(table):
            kept = table == "answers" and row[0] in _OF_NO_SEED
            if kept or owners.of.get(seed_of(row)) == at:
                yield row


def _first(row: Row) -> int:
    return int(row[0])


def _second(row: Row) -> int:
    return int(row[1])


def _of_file(row: Row) -> int:
    """Return the seed of a stored input, which its file is named by."""
    return int(PurePosixPath(row[0]).name.partition(".")[0])


_SEED_OF: Final[dict[str, Callable[[Row], int]]] = {
    "answers": _second,
    "marks": _second,
    "nearness": _of_file,
}


def _each_once(rows: Iterator[Row], columns: int) -> Iterator[Row]:
    """Leave out rows whose key was there: two runs may hold the same held-out input."""
    before: Row | None = None
    for row in rows:
        if row[:columns] != before:
            yield row
        before = row[:columns]


def merge_in_groups(
    paths: Sequence[Path], out: Path, *, overwrite: bool, allow_other_host: bool = False
) -> RunDocument:
    """Merge any number of runs into a run directory; see `merge_runs`.

    Args:
        paths: paths of the runs, each of a search.
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
            merged = []
            for begin in range(0, len(paths), GROUP):
                into = folder / f"{len(paths)}-{begin}"
                group = paths[begin : begin + GROUP]
                merge_runs(group, into, overwrite=False, allow_other_host=allow_other_host)
                merged.append(into)
            paths = merged
        return merge_into(claimed, paths, allow_other_host=allow_other_host)
