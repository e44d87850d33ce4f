"""Findings made nearer and stronger, on linear models whose borders are known."""

from __future__ import annotations

from dataclasses import replace
from statistics import median

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from driving import SearchCase, linear_model
from edgeflare.core.bounds import Bounds
from edgeflare.core.goal import Find, Goal
from edgeflare.core.input_space import Input
from edgeflare.core.query import Arm
from edgeflare.strategies.gradient_shrink import shrink_by_gradient
from edgeflare.strategies.shrink import shrink
from edgeflare.strategies.strengthen import strengthen
from edgeflare.strategies.surrogate import compared
from refinement_loop import (
    SEEDS,
    WEIGHTS,
    Refine,
    bench,
    contradicted,
    distance,
    everyone,
    like_the_twin,
    refined,
)

BOTH = pytest.mark.parametrize("refine", [shrink, strengthen])
KERNEL = Goal(Find.KERNEL)


def to_border(of: SearchCase) -> float:
    """The distance of the original's nearest border, were the image not bounded and real."""
    scores = WEIGHTS @ (of.seed.ravel() / 255.0)
    home = int(scores.argmax())
    others = [label for label in range(len(scores)) if label != home]
    slopes = np.linalg.norm(WEIGHTS[home] - WEIGHTS[others], axis=1) / 255.0
    return float(((scores[home] - scores[others]) / slopes).min())


def strength(of: SearchCase, image: Input, goal: Goal = Goal()) -> float:  # noqa: B008
    return goal.strength(everyone(of, image)) or 0.0


def labels(of: SearchCase, goal: Goal, image: Input) -> list[int | None]:
    return [answer.decision for answer in compared(goal, everyone(of, image))]


def with_member(of: SearchCase) -> SearchCase:
    """The same with a member of the ensemble that is like the device."""
    return replace(of, members={"builtin": of.models[Arm.DEVICE]})


@pytest.mark.slow
@BOTH
@settings(max_examples=15, deadline=None)
@given(st.sampled_from(SEEDS), st.sampled_from(list(Find)), st.integers(1, 300), st.booleans())
def test_what_is_refined_stays_a_finding_and_is_never_farther_or_weaker(
    refine: Refine, seed: np.ndarray, find: Find, budget: int, has_member: bool
) -> None:
    goal, of = Goal(find), replace(bench(seed), bounds=Bounds(200.0, 1500.0))
    of = with_member(of) if has_member else of

    one = refined(refine, of, goal, budget)

    before, after = one.before.input, one.after.input
    assert goal.met(everyone(of, after)) == "deviation"
    assert one.inputs <= budget
    assert of.bounds.holds(after, of.seed)
    assert one.after.operators == one.before.operators
    if refine is shrink:
        assert distance(of, after) <= distance(of, before)
    else:
        assert labels(of, goal, after) == labels(of, goal, before)
        assert strength(of, after, goal) >= strength(of, before, goal)


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


@pytest.mark.slow
def test_it_makes_deviations_twice_as_strong_and_asks_the_device_seldom() -> None:
    weak, strong = [], []
    for seed in SEEDS:
        of = like_the_twin(bench(seed))
        one = refined(strengthen, of, Goal(), 300)
        weak.append(strength(of, one.before.input))
        strong.append(strength(of, one.after.input))
        assert one.device_queries < one.inputs / 5
    assert min(strong) > 2 * median(weak)


@pytest.mark.slow
def test_gradients_lead_to_the_border_with_few_queries() -> None:
    near = []
    for seed in SEEDS:
        of = like_the_twin(bench(seed))
        one = refined(shrink_by_gradient, of, Goal(), 6)
        assert Goal().met(everyone(of, one.after.input)) == "deviation"
        assert one.inputs <= 6
        assert one.device_queries < 3
        near.append(distance(of, one.after.input) / to_border(of))
    assert median(near) < 1.1  # where estimated gradients take 800 queries to 1.15
    assert min(near) > 0.9


def test_where_no_translation_foretells_a_deviation_it_is_shrunk_by_estimates() -> None:
    of = bench(SEEDS[1])
    blind = replace(of, models={**of.models, Arm.TWIN: of.models[Arm.ORIGINAL]})
    one = refined(shrink_by_gradient, blind, Goal(), 150)
    assert distance(of, one.after.input) < 0.8 * distance(of, one.before.input)


def test_more_budget_never_ends_farther() -> None:
    of = like_the_twin(bench())
    distances = [distance(of, refined(shrink, of, Goal(), n).after.input) for n in (10, 100, 800)]
    assert distances == sorted(distances, reverse=True)
    assert distances[-1] < distances[0]


def test_without_a_member_kernels_are_judged_by_the_device_alone() -> None:
    of = bench()
    nearer, stronger = (refined(refine, of, KERNEL, 200) for refine in (shrink, strengthen))
    for made in (nearer, stronger):
        asked = {query.arms for query in made.queries if not query.again}
        assert asked - {(Arm.TWIN,)} == {(Arm.TWIN, Arm.DEVICE)}  # probes are of one side alone
        assert made.inputs > 100
    assert distance(of, nearer.after.input) < 0.9 * distance(of, nearer.before.input)
    before, after = (strength(of, one.input, KERNEL) for one in (stronger.before, stronger.after))
    assert after > before


def test_a_member_like_the_device_stands_in_for_it() -> None:
    of = with_member(bench())
    one = refined(shrink, of, KERNEL, 200)
    assert one.device_queries < one.inputs / 5
    assert {(query.arms, query.kernels) for query in one.queries if not query.again} == {
        ((Arm.TWIN,), ()),
        ((Arm.TWIN,), ("builtin",)),
    }
    assert distance(of, one.after.input) < 0.9 * distance(of, one.before.input)


@pytest.mark.slow
@BOTH
def test_what_the_device_contradicts_is_not_kept_and_it_is_asked_itself(refine: Refine) -> None:
    one = refined(refine, contradicted(bench()), Goal(), 1000)

    assert np.array_equal(one.after.input, one.before.input)
    if refine is shrink:
        assert 0 < one.device_queries < 20
    else:
        arms = [query.arms for query in one.queries]
        first = arms.index((Arm.ORIGINAL, Arm.DEVICE))
        assert (Arm.ORIGINAL, Arm.TWIN) in arms[:first]
        assert set(arms[first:]) == {(Arm.ORIGINAL, Arm.DEVICE)}


def test_the_least_strength_is_kept() -> None:
    of = replace(like_the_twin(bench()), seed=SEEDS[1])
    one = refined(shrink, of, Goal(min_strength=0.002), 400)
    assert strength(of, one.after.input) >= 0.002
    assert distance(of, one.after.input) < distance(of, one.before.input)


@BOTH
def test_the_same_generator_refines_alike(refine: Refine) -> None:
    def images(rng_seed: int) -> list[bytes]:
        one = refined(refine, bench(), Goal(), 120, rng_seed)
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

    one = refined(shrink, of, Goal(), 1500).after

    assert np.array_equal(one.input[:, 6:], of.seed[:, 6:])
    assert not np.array_equal(one.input[:, :6], of.seed[:, :6])
