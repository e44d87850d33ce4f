"""What range of answers is right, and what their mean error says of rounding."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from edgeflare.conform.operator_graph import GraphValue, Quantization
from edgeflare.conform.specification.exact_answer import bits, reals, steps
from edgeflare.conform.verdict.arm_comparison import MeanLimits
from edgeflare.conform.verdict.right_values import Allowance, RightValues, allowance

SHAPE = (2, 5)
real_values = arrays.arrays(
    np.float64,
    SHAPE,
    elements=st.one_of(st.floats(-300.0, 300.0), st.sampled_from([np.nan, np.inf, 0.0, 1e39])),
)

slacks = arrays.arrays(np.float64, SHAPE, elements=st.floats(0.0, 2.0))


@given(real_values, slacks, st.integers(-128, 127))
def test_a_quantized_answer_is_an_offence_outside_of_the_range_alone(
    exact: np.ndarray[tuple[int, ...], np.dtype[np.float64]],
    slack: np.ndarray[tuple[int, ...], np.dtype[np.float64]],
    answer: int,
) -> None:
    value = GraphValue("int8", SHAPE[1:], Quantization((0.5,), 3))
    right = RightValues(value, steps(exact, slack), Allowance("", steps=1.0))
    answers = np.full(SHAPE, answer, np.int8)
    low, high = right.allowed_range()
    outside = (answers < low) | (answers > high)
    assert (outside == (right.offences(right.errors(answers)) > 1)).all()


@given(real_values, slacks, st.floats(-(2.0**127), 2.0**127, width=32))
def test_a_float_is_an_offence_outside_of_the_range_alone(
    exact: np.ndarray[tuple[int, ...], np.dtype[np.float64]],
    slack: np.ndarray[tuple[int, ...], np.dtype[np.float64]],
    apart: float,
) -> None:
    right = RightValues(GraphValue("float32", SHAPE[1:]), reals(exact, slack), Allowance(""))
    with np.errstate(all="ignore"):
        answers = (exact + apart).astype(np.float32)
    low, high = right.allowed_range()
    near = np.isclose(answers, low, rtol=1e-6) | np.isclose(answers, high, rtol=1e-6)
    outside = ~((answers >= low) & (answers <= high)) & ~(np.isnan(answers) & np.isnan(low))
    offends = right.offences(right.errors(answers)) > 1
    assert (near | (outside == offends)).all()


def test_what_has_to_be_equal_has_no_range() -> None:
    exact = np.array([[1, -2, 2**60]], np.int64)
    right = RightValues(GraphValue("int64", (3,)), bits(exact), Allowance(""))
    low, high = right.allowed_range()
    assert low is high is exact


def limits(exact: np.ndarray, slack: float = 0.0) -> MeanLimits | None:
    """Return the limits of int8 values in steps of 1 with the zero point 0."""
    value = GraphValue("int8", exact.shape, Quantization((1.0,)))
    right = RightValues(
        value, steps(exact[None], np.full((1, *exact.shape), slack)), allowance("MUL", "int8")
    )
    return MeanLimits.of(right, np.ones((1, *exact.shape), bool))


@given(st.floats(-0.1, 0.1), st.floats(0, 1), st.floats(0.001, 100), st.integers(1, 3000))
def test_a_kernel_that_is_off_by_a_tenth_of_a_step_before_it_rounds_has_no_bias(
    shift: float, center: float, width: float, count: int
) -> None:
    """However exact values crowd, even in the middle between two steps."""
    exact = np.random.default_rng(count).uniform(center - width, center + width, count)
    known = limits(exact)
    assert known is not None
    assert known.mean(np.rint(exact + shift)) == 0


@given(st.floats(-20, 20), st.floats(3, 80), st.integers(150, 3000))
def test_rounding_down_is_a_bias_of_half_a_step(center: float, width: float, count: int) -> None:
    exact = np.random.default_rng(count).uniform(center - width, center + width, count)
    known = limits(exact)
    assert known is not None
    assert known.mean(np.floor(exact)) == pytest.approx(-0.5, abs=0.25)
    assert known.mean(np.rint(exact)) == 0


@given(st.integers(1, 3000), st.floats(0, 0.4))
def test_errors_to_either_side_are_no_bias(count: int, share: float) -> None:
    rng = np.random.default_rng(count)
    exact = rng.uniform(-100, 100, count)
    errors = rng.choice([-1, 1], count) * (rng.random(count) < share)
    known = limits(exact)
    assert known is not None
    assert known.mean(np.rint(exact) + errors) == 0


def test_equal_exact_values_are_one() -> None:
    """A kernel with one wrong entry in its table is not biased because it is asked for it often."""
    known = limits(np.repeat(np.linspace(-50, 50, 30), 100))
    assert known is not None
    assert known.chosen.size == 30


def test_what_saturates_or_is_vague_says_nothing() -> None:
    assert limits(np.full(100, 200.3)) is None
    assert limits(np.linspace(-50, 50, 100), 0.2) is None
    assert limits(np.linspace(-50, 50, 100), 0.05) is not None
