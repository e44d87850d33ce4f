"""Tests of edgeflare.conform.verdict.right_values: offences lie outside of the range alone."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from edgeflare.conform.graphs.operator_graph import GraphValue, Quantization
from edgeflare.conform.specification.exact_answer import bits, reals, steps
from edgeflare.conform.verdict.exceptions import Allowance
from edgeflare.conform.verdict.right_values import RightValues

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
