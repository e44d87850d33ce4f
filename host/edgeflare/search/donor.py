"""Bisect on the straight line from the seed to another seed of another class, a donor.

Somewhere on that line the one label changes, and somewhere the other; what lies between these two
places triggers. Each query halves the part of the line that must hold them. Where the images of a
line run out before that, the line to another donor is tried.

Such a trigger is a mixture of two images, which no mutation of one input would give, and far from
its seed. Its only operator is `donor`, so that it can be reported apart. No paper has this that we
know of.

Differences from the original
    There is no original.

Parameters and their reasons
    `FINEST` = 2^-20 of the line: 8-bit images nearer to each other than that are nearly always the
    same one. No image is asked about twice, so the fineness costs little: 8 queries part the gray
    levels, each further one halves the number of entries that still differ.
    Donors come in random order; the nearest ones first would ask each seed for every distance.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence

import numpy as np

from edgeflare.core.answer import Image
from edgeflare.core.arm import Arm
from edgeflare.core.outcome import Outcome
from edgeflare.core.query import Query
from edgeflare.core.trigger import Trigger
from edgeflare.search.strategy import Donor, SearchGenerator, Start

OPERATOR = "donor"
FINEST = 2.0**-20


def donor(start: Start) -> SearchGenerator:
    """Search on the lines to the donors of another class, until none is left."""
    for index in start.rng.permutation(len(start.donors)):
        chosen = start.donors[index]
        if _all_flipped(start, chosen.outcome):
            trigger = yield from _bisect(start, chosen)
            if trigger is not None:
                return trigger
    return None


def _bisect(start: Start, chosen: Donor) -> SearchGenerator:
    """Search on one line, up to where it leaves the bounds."""
    end = start.bounds.project(chosen.image, start.image)
    if end is not chosen.image:
        outcome, trigger = yield from _ask(start, end)
        if trigger is not None or not _all_flipped(start, outcome):
            return trigger
    low, high = 0.0, 1.0
    before, after = start.image, end
    while high - low > FINEST:
        middle = (low + high) / 2
        image = _between(start.image, end, middle)
        if np.array_equal(image, before):
            low = middle
        elif np.array_equal(image, after):
            high = middle
        else:
            outcome, trigger = yield from _ask(start, image)
            if trigger is not None:
                return trigger
            if _beyond(start, outcome):
                high, after = middle, image
            else:
                low, before = middle, image
    return None


def _ask(
    start: Start, image: Image
) -> Generator[Sequence[Query], Sequence[Outcome], tuple[Outcome, Trigger | None]]:
    (outcome,) = yield (Query(image, start.goal.needed),)
    kind = start.goal.met(outcome)
    trigger = None if kind is None else Trigger(image, kind, outcome, (OPERATOR,))
    return outcome, trigger


def _between(seed: Image, end: Image, share: float) -> Image:
    """Return the image at that share of the way; no entry is farther from the seed than at the end.

    So the bounds that hold at the end hold here.
    """
    change = np.subtract(end, seed, dtype=np.int16)
    image: Image = (seed + np.rint(share * change)).astype(np.uint8)
    return image


def _all_flipped(start: Start, outcome: Outcome) -> bool:
    return len(_flipped(start, outcome)) == len(start.goal.compared)


def _beyond(start: Start, outcome: Outcome) -> bool:
    """Whether triggers lie nearer to the seed than a non-trigger with this outcome.

    A tied arm is right at its own boundary, so the other arm's says on which side to go on.
    """
    return any(not outcome[arm].tied for arm in _flipped(start, outcome))


def _flipped(start: Start, outcome: Outcome) -> list[Arm]:
    """Return the compared arms whose labels are not those of the seed."""
    return [arm for arm in start.goal.compared if outcome[arm].label != start.outcome[arm].label]
