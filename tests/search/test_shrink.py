"""Shrinking on linear models, where the least distance of any deviation is known."""

from __future__ import annotations

from dataclasses import replace
from statistics import median

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from driving import SearchCase, linear_model
from edgeflare.core.arm import Arm
from edgeflare.core.bounds import Bounds
from edgeflare.core.goal import Find, Goal
from edgeflare.core.trigger import Trigger
from edgeflare.search.shrink import shrink
from refinement_loop import (
    SEEDS,
    WEIGHTS,
    bench,
    contradicted,
    distance,
    everyone,
    like_the_twin,
    refined,
)

GOALS = st.builds(Goal, st.sampled_from(list(Find)), st.just(False), st.just(0.0))


def to_border(of: SearchCase) -> float:
    """The distance of the original's nearest border, were the image not bounded and real."""
    scores = WEIGHTS @ (of.seed.ravel() / 255.0)
    home = int(scores.argmax())
    others = [label for label in range(len(scores)) if label != home]
    slopes = np.linalg.norm(WEIGHTS[home] - WEIGHTS[others], axis=1) / 255.0
    return float(((scores[home] - scores[others]) / slopes).min())


@pytest.mark.slow
@settings(max_examples=15, deadline=None)
@given(st.sampled_from(SEEDS), GOALS, st.integers(1, 300), st.booleans())
def test_what_is_shrunk_is_a_finding_and_never_farther(
    seed: np.ndarray, goal: Goal, budget: int, with_member: bool
) -> None:
    of = replace(bench(seed), bounds=Bounds(200.0, 1500.0))
    if with_member:
        of = replace(of, members={"builtin": of.models[Arm.DEVICE]})

    one = refined(shrink, of, goal, budget)

    assert goal.met(everyone(of, one.after.input)) == "deviation"
    assert distance(of, one.after.input) <= distance(of, one.before.input)
    assert one.inputs <= budget
    assert one.after.operators == one.before.operators


@pytest.mark.slow
@pytest.mark.parametrize("find", [Find.ANY, Find.COMPRESSION])
def test_it_comes_close_to_the_border_and_the_device_is_seldom_asked(find: Find) -> None:
    far, near = [], []
    for seed in SEEDS:
        of = like_the_twin(bench(seed))
        one = refined(shrink, of, Goal(find), 800)
        far.append(distance(of, one.before.input) / to_border(of))
        near.append(distance(of, one.after.input) / to_border(of))
        assert one.device_queries < one.inputs / 10
    assert median(far) > 1.6
    assert median(near) < 1.15
    assert min(near) > 0.9  # nearer than the border nothing deviates, but for rounding


def test_more_budget_never_ends_farther() -> None:
    of = like_the_twin(bench())
    distances = [distance(of, refined(shrink, of, Goal(), n).after.input) for n in (10, 100, 800)]
    assert distances == sorted(distances, reverse=True)
    assert distances[-1] < distances[0]


def test_without_a_member_kernels_are_judged_by_the_device_alone() -> None:
    of = bench()
    one = refined(shrink, of, Goal(Find.KERNEL), 200)
    assert one.device_queries == one.inputs > 100
    assert distance(of, one.after.input) < 0.9 * distance(of, one.before.input)


def test_a_member_like_the_device_stands_in_for_it() -> None:
    of = bench()
    of = replace(of, members={"builtin": of.models[Arm.DEVICE]})
    one = refined(shrink, of, Goal(Find.KERNEL), 200)
    assert one.device_queries < one.inputs / 5
    assert {query.kernels for query in one.queries} == {("builtin",), ()}
    assert distance(of, one.after.input) < 0.9 * distance(of, one.before.input)


def test_what_the_device_contradicts_is_not_kept() -> None:
    of = contradicted(bench())
    one = refined(shrink, of, Goal(), 1000)
    assert np.array_equal(one.after.input, one.before.input)
    assert 0 < one.device_queries < 20


def test_the_least_strength_is_kept() -> None:
    of = replace(like_the_twin(bench()), seed=SEEDS[1])
    weak = Goal(min_strength=0.0)
    strong = Goal(min_strength=0.002)
    one = refined(shrink, of, strong, 400)
    other = refined(shrink, of, weak, 400)
    answers = everyone(of, one.after.input)
    confidence = answers[Arm.ORIGINAL].strength_against(answers[Arm.DEVICE])
    assert confidence is not None
    assert confidence >= 0.002
    assert distance(of, one.after.input) < distance(of, one.before.input)
    assert distance(of, other.after.input) < distance(of, other.before.input)


def test_the_same_generator_shrinks_alike() -> None:
    def images(rng_seed: int) -> list[bytes]:
        one = refined(shrink, bench(), Goal(), 150, rng_seed)
        return [query.input.tobytes() for query in one.queries]

    assert images(1) == images(1)
    assert images(1) != images(2)


def test_pixels_that_do_nothing_are_those_of_the_seed() -> None:
    """Two sides of an image, of which the models look at one."""
    blind = np.ones((12, 12))
    blind[:, 6:] = 0.0
    seen = WEIGHTS * blind.ravel()
    bent = seen + np.random.default_rng(1).normal(0.0, 0.02, seen.shape) * blind.ravel()
    half = linear_model(bent, 0.01)
    of = SearchCase(SEEDS[2], {Arm.ORIGINAL: linear_model(seen), Arm.TWIN: half, Arm.DEVICE: half})

    one: Trigger = refined(shrink, of, Goal(), 1500).after

    assert np.array_equal(one.input[:, 6:], of.seed[:, 6:])
    assert not np.array_equal(one.input[:, :6], of.seed[:, :6])
