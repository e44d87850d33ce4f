from __future__ import annotations

from collections.abc import Generator, Sequence
from typing import TypeVar

import numpy as np
import pytest

from edgeflare.core.goal import Goal
from edgeflare.core.outcome import Outcome
from edgeflare.core.query import Query
from edgeflare.search.refining.decision_boundary import (
    DecisionBoundary,
    find_crossing,
    seed_distance,
    step_towards_seed,
)
from edgeflare.search.refining.gradient_estimate import GradientEstimate
from edgeflare.search.refining.trigger_refinement import EvaluatedInput, TriggerRefinement
from refinement_loop import CLASSES, SEEDS, bench, like_the_twin, trigger_of

T = TypeVar("T")
BENCH = like_the_twin(bench())


def told(part: Generator[Sequence[Query], Sequence[Outcome], T]) -> T:
    try:
        asked = next(part)
        while True:
            asked = part.send([BENCH.evaluate(query.input, query.arms) for query in asked])
    except StopIteration as end:
        result: T = end.value
        return result


@pytest.fixture
def refinement() -> TriggerRefinement:
    return TriggerRefinement(trigger_of(BENCH, Goal()), BENCH.start(Goal()), 1000)


@pytest.fixture
def boundary(refinement: TriggerRefinement) -> DecisionBoundary:
    home = int(refinement.at_seed().first.scores.argmax())
    return DecisionBoundary(home, tuple(label for label in range(CLASSES) if label != home))


def crossing(refinement: TriggerRefinement, boundary: DecisionBoundary) -> EvaluatedInput:
    way = refinement.at_trigger().input.astype(np.float64) - BENCH.seed
    seen = told(
        find_crossing(refinement, boundary, GradientEstimate(BENCH.seed, CLASSES), way, 1e9)
    )
    assert seen is not None
    return seen


def test_it_is_crossed_by_little(refinement: TriggerRefinement, boundary: DecisionBoundary) -> None:
    there = crossing(refinement, boundary)
    assert boundary.margin(refinement.at_seed().first) > 0
    assert -0.5 < boundary.margin(there.first) <= 0
    assert refinement.left < 1000


def test_a_way_that_does_not_cross_it_leads_nowhere(
    refinement: TriggerRefinement, boundary: DecisionBoundary
) -> None:
    back = np.zeros(BENCH.seed.shape)
    assert (
        told(find_crossing(refinement, boundary, GradientEstimate(BENCH.seed, CLASSES), back, 1e9))
        is None
    )
    way = SEEDS[1].astype(np.float64) - BENCH.seed
    assert (
        told(find_crossing(refinement, boundary, GradientEstimate(BENCH.seed, CLASSES), way, 1.0))
        is None
    )


def test_the_next_place_is_nearer_and_beyond_the_border_too(
    refinement: TriggerRefinement, boundary: DecisionBoundary
) -> None:
    here, estimate = crossing(refinement, boundary), GradientEstimate(BENCH.seed, CLASSES)
    there = here
    for _ in range(5):
        before = there
        there = told(step_towards_seed(refinement, boundary, estimate, before))
        assert seed_distance(refinement, there) <= seed_distance(refinement, before)
        assert boundary.margin(there.first) <= 0
    assert seed_distance(refinement, there) < 0.8 * seed_distance(refinement, here)


def test_the_margin_is_that_over_the_best_rival() -> None:
    answer = BENCH.evaluate(BENCH.seed, tuple(BENCH.models)).answers
    for one in answer.values():
        boundary = DecisionBoundary(2, (0, 3))
        rows = boundary.contrasts(4) @ one.scores
        assert boundary.margin(one) == pytest.approx(rows.min())
