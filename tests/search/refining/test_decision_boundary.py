from __future__ import annotations

from collections.abc import Generator, Sequence
from typing import TypeVar

import numpy as np
import pytest

from edgeflare.core.goal import Goal
from edgeflare.core.outcome import Outcome
from edgeflare.core.query import Query
from edgeflare.search.refining.decision_boundary import DecisionBoundary, cross, far, nearer
from edgeflare.search.refining.gradient_estimate import GradientEstimate
from edgeflare.search.refining.trigger_refinement import EvaluatedInput, TriggerRefinement
from refinement_loop import CLASSES, SEEDS, bench, like_the_twin, trigger_of

T = TypeVar("T")
BENCH = like_the_twin(bench())


def told(part: Generator[Sequence[Query], Sequence[Outcome], T]) -> T:
    try:
        asked = next(part)
        while True:
            asked = part.send([BENCH.evaluate(query.image, query.arms) for query in asked])
    except StopIteration as end:
        result: T = end.value
        return result


@pytest.fixture
def trial() -> TriggerRefinement:
    return TriggerRefinement(trigger_of(BENCH, Goal()), BENCH.start(Goal()), 1000)


@pytest.fixture
def border(trial: TriggerRefinement) -> DecisionBoundary:
    home = int(trial.at_seed().first.scores.argmax())
    return DecisionBoundary(home, tuple(label for label in range(CLASSES) if label != home))


def crossing(trial: TriggerRefinement, border: DecisionBoundary) -> EvaluatedInput:
    way = trial.at_trigger().image.astype(np.float64) - BENCH.seed
    seen = told(cross(trial, border, GradientEstimate(BENCH.seed, CLASSES), way, 1e9))
    assert seen is not None
    return seen


def test_it_is_crossed_by_little(trial: TriggerRefinement, border: DecisionBoundary) -> None:
    there = crossing(trial, border)
    assert border.margin(trial.at_seed().first) > 0
    assert -0.5 < border.margin(there.first) <= 0
    assert trial.left < 1000


def test_a_way_that_does_not_cross_it_leads_nowhere(
    trial: TriggerRefinement, border: DecisionBoundary
) -> None:
    back = np.zeros(BENCH.seed.shape)
    assert told(cross(trial, border, GradientEstimate(BENCH.seed, CLASSES), back, 1e9)) is None
    way = SEEDS[1].astype(np.float64) - BENCH.seed
    assert told(cross(trial, border, GradientEstimate(BENCH.seed, CLASSES), way, 1.0)) is None


def test_the_next_place_is_nearer_and_beyond_the_border_too(
    trial: TriggerRefinement, border: DecisionBoundary
) -> None:
    here, slope = crossing(trial, border), GradientEstimate(BENCH.seed, CLASSES)
    there = here
    for _ in range(5):
        before = there
        there = told(nearer(trial, border, slope, before))
        assert far(trial, there) <= far(trial, before)
        assert border.margin(there.first) <= 0
    assert far(trial, there) < 0.8 * far(trial, here)


def test_the_margin_is_that_over_the_best_rival() -> None:
    answer = BENCH.evaluate(BENCH.seed, tuple(BENCH.models)).answers
    for one in answer.values():
        border = DecisionBoundary(2, (0, 3))
        rows = border.contrasts(4) @ one.scores
        assert border.margin(one) == pytest.approx(rows.min())
