"""Which of several runs says what became of a seed, and that those which both have it agree."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field

from edgeflare.errors import UserError
from edgeflare.record.journal import reporting_damage
from edgeflare.run.journal_rows import REPETITIONS
from edgeflare.run.merge.run_part import RunPart
from edgeflare.run.seed_rows import Row

_NAMED = 5
"""Seeds that a message names."""

_FOUND = {"kind": 1, "operators": 2, "sha256": 4}
"""Columns of a trigger that have to agree."""

_CHANGE, _BEFORE = slice(6, 10), slice(8, 12)
"""Columns that say how far an input is from its seed: of a trigger, and of a refinement, which has
what it was before."""

_IMAGE_BEFORE = 7
"""Column of a refinement."""


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
        UserError: two runs disagree on a seed that both have, or one is damaged.

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
    for (one, two), seeds in apart.items():
        named = ", ".join(seeds[:_NAMED])
        more = f" and {len(seeds) - _NAMED} more" if len(seeds) > _NAMED else ""
        raise UserError(
            f"{one} and {two} disagree on seeds that both have: {named}{more}; they cannot be of"
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
    deviating = [bool(one) and not chain for one, chain in zip(found, (mine, theirs), strict=True)]
    return "whether it deviates itself" if any(deviating) and all(evaluated) else None


def _other_finding(
    seed_id: int, parts: Sequence[RunPart], found: Sequence[Row | None]
) -> str | None:
    """Return in what two findings from one seed differ; one may be refined, and the other not."""
    mine, theirs = (one or () for one in found)
    refined = [part.journal.seed_rows.of_seed("refinements", seed_id) for part in parts]
    if (refined[0] is None) == (refined[1] is None):
        apart = (name for name, at in _FOUND.items() if mine[at] != theirs[at])
        return next((f"the {name} of what was found" for name in apart), None)
    at = 0 if refined[0] is not None else 1
    before, unrefined = refined[at] or (), (theirs, mine)[at]
    stored = hashlib.sha256(parts[at].read_input(before[_IMAGE_BEFORE])).hexdigest()
    same = before[_BEFORE] == unrefined[_CHANGE] and stored == unrefined[_FOUND["sha256"]]
    return None if same else "what was found, before refining"
