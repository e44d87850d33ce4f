"""Moments of inputs give what least squares over the inputs themselves gives."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from edgeflare.repair.fitting.input_moments import InputMoments

Rows = NDArray[np.float32]


def _drawn(seed: int, groups: int, rows: int, inputs: int, off: float) -> tuple[Rows, Rows]:
    """Inputs with a mean, and the original's, from which they differ in a way that depends on them.

    So weights can make up for some of the difference.
    """
    rng = np.random.default_rng(seed)
    original = rng.normal(size=(groups, rows, inputs)) + rng.normal(size=inputs)
    mixed = original @ rng.normal(size=(inputs, inputs))
    given_ = original + off * (mixed + rng.normal(size=original.shape) + 1)
    return given_.astype(np.float32), original.astype(np.float32)


def _moments(given_: Rows, original: Rows | None, *, centred: bool, parts: int = 1) -> InputMoments:
    moments = InputMoments(given_.shape[0], given_.shape[2], centred=centred)
    for some in np.array_split(np.arange(given_.shape[1]), parts):
        moments.add(given_[:, some], None if original is None else original[:, some])
    return moments


@pytest.mark.parametrize("centred", [True, False])
@given(seed=st.integers(0, 2**32 - 1), groups=st.integers(1, 2), outputs=st.integers(1, 3))
def test_compensating_weights_are_those_of_ridge_regression(
    centred: bool, seed: int, groups: int, outputs: int
) -> None:
    given_, original = _drawn(seed, groups, 50, 4, 0.2)
    weights = np.random.default_rng(seed).normal(size=(groups, outputs, 4))
    got = _moments(given_, original, centred=centred).compensating(weights)
    for group in range(groups):
        x, y = given_[group].astype(np.float64), original[group].astype(np.float64)
        if centred:
            x, y = x - x.mean(axis=0), y - y.mean(axis=0)
        # Rows that hold the weights to the original's, as strongly as 1 % of the inputs' variance.
        hold = np.sqrt(0.01 * (x**2).sum() / 4) * np.eye(4)
        left = np.concatenate([x, hold])
        right = np.concatenate([y @ weights[group].T, hold @ weights[group].T])
        wanted = np.linalg.lstsq(left, right, rcond=None)[0].T
        np.testing.assert_allclose(got[group], wanted, rtol=1e-3, atol=1e-3)


@given(seed=st.integers(0, 2**32 - 1), parts=st.integers(1, 7))
def test_inputs_may_come_in_parts(seed: int, parts: int) -> None:
    given_, original = _drawn(seed, 2, 30, 3, 0.3)
    at_once = _moments(given_, original, centred=True)
    in_parts = _moments(given_, original, centred=True, parts=parts)
    np.testing.assert_allclose(in_parts.hessian, at_once.hessian, rtol=1e-4, atol=1e-4)
    weights = np.ones((2, 1, 3))
    np.testing.assert_allclose(
        in_parts.compensating(weights), at_once.compensating(weights), rtol=1e-3, atol=1e-3
    )


@given(seed=st.integers(0, 2**32 - 1), centred=st.booleans())
def test_equal_inputs_leave_the_weights_as_they_are(seed: int, centred: bool) -> None:
    given_, _ = _drawn(seed, 1, 20, 5, 0.2)
    weights = np.random.default_rng(seed).normal(size=(1, 3, 5))
    for original in (given_, None):
        moments = _moments(given_, original, centred=centred)
        assert (moments.compensating(weights) == weights).all()
        assert (moments.output_difference(weights, weights) == 0).all()


@given(seed=st.integers(0, 2**32 - 1), centred=st.booleans())
def test_the_difference_of_the_outputs_is_that_of_their_means(seed: int, centred: bool) -> None:
    given_, original = _drawn(seed, 2, 40, 4, 0.5)
    rng = np.random.default_rng(seed)
    before, after = rng.normal(size=(2, 2, 3, 4))
    got = _moments(given_, original, centred=centred).output_difference(before, after)
    difference = original @ before.transpose(0, 2, 1) - given_ @ after.transpose(0, 2, 1)
    np.testing.assert_allclose(got, difference.mean(axis=1), rtol=1e-4, atol=1e-4)
