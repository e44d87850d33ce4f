"""The search for the blocks to promote: greedily forward, then backward.

The shape is that of neural-compressor's mse_v2 (https://github.com/intel/neural-compressor,
`strategy/mse_v2.py`): operators that harm most are promoted one after the other, and then those are
taken back that the gain does not need. Which ones is measured at each step, not foretold by one
ranking: the few blocks that the ranking has in front are each promoted beside those that are
already, and the one with the least error stays promoted.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from edgeflare.repair.precision.blocks import Block
from edgeflare.repair.precision.promoted_models import Measure, PromotedModel

AT_ONCE = 4
"""Blocks that are tried at a step, those first in the ranking."""

LEAST_GAIN = 0.01
"""The share of the error that promotions have to take away, and that taking back may give back in
all."""


@dataclass(frozen=True, slots=True)
class SearchStep:
    """A step of the search.

    Attributes:
        block: that is promoted or taken back.
        taken_back: which of the two.
        after: the file after the step.

    """

    block: Block
    taken_back: bool
    after: PromotedModel


def search_precision(ranking: Sequence[Block], measure: Measure) -> list[SearchStep]:
    """Return the steps: forward to the least error that was met, and backward from there.

    Args:
        ranking: all blocks, those first that seem best to promote.
        measure: of a network without promoted blocks.

    Returns:
        Nothing where no step gains.

    """
    nothing = measure(())
    if nothing is None:
        return []
    forward = list(_promotions(nothing, ranking, measure))
    errors = [one.after.error.mean for one in forward]
    least = min(errors, default=float("inf"))
    if least >= nothing.error.mean * (1 - LEAST_GAIN):
        return []
    path = forward[: errors.index(least) + 1]
    most = least * (1 + LEAST_GAIN)
    while (step := _demotion(path[-1].after, most, measure)) is not None:
        path.append(step)
    return path


def improvements(before: PromotedModel, path: Sequence[SearchStep]) -> list[PromotedModel]:
    """Return the files forward on a path that have less error than all before them.

    Args:
        before: the file without promoted blocks.
        path: as `search_precision` returns it.

    """
    found = [before]
    for step in path:
        if not step.taken_back and step.after.error.mean < found[-1].error.mean:
            found.append(step.after)
    return found[1:]


def _promotions(
    nothing: PromotedModel, ranking: Sequence[Block], measure: Measure
) -> Iterator[SearchStep]:
    """Yield promotions until all blocks are promoted that can be.

    Each is the best among the first few of the ranking; it may add to the error, which often falls
    only when the neighbours of a block are promoted too.
    """
    now = nothing
    left = list(ranking)
    while left:
        tried = [
            SearchStep(one, False, after)
            for one in left[:AT_ONCE]
            if (after := measure((*now.blocks, one))) is not None
        ]
        if not tried:
            left = left[AT_ONCE:]
            continue
        best = min(tried, key=lambda step: step.after.error.mean)
        left.remove(best.block)
        yield best
        now = best.after


def _demotion(now: PromotedModel, most: float, measure: Measure) -> SearchStep | None:
    """Return the step that takes back the block that is needed least; None where all are needed."""
    if len(now.blocks) < 2:
        return None
    tried = (
        SearchStep(one, True, after)
        for one in now.blocks
        if (after := measure([other for other in now.blocks if other != one])) is not None
    )
    best = min(tried, key=lambda step: step.after.error.mean, default=None)
    return None if best is None or best.after.error.mean > most else best
