"""Two hardly different inputs between which the twin's decision changes without a tie.

A twin of 8 bits rounds its two best scores. It is tied where they are rounded to one number, so it
changes its decision without a tie only where both scores cross a rounding threshold at once. There
a device whose kernels round a little otherwise may decide otherwise; anywhere else it ties first.
On an int8 LeNet-5 with built-in kernels 16 of 1,000 near-ties of the twin are findings, and 100 of
1,000 inputs of a pair that differs in one value by one level.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from edgeflare.core.answer import Answer
from edgeflare.core.input_space import Input
from edgeflare.core.query import Arm, Query
from edgeflare.strategies.boundary_parameters import BoundaryParameters
from edgeflare.strategies.strategy import QueryGenerator, Start

_MOST_UNDECIDED: Final = 8
"""Inputs between the two of a pair that may tie the twin or be too far from the seed, before the
pair stays as it is.
With 4 the LeNet-5 takes 20 device queries and 406 queries for a finding, with 8 14 and 316; a
ResNet-20 takes 6 and 96, and 4 and 72 (30 and 15 seeds)."""


def narrow_pair(
    start: Start, input_: Input, answer: Answer, parameters: BoundaryParameters
) -> QueryGenerator[tuple[Input, Input] | None]:
    """Look around an input for one that the twin decides otherwise, and narrow the two.

    Args:
        start: what the search began with.
        input_: an input on which the twin is not tied.
        answer: the twin's answer to it.
        parameters: those of the search.

    Returns:
        An input that is decided as the one given, and one that is decided otherwise; None where
        there was none around it.

    """
    for _ in range(parameters.pair_probes):
        other = _dithered(start, input_, parameters.pair_share)
        otherwise = yield from _twin(other)
        if otherwise.differs(answer) and not otherwise.tied:
            break
    else:
        return None
    undecided = 0
    while undecided < _MOST_UNDECIDED:
        apart = np.flatnonzero(input_ != other)
        if len(apart) <= 1:
            break
        moved = start.rng.choice(apart, len(apart) // 2, replace=False)
        between = input_.copy()
        between.flat[moved] = other.flat[moved]
        if not start.bounds.holds(between, start.seed):  # values of both may be too long together
            undecided += 1
            continue
        said = yield from _twin(between)
        if said.tied or (said.differs(answer) and said.differs(otherwise)):
            undecided += 1
        elif said.differs(answer):
            other = between
        else:
            input_ = between
    return input_, other


def _dithered(start: Start, input_: Input, share: float) -> Input:
    """Return an input of which a share of the values is a level higher or lower, by chance."""
    rng, space = start.rng, start.space
    noise = rng.choice((-1.0, 1.0), input_.shape) * (rng.random(input_.shape) < share)
    return start.bounds.project(space.nearest(space.levels(input_) + noise), start.seed)


def _twin(input_: Input) -> QueryGenerator[Answer]:
    (outcome,) = yield (Query(input_, (Arm.TWIN,)),)
    return outcome[Arm.TWIN]
