"""Changes of long inputs that are cut into parts, and the shortest sum of these."""

from __future__ import annotations

import contextlib
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from driving import SearchCase, linear_model
from edgeflare.core.bounds import Bounds
from edgeflare.core.goal import Goal, Trigger
from edgeflare.core.input_space import InputSpace
from edgeflare.core.query import Arm, Outcome
from edgeflare.strategies.refining.part_scaling import MOST, is_long, parts_of, shortest
from edgeflare.strategies.refining.trigger_refinement import RefinementOver, TriggerRefinement
from edgeflare.strategies.shrink import scale_parts
from refinement_loop import everyone

SOUND = InputSpace("int16", -32_768, 32_767, cell_axes=1, level=16.0)


@given(st.integers(0, 2**32 - 1), st.integers(1, 40))
def test_parts_are_the_change_and_do_not_overlap(rng_seed: int, count: int) -> None:
    change = np.random.default_rng(rng_seed).normal(size=(60, 2))
    change[:20] = 0.0
    parts = parts_of(change, count)
    left = change - sum(parts)
    assert (left**2).sum() <= 1e-4 * count * (change**2).sum()
    assert np.array_equal(left[left != 0], change[left != 0])
    assert max(sum((part != 0).astype(int) for part in parts).ravel()) == 1
    assert all(part.any() for part in parts)


@given(st.integers(0, 2**32 - 1))
def test_no_mixture_of_parts_that_gains_as_much_is_shorter(rng_seed: int) -> None:
    rng = np.random.default_rng(rng_seed)
    parts = parts_of(rng.normal(size=64), 8)
    gains = rng.normal(0.5, 1.0, 8)
    wanted = max(float(gains.sum()), 0.1)
    most = MOST * float(gains[gains > 0].sum())
    made = shortest(parts, gains, wanted)
    scales = np.array([float((made * part).sum() / (part**2).sum()) for part in parts])
    assert scales.min() >= 0.0
    assert scales.max() <= MOST + 1e-9
    assert float((scales * gains).sum()) == pytest.approx(min(wanted, most), rel=1e-6)
    for _ in range(20):
        other = rng.uniform(0.0, MOST, 8)
        if float((other * gains).sum()) >= wanted:
            assert np.linalg.norm(made) <= np.linalg.norm(
                sum(a * part for a, part in zip(other, parts, strict=True))
            )


def test_only_inputs_of_one_long_axis_are_cut() -> None:
    assert is_long(SOUND, (1_024,))
    assert not is_long(SOUND, (1_023,))
    assert not is_long(replace(SOUND, cell_axes=2), (4_000, 2, 1))


def test_a_long_input_comes_nearer_by_its_parts() -> None:
    """High frequencies in one fiftieth of the input decide: no cosine that is probed has them."""
    rng = np.random.default_rng(3)
    weights = np.zeros((3, 2_000))
    weights[:, 800:840] = rng.normal(0.0, 0.01, (3, 40)) * np.where(np.arange(40) % 2, 1, -1)
    bent = linear_model(weights + rng.normal(0.0, 2e-4, weights.shape))
    models = {Arm.ORIGINAL: linear_model(weights), Arm.TWIN: bent, Arm.DEVICE: bent}
    of = SearchCase(rng.integers(-3_000, 3_000, 2_000).astype(np.int16), models)
    start = replace(of.start(Goal()), space=SOUND, bounds=Bounds(space=SOUND))
    mutants = (
        SOUND.nearest(SOUND.levels(of.seed) + rng.normal(0, 60, 2_000)) for _ in range(9_999)
    )
    found = next(mutant for mutant in mutants if Goal().met(everyone(of, mutant)))
    refinement = TriggerRefinement(Trigger(found, "deviation", everyone(of, found), ()), start, 200)
    answered: list[Outcome] = []
    move = scale_parts(refinement)
    with contextlib.suppress(StopIteration, RefinementOver):
        asked = next(move)
        while True:
            answered = [of.evaluate(query.input, query.arms) for query in asked]
            asked = move.send(answered)
    near = refinement.trigger.input
    assert Goal().met(everyone(of, near)) == "deviation"
    assert SOUND.distance(near, of.seed) < 0.3 * SOUND.distance(found, of.seed)
