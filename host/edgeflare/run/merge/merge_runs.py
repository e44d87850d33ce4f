"""Several runs that searched parts of the same seeds, made one."""

from __future__ import annotations

import hashlib
import resource
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field, replace
from heapq import merge
from pathlib import Path, PurePosixPath
from typing import Final

from edgeflare.errors import UserError
from edgeflare.record.atomic_file import write_atomically
from edgeflare.record.folder import ClaimedFolder
from edgeflare.record.journal import DamagedJournalError, reporting_damage
from edgeflare.run.derive_document import write_document
from edgeflare.run.journal_rows import REPETITIONS
from edgeflare.run.merge.merge_description import describe_merged
from edgeflare.run.merge.run_part import RunPart, open_part, require_mergeable
from edgeflare.run.run_directory import FIXED_FILES, RUN, RunDirectory, fixed_name, list_journals
from edgeflare.run.run_document import RunDocument
from edgeflare.run.run_journal import RunJournal
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

_NAMED = 5
"""Seeds that a message names."""

_FOUND = {"kind": 1, "operators": 2, "sha256": 4}
"""Columns of a trigger that have to agree."""

_CHANGE, _BEFORE = slice(6, 10), slice(8, 12)
"""Columns that say how far an input is from its seed: of a trigger, and of a refinement, which has
what it was before."""

_IMAGE_BEFORE = 7
"""Column of a refinement."""


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
        UserError: a run is none of a search, or is no part of the same one.

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


@dataclass(slots=True)
class SeedOwners:
    """For each seed the run that has come farthest with it, the first of those.

    Attributes:
        of: the position of the run among those that are merged, by seed id.
        doubled: the positions of all runs that have a seed, of those that several have.

    """

    of: dict[int, int] = field(default_factory=dict)
    doubled: dict[int, list[int]] = field(default_factory=dict)


def find_owners(parts: Sequence[RunPart]) -> SeedOwners:
    """Return which run says what became of each seed.

    Raises:
        UserError: two runs disagree on a seed that both have.

    """
    owners, farthest = SeedOwners(), dict[int, int]()
    for at, part in enumerate(parts):
        with reporting_damage(part.journal.path):
            for seed_id, stage in part.journal.seed_rows.stages(REPETITIONS):
                before = owners.of.setdefault(seed_id, at)
                if before != at:
                    doubled = owners.doubled.setdefault(seed_id, [before])
                    if doubled[-1] != at:
                        doubled.append(at)
                if stage > farthest.get(seed_id, 0):
                    farthest[seed_id], owners.of[seed_id] = stage, at
    _require_agreement(parts, owners)
    return owners


def _require_agreement(parts: Sequence[RunPart], owners: SeedOwners) -> None:
    """Require that runs sharing a seed agree with the one that got farthest with it."""
    apart: dict[tuple[str, str], list[str]] = {}
    for seed_id, places in sorted(owners.doubled.items()):
        farthest = owners.of[seed_id]
        for at in places:
            first, second = (parts[place] for place in sorted((farthest, at)))
            if at != farthest and (what := _disagreement(seed_id, first, second)):
                apart.setdefault((first.name, second.name), []).append(f"{seed_id} ({what})")
    for (own, two), seeds in apart.items():
        named = ", ".join(seeds[:_NAMED])
        more = f" and {len(seeds) - _NAMED} more" if len(seeds) > _NAMED else ""
        raise UserError(
            f"{own} and {two} disagree on seeds that both have: {named}{more}; they cannot be of"
            " one run, so leave one out, or make it again"
        )


def _disagreement(seed_id: int, one: RunPart, other: RunPart) -> str | None:
    """Return in what two runs disagree on a seed, as far as both have come; None if in nothing."""
    rows = [part.journal.seed_rows for part in (one, other)]
    mine, theirs = (each.of_seed("chains", seed_id) for each in rows)
    if mine and theirs and mine[:-1] != theirs[:-1]:  # the last are seconds
        return "what its search took"
    found = [each.of_seed("triggers", seed_id) for each in rows]
    if None not in found:
        if (mine is None) != (theirs is None):
            return "whether it deviates itself"
        return _other_finding(seed_id, (one, other), found)
    # One that was searched deviates in no run, and one that deviates was searched in none.
    evaluated = [each.has_screened(seed_id) for each in rows]
    deviating = [
        bool(trigger) and not chain for trigger, chain in zip(found, (mine, theirs), strict=True)
    ]
    return "whether it deviates itself" if any(deviating) and all(evaluated) else None


def _other_finding(
    seed_id: int, parts: Sequence[RunPart], found: Sequence[Row | None]
) -> str | None:
    """Return in what two findings from one seed differ; one may be refined, and the other not."""
    mine, theirs = (trigger or () for trigger in found)
    refined = [part.journal.seed_rows.of_seed("refinements", seed_id) for part in parts]
    if (refined[0] is None) == (refined[1] is None):
        apart = (name for name, at in _FOUND.items() if mine[at] != theirs[at])
        return next((f"the {name} of what was found" for name in apart), None)
    at = 0 if refined[0] is not None else 1
    before, unrefined = refined[at] or (), (theirs, mine)[at]
    stored = hashlib.sha256(parts[at].read_input(before[_IMAGE_BEFORE])).hexdigest()
    same = before[_BEFORE] == unrefined[_CHANGE] and stored == unrefined[_FOUND["sha256"]]
    return None if same else "what was found, before refining"
