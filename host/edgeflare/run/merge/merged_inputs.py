"""The stored inputs of several runs in one run directory."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from edgeflare.record.atomic_file import write_atomically
from edgeflare.run.journal_database import reporting_damage
from edgeflare.run.merge.run_part import RunPart
from edgeflare.run.merge.seed_owners import SeedOwners
from edgeflare.run.run_directory import FIXED_FILES, RunDirectory, fixed_name

_TOLD_EVERY = 100
"""Findings between two reports of progress."""


def copy_inputs(
    parts: Sequence[RunPart],
    owners: SeedOwners,
    into: RunDirectory,
    copied: Callable[[int], None],
) -> None:
    """Copy what was found from each seed, the seed, and what goes with them.

    Args:
        parts: the runs.
        owners: which of them says what became of each seed.
        into: the merged run's directory.
        copied: is told of how many findings all is copied.

    Raises:
        UserError: a file is gone, or is not what the run stored.

    """
    done = 0
    # Models take something beside the inputs that are searched: of each seed, or of none.
    has_fixed = any(any(part.directory.path.glob(FIXED_FILES)) for part in parts)
    for at, part in enumerate(parts):
        before = _unrefined(part)
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


def _unrefined(part: RunPart) -> dict[int, str]:
    """Return the input that the search found, of each finding that was refined, by seed id."""
    with reporting_damage(part.journal.path):
        return {row[0]: row[7] for row in part.journal.seed_rows.each("refinements")}


def _copy(part: RunPart, into: RunDirectory, name: str, sha256: str | None = None) -> None:
    data = part.read_input(name, sha256)
    write_atomically(into.inside(name), data)
