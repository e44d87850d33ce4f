"""Pairs of inputs between which a quantized model changes its decision without a tie."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from driving import SearchCase, answer, linear_model
from edgeflare.core.bounds import UNBOUNDED, Bounds
from edgeflare.core.goal import Find, Goal
from edgeflare.core.input_space import Input
from edgeflare.core.query import Arm, Outcome
from edgeflare.strategies.boundary import Boundary
from edgeflare.strategies.narrow_pair import narrow_pair

_RNG = np.random.default_rng(3)
WEIGHTS = _RNG.normal(0.0, 1.0, (3, 8 * 8))
SEED: Input = _RNG.integers(60, 190, size=(8, 8, 1), dtype=np.uint8)


def narrowed(
    input_: Input, bounds: Bounds = UNBOUNDED, rng: np.random.Generator | None = None
) -> tuple[Input, Input] | None:
    model = linear_model(WEIGHTS)
    case = SearchCase(SEED, dict.fromkeys(Arm, model))
    start = replace(case.start(Goal(Find.KERNEL)), bounds=bounds)
    start = start if rng is None else replace(start, rng=rng)
    narrowing = narrow_pair(start, input_, answer(model(input_)), Boundary(pair_share=1.0))
    asked = next(narrowing)
    while True:
        assert [query.arms for query in asked] == [(Arm.TWIN,)]  # the device is never asked
        assert all(bounds.holds(query.input, SEED) for query in asked)
        told = [Outcome({Arm.TWIN: answer(model(query.input))}) for query in asked]
        try:
            asked = narrowing.send(told)
        except StopIteration as end:
            found: tuple[Input, Input] | None = end.value
            return found


def boundary_input() -> Input:
    """The input nearest to the boundary on a line between two classes."""
    model = linear_model(WEIGHTS)
    home = int(model(SEED).argmax())
    away = WEIGHTS[(home + 1) % 3] - WEIGHTS[home]
    for step in range(1, 2000):
        moved = np.clip(SEED + step * 0.05 * away.reshape(SEED.shape), 0, 255)
        image: Input = moved.astype(np.uint8)
        if model(image).argmax() != home:
            return image
    raise AssertionError("the line crosses no boundary")


def test_the_two_differ_in_one_value_and_in_what_is_decided() -> None:
    model = linear_model(WEIGHTS)
    input_ = boundary_input()
    pair = narrowed(input_)
    assert pair is not None
    same, other = pair
    assert model(same).argmax() == model(input_).argmax() != model(other).argmax()
    assert np.abs(same.astype(int) - other.astype(int)).sum() == 1


def test_far_from_the_boundary_there_is_none() -> None:
    assert narrowed(SEED) is None


def test_no_input_is_farther_from_the_seed_than_the_bounds_allow() -> None:
    input_ = boundary_input()
    far = float(np.linalg.norm(input_.astype(float) - SEED))
    for seed in range(45):
        narrowed(input_, Bounds(max_l2=far + 0.1 * (seed % 20)), np.random.default_rng(seed))
