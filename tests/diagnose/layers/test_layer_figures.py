"""Figures of a layer: those of litert-quantizer on one input, and laws over many."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from litert_quantizer.utils import validation_utils as theirs
from numpy.typing import NDArray

from edgeflare.diagnose.layers.layer_figures import ErrorSums, LayerError, RangeSums, Sensitivity
from edgeflare.models.quantized_range import QuantizedRange
from edgeflare.statistics.distributions import student_quantile

Real = NDArray[np.float64]
VALUES = arrays(
    np.float64, (2, 12), elements=st.just(0.0) | st.floats(1e-3, 50) | st.floats(-50, -1e-3)
)
"""None so small that its square is none in float32, in which litert-quantizer computes."""


def error_of(*inputs: tuple[Real, Real], step: float | None = None) -> LayerError:
    sums = ErrorSums(step)
    for wanted, got in inputs:
        sums.add(wanted, got)
    found = sums.figures()
    assert found is not None
    return found


@given(VALUES)
def test_of_one_input_they_are_those_of_litert_quantizer(both: Real) -> None:
    wanted, got = both
    found = error_of((wanted, got))
    assert found.cosine == pytest.approx(theirs.cosine_similarity(got, wanted), rel=1e-5, abs=1e-7)
    assert found.rmse**2 == pytest.approx(
        theirs.mean_squared_difference(got, wanted), rel=1e-5, abs=1e-12
    )
    if found.rmse > 1e-3 and np.abs(wanted).max() > 1e-3:
        assert found.snr_db is not None
        theirs_snr = theirs.signal_to_noise_ratio(got, wanted, epsilon=0.0)
        assert 10 ** (found.snr_db / 10) == pytest.approx(theirs_snr, rel=1e-5)


@given(st.lists(VALUES, min_size=1, max_size=4))
def test_over_inputs_squares_are_those_of_all_values(inputs: list[Real]) -> None:
    found = error_of(*((wanted, got) for wanted, got in inputs), step=0.5)
    off = np.concatenate([got - wanted for wanted, got in inputs])
    assert found.inputs == len(inputs)
    assert found.rmse == pytest.approx(float(np.sqrt(np.square(off).mean())))
    assert found.max_error == float(np.abs(off).max())
    assert found.max_error_steps == pytest.approx(2 * found.max_error)
    assert found.off == bool(off.any())
    each = [error_of((wanted, got)).cosine for wanted, got in inputs]
    assert found.cosine == pytest.approx(sum(one for one in each if one is not None) / len(each))
    signal = np.concatenate([wanted for wanted, _ in inputs])
    if found.snr_db is not None and np.abs(signal).max() > 0:
        ratio = np.square(signal).sum() / np.square(off).sum()
        assert found.snr_db == pytest.approx(10 * np.log10(ratio))


def test_what_is_not_finite_on_one_side_alone_counts_apart() -> None:
    one, nan = np.array([1.0, 2.0]), np.array([np.nan, 2.0])
    assert error_of((one, one), (one, nan)) == LayerError(1, 1, 1.0, None, 0.0, 0.0, None, 1)
    assert error_of((nan, nan)) == LayerError(1, 0, 1.0, None, 0.0, 0.0, None)
    alone = error_of((one, nan))
    assert (alone.inputs, alone.not_finite, alone.cosine) == (0, 1, None)
    assert alone.off
    infinite = np.array([-np.inf, 2.0])
    each = [(infinite, one), (one, infinite), (infinite, nan), (nan, infinite)]
    assert [error_of(both).not_finite_here for both in each] == [0, 1, 1, 0]
    assert ErrorSums().figures() is None


def test_values_beyond_a_range_count_by_side_and_by_more_than_a_step() -> None:
    known = QuantizedRange(-1.0, 1.0, steps=20)
    sums = RangeSums(known)
    sums.add(np.array([-3.0, -1.05, 0.0, 0.5]))
    sums.add(np.array([0.25, 1.05, 1.2, np.inf]))
    found = sums.figures()
    assert found is not None
    assert found.below == pytest.approx(1 / 7)
    assert found.above == pytest.approx(1 / 7)
    assert (found.low, found.high, found.used) == (-1.0, 1.0, 1.0)
    narrow = RangeSums(known)
    narrow.add(np.array([0.0, 0.5]))
    assert narrow.figures().used == 0.25  # type: ignore[union-attr]
    assert RangeSums(known).figures() is None


@pytest.mark.parametrize("inputs", [2, 5, 21, 22, 50])
def test_the_interval_of_a_sensitivity_is_students(inputs: int) -> None:
    wanted = 0.25 * student_quantile(0.975, inputs - 1)
    assert Sensitivity(inputs, 1.0, 0.25, 0).half_width == pytest.approx(wanted, rel=5e-3)
    assert Sensitivity(1, 1.0, None, 0).half_width == np.inf
