"""The surrogates of a goal: that of a search, and those that refinement chooses from."""

from __future__ import annotations

from collections.abc import Sequence

from edgeflare.core.arm import Arm
from edgeflare.core.goal import Find, Goal
from edgeflare.core.outcome import Outcome
from edgeflare.search.strategy import Donor
from edgeflare.search.surrogates.ensemble_surrogate import EnsembleSurrogate, MemberSurrogate
from edgeflare.search.surrogates.near_tie_surrogate import (
    NearTieSurrogate,
    NearTieWithOriginalSurrogate,
)
from edgeflare.search.surrogates.surrogate import NoSurrogate, Surrogate
from edgeflare.search.surrogates.twin_surrogate import (
    TwinSurrogate,
    TwinThenNearTieSurrogate,
    UnanimousTwinSurrogate,
)


def search_surrogate(
    goal: Goal,
    ensemble: tuple[str, ...],
    seed: Outcome,
    donors: Sequence[Donor] = (),
    *,
    host_predicts: bool = True,
) -> Surrogate:
    """Return the surrogate of a search.

    Args:
        goal: what is looked for.
        ensemble: kernel sets of the twin beside its own.
        seed: the seed's outcome, which tells whether there is an original.
        donors: seeds of the campaign, whose outcomes tell whether the device is like its twin.
        host_predicts: whether models of the host may answer in the device's place; else it answers
            itself.

    """
    if not host_predicts:
        return NoSurrogate(goal, goal.needed)
    if goal.find is Find.COMPRESSION:
        return UnanimousTwinSurrogate(goal, ensemble)
    if goal.find is Find.ANY:
        return TwinThenNearTieSurrogate(goal, donors)
    has_original = Arm.ORIGINAL in seed.answers
    near_ties = NearTieWithOriginalSurrogate(goal) if has_original else NearTieSurrogate(goal)
    return EnsembleSurrogate(goal, ensemble, near_ties) if ensemble else near_ties


def refinement_surrogates(goal: Goal, ensemble: tuple[str, ...]) -> tuple[Surrogate, ...]:
    """Return the surrogates that may show the trigger to deviate, and last the device itself."""
    device = NoSurrogate(goal, goal.needed)
    if goal.find is Find.KERNEL:
        return (*(MemberSurrogate(goal, name) for name in ensemble), device)
    return (TwinSurrogate(goal), device)
