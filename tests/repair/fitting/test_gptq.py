"""What holds of weights rounded by GPTQ, on random problems."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from hypothesis import assume, given
from hypothesis import strategies as st

from edgeflare.repair.fitting.gptq import Real, damped, output_errors, rounded_by_gptq


@dataclass(frozen=True)
class Problem:
    """Weights (groups, outputs, k), the Hessian (groups, k, k) and scales (groups, outputs)."""

    weights: Real
    hessian: Real
    scales: Real

    def errors(self, steps: Real) -> Real:
        """The squared error of each output, (groups, outputs)."""
        return output_errors(self.weights - steps * self.scales[..., None], self.hessian)

    @property
    def nearest(self) -> Real:
        return np.clip(np.rint(self.weights / self.scales[..., None]), -127, 127)


@st.composite
def problems(
    draw: st.DrawFn, *, widest: float = 1.0, per_tensor: bool = False, coarse: bool = False
) -> Problem:
    """Random problems, of which the inputs are correlated as those of neighbouring pixels are.

    Beyond `widest` 1, weights are cut off. The greatest weight of `coarse` problems is a few steps.
    """
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    groups, outputs = draw(st.integers(1, 3)), draw(st.integers(1, 4))
    inputs, rows = draw(st.integers(1, 12)), draw(st.integers(0, 40))
    correlated = rng.normal(size=(groups, rows, inputs)) @ rng.normal(size=(groups, inputs, inputs))
    shared = draw(st.floats(0, 3)) * rng.normal(size=(groups, rows, 1))
    given_ = correlated + shared
    given_[..., rng.random(inputs) < 0.1] = 0
    weights = rng.normal(size=(groups, outputs, inputs))
    largest = np.abs(weights).max(axis=None if per_tensor else -1)
    scales = np.broadcast_to(largest / (127 * widest), (groups, outputs))
    factor = draw(st.sampled_from([20.0, 60.0])) if coarse else 1.0
    return Problem(weights, given_.transpose(0, 2, 1) @ given_, scales * factor)


def _rounded(problem: Problem) -> Real:
    steps = rounded_by_gptq(problem.weights, problem.hessian, problem.scales)
    assert steps.dtype == np.int8
    return steps.astype(np.float64)


@given(st.one_of(problems(), problems(widest=3), problems(per_tensor=True), problems(coarse=True)))
def test_weights_are_whole_steps_within_range(problem: Problem) -> None:
    steps = _rounded(problem)
    assert steps.shape == problem.weights.shape
    assert np.abs(steps).max() <= 127


@given(st.one_of(problems(), problems(widest=3), problems(per_tensor=True), problems(coarse=True)))
def test_no_output_has_a_larger_error_than_rounded_to_nearest(problem: Problem) -> None:
    allowed = problem.errors(problem.nearest)
    assert (problem.errors(_rounded(problem)) <= allowed + 1e-9 * (1 + allowed)).all()


@given(st.one_of(problems(coarse=True), problems(coarse=True, per_tensor=True)))
def test_the_error_is_within_the_bound_of_the_nearest_plane(problem: Problem) -> None:
    """Half a step of each column, as far as the columns behind it cannot make up for it."""
    steps = _rounded(problem)
    assume(np.abs(steps).max() < 127)  # else a weight may have been cut off
    hessian = damped(problem.hessian)
    behind = [np.linalg.inv(hessian[:, j:, j:])[:, 0, 0] for j in range(hessian.shape[-1])]
    bound = problem.scales**2 / 4 * (1 / np.array(behind)).sum(axis=0)[:, None]
    assert (problem.errors(steps) <= bound * (1 + 1e-6)).all()


def test_the_errors_of_correlated_inputs_are_less_than_half() -> None:
    """Those of 200 random outputs together, and of most of them less than rounded to nearest."""
    rng = np.random.default_rng(0)
    inputs = rng.normal(size=(1, 500, 30)) + 3 * rng.normal(size=(1, 500, 1))
    weights = rng.normal(size=(1, 200, 30))
    scales = np.abs(weights).max(axis=-1) / 7
    problem = Problem(weights, inputs.transpose(0, 2, 1) @ inputs, scales)
    steps = _rounded(problem)
    assert problem.errors(steps).sum() < 0.5 * problem.errors(problem.nearest).sum()
    assert (problem.errors(steps) < problem.errors(problem.nearest)).mean() > 0.5


@given(problems(), st.integers(0, 2**32 - 1))
def test_weights_of_whole_steps_stay(problem: Problem, seed: int) -> None:
    steps = np.random.default_rng(seed).integers(-127, 128, problem.weights.shape)
    on_grid = Problem(steps * problem.scales[..., None], problem.hessian, problem.scales)
    assert (_rounded(on_grid) == steps).all()


@given(problems())
def test_uncorrelated_inputs_round_to_nearest(problem: Problem) -> None:
    diagonal = problem.hessian * np.eye(problem.hessian.shape[-1])
    alone = Problem(problem.weights, diagonal, problem.scales)
    assert (_rounded(alone) == problem.nearest).all()


@given(problems(), st.integers(-20, 20))
def test_a_factor_of_the_hessian_changes_nothing(problem: Problem, exponent: int) -> None:
    scaled = Problem(problem.weights, problem.hessian * 2.0**exponent, problem.scales)
    assert (_rounded(scaled) == _rounded(problem)).all()


@given(problems())
def test_groups_are_rounded_each_by_itself(problem: Problem) -> None:
    for group in range(len(problem.weights)):
        one = slice(group, group + 1)
        alone = Problem(problem.weights[one], problem.hessian[one], problem.scales[one])
        assert (_rounded(alone) == _rounded(problem)[one]).all()
