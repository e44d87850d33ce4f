"""Bisection on the line from the seed to a donor: another seed, of another class.

Each compared arm's decision changes somewhere on that line, and inputs between these two places
trigger. Each query halves the part of the line that must hold them. Where the inputs of a line are
exhausted before that, the line to another donor is tried, in random order: taking the nearest donor
first would cost each seed the distances to all of them.

Such a trigger is a mixture of two inputs, which no mutation of one input would give, and far from
its seed. Its only operator is `donor`, so that it can be reported apart. No paper has this that we
know of.

Differences from the original
    There is no original.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from edgeflare.core.goal import Trigger
from edgeflare.core.input_space import Input
from edgeflare.core.query import Arm, Outcome, Query
from edgeflare.strategies.strategy import (
    Donor,
    QueryGenerator,
    SearchGenerator,
    Start,
    Strategy,
)
from edgeflare.strategies.strategy_parameters import parameter

OPERATOR = "donor"


@dataclass(frozen=True)
class DonorBisection(Strategy):
    """Bisection on the lines to the donors of another class, until none is left."""

    summary = "bisects towards a seed of another class; its triggers mix two inputs"
    draws_from_pool = False
    needs_choices = True

    min_interval: float = parameter(
        2.0**-20,
        "Share of the line at which bisection ends: inputs of 8 bits that are nearer to each other"
        " than 2^-20 are nearly always the same one. No input is queried twice, so a small share"
        " costs little: 8 queries separate the levels, each further one halves the number of"
        " entries that still differ.",
        above=0.0,
        at_most=1.0,
    )

    def search(self, start: Start) -> SearchGenerator:
        """Search on one line after the other."""
        for index in start.rng.permutation(len(start.donors)):
            donor = start.donors[index]
            if _all_flipped(start, donor.outcome):
                trigger = yield from _bisect(start, donor, self.min_interval)
                if trigger is not None:
                    return trigger
        return None


def _bisect(start: Start, donor: Donor, min_interval: float) -> SearchGenerator:
    """Search on one line, up to where it leaves the bounds.

    No value is farther from the seed than at the end, so the bounds hold all along the line.
    """
    end = start.bounds.project(donor.input, start.seed)
    if end is not donor.input:
        outcome, trigger = yield from _query(start, end)
        if trigger is not None or not _all_flipped(start, outcome):
            return trigger
    low, high = 0.0, 1.0
    before, after = start.seed, end
    while high - low > min_interval:
        middle = (low + high) / 2
        candidate = start.space.between(start.seed, end, middle)
        if np.array_equal(candidate, before):
            low = middle
        elif np.array_equal(candidate, after):
            high = middle
        else:
            outcome, trigger = yield from _query(start, candidate)
            if trigger is not None:
                return trigger
            if _beyond(start, outcome):
                high, after = middle, candidate
            else:
                low, before = middle, candidate
    return None


def _query(start: Start, candidate: Input) -> QueryGenerator[tuple[Outcome, Trigger | None]]:
    (outcome,) = yield (Query(candidate, start.goal.needed),)
    kind = start.goal.met(outcome)
    trigger = None if kind is None else Trigger(candidate, kind, outcome, (OPERATOR,))
    return outcome, trigger


def _all_flipped(start: Start, outcome: Outcome) -> bool:
    return len(_flipped(start, outcome)) == len(start.goal.compared)


def _beyond(start: Start, outcome: Outcome) -> bool:
    """Whether triggers lie nearer to the seed than a non-trigger with this outcome.

    A tied arm is on its own boundary, so the other arm's decision tells the side to continue on.
    """
    return any(not outcome[arm].tied for arm in _flipped(start, outcome))


def _flipped(start: Start, outcome: Outcome) -> list[Arm]:
    """Return the compared arms whose decisions are not those of the seed."""
    return [arm for arm in start.goal.compared if outcome[arm].differs(start.outcome[arm])]
