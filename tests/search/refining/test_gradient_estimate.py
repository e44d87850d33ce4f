from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from edgeflare.core.arm import Arm
from edgeflare.core.goal import Goal
from edgeflare.core.input import Input
from edgeflare.search.refining.gradient_estimate import FIRST_PROBES, GradientEstimate
from edgeflare.search.refining.trigger_refinement import EvaluatedInput
from refinement_loop import CLASSES, SEEDS, WEIGHTS, bench, like_the_twin

BENCH = like_the_twin(bench())


def seen(image: Input) -> EvaluatedInput:
    outcome = BENCH.evaluate(image, tuple(Arm))
    return EvaluatedInput(
        image, outcome[Arm.ORIGINAL], outcome[Arm.DEVICE], outcome, deviates=False
    )


def likeness(one: NDArray[np.float64], other: NDArray[np.float64]) -> float:
    one, other = one.ravel(), other.ravel()
    return float(one @ other / np.linalg.norm(one) / np.linalg.norm(other))


def learned(probes: int) -> GradientEstimate:
    estimate, rng, here = (
        GradientEstimate(BENCH.seed, CLASSES),
        np.random.default_rng(1),
        seen(BENCH.seed),
    )
    for _ in range(probes):
        estimate.learn(here, seen(estimate.probes(here.input, 1, rng)[0]))
    return estimate


def test_probes_teach_the_gradient() -> None:
    truth = (WEIGHTS[0] - WEIGHTS[1]) / 255.0
    contrast = np.array([1.0, -1.0, 0.0, 0.0])
    few, many = (
        likeness(learned(n).linear_model(BENCH.seed).gradient(contrast), truth)
        for n in (10, FIRST_PROBES)
    )
    assert 0.4 < few < many
    assert many > 0.8


def test_what_is_learned_foretells_scores_elsewhere() -> None:
    here, there = seen(BENCH.seed), seen(SEEDS[1])
    contrasts = np.array([[1.0, -1.0, 0.0, 0.0]])
    estimate = learned(FIRST_PROBES)
    model = estimate.linear_model(here.input)
    assert np.allclose(
        model.at_seed(contrasts @ here.first.scores, contrasts), contrasts @ here.first.scores
    )
    estimate.learn(here, there)
    told = estimate.linear_model(there.input).at_seed(contrasts @ there.first.scores, contrasts)
    assert np.allclose(told, contrasts @ here.first.scores, atol=0.5)


def test_the_scores_are_flat_where_nothing_was_learned() -> None:
    here = seen(BENCH.seed)
    estimate = GradientEstimate(BENCH.seed, CLASSES)
    estimate.learn(here, replace(here, first=replace(here.first, decision=None, failure="crash")))
    model = estimate.linear_model(here.input)
    contrasts = np.eye(1, CLASSES)
    assert np.array_equal(
        model.at_seed(contrasts @ here.first.scores, contrasts), contrasts @ here.first.scores
    )
    assert not model.gradient(contrasts[0]).any()


def test_nothing_is_learned_from_an_arm_that_failed_or_a_step_of_no_length() -> None:
    estimate, here = learned(5), seen(BENCH.seed)
    before = estimate.linear_model(here.input).slopes
    broken = replace(here.first, decision=None, failure="crash")
    estimate.learn(here, replace(seen(SEEDS[1]), first=broken))
    estimate.learn(here, here)
    assert np.array_equal(estimate.linear_model(here.input).slopes, before)
    assert Goal().met(here.outcome) is None
