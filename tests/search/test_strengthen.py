"""Strengthening on linear models."""

from __future__ import annotations

from dataclasses import replace
from statistics import median

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from driving import SearchCase
from edgeflare.core.arm import Arm
from edgeflare.core.bounds import Bounds
from edgeflare.core.goal import Find, Goal
from edgeflare.core.input import Input
from edgeflare.search.strengthen import strengthen
from edgeflare.search.surrogates.surrogate import compared
from refinement_loop import SEEDS, bench, contradicted, everyone, like_the_twin, refined


def strength_of(of: SearchCase, goal: Goal, image: Input) -> float:
    return goal.strength(everyone(of, image)) or 0.0


def labels_of(of: SearchCase, goal: Goal, image: Input) -> list[int | None]:
    return [answer.decision for answer in compared(goal, everyone(of, image))]


@pytest.mark.slow
@settings(max_examples=15, deadline=None)
@given(st.sampled_from(SEEDS), st.sampled_from(list(Find)), st.integers(1, 200), st.booleans())
def test_what_is_strengthened_has_its_labels_and_is_never_weaker(
    seed: np.ndarray, find: Find, budget: int, with_member: bool
) -> None:
    goal = Goal(find)
    of = replace(bench(seed), bounds=Bounds(200.0, 1500.0))
    if with_member:
        of = replace(of, members={"builtin": of.models[Arm.DEVICE]})

    one = refined(strengthen, of, goal, budget)

    before, after = one.before.input, one.after.input
    assert goal.met(everyone(of, after)) == "deviation"
    assert labels_of(of, goal, after) == labels_of(of, goal, before)
    assert strength_of(of, goal, after) >= strength_of(of, goal, before)
    assert one.inputs <= budget
    assert of.bounds.holds(after, of.seed)


@pytest.mark.slow
def test_it_makes_deviations_twice_as_strong_and_asks_the_device_seldom() -> None:
    goal, weak, strong = Goal(), [], []
    for seed in SEEDS:
        of = like_the_twin(bench(seed))
        one = refined(strengthen, of, goal, 300)
        weak.append(strength_of(of, goal, one.before.input))
        strong.append(strength_of(of, goal, one.after.input))
        assert one.device_queries < one.inputs / 5
    assert min(strong) > 2 * median(weak)


def test_kernel_deviations_grow_too_with_the_device_alone() -> None:
    goal, of = Goal(Find.KERNEL), bench()
    one = refined(strengthen, of, goal, 300)
    assert one.device_queries == one.inputs
    assert strength_of(of, goal, one.after.input) > strength_of(of, goal, one.before.input)


def test_a_device_that_contradicts_the_host_is_asked_about_every_input() -> None:
    one = refined(strengthen, contradicted(bench()), Goal(), 300)

    assert np.array_equal(one.after.input, one.before.input)
    arms = [query.arms for query in one.queries]
    first = arms.index((Arm.ORIGINAL, Arm.DEVICE))
    assert (Arm.ORIGINAL, Arm.TWIN) in arms[:first]
    assert set(arms[first:]) == {(Arm.ORIGINAL, Arm.DEVICE)}


def test_the_same_generator_strengthens_alike() -> None:
    def images(rng_seed: int) -> list[bytes]:
        one = refined(strengthen, bench(), Goal(), 100, rng_seed)
        return [query.input.tobytes() for query in one.queries]

    assert images(1) == images(1)
    assert images(1) != images(2)
