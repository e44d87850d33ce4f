"""What hypotheses say: numbers and bools, and one line for anything else."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from edgeflare.diagnose.inspect.hypothesis_values import hypothesis_values, telling
from edgeflare.errors import UserError
from edgeflare.hypothesis import InspectedInput, UnitHypothesis

ONE = InspectedInput(
    np.zeros((2, 2, 1), np.uint8), np.array([1.0, 0.0]), np.array([0.0, 1.0]), 0, 1, True
)


def saying(value: Any, *, built_in: bool = False) -> UnitHypothesis:
    return UnitHypothesis("mine", lambda _: value, built_in)


def test_numbers_and_bools_are_rows_of_numbers() -> None:
    said = [saying(value) for value in (True, 2, np.float32(0.5), np.bool_(False))]
    assert hypothesis_values(said, [ONE, ONE]).tolist() == [[1.0, 2.0, 0.5, 0.0]] * 2


@pytest.mark.parametrize("value", [None, "1", float("nan"), float("inf"), 1j, np.ones(2)])
def test_what_is_no_finite_number_is_one_line(value: Any) -> None:
    with pytest.raises(UserError, match=r"hypothesis 'mine' returned .*a finite number or a bool"):
        hypothesis_values([saying(value)], [ONE])


@pytest.mark.parametrize("raising", [lambda _: 1 // 0, lambda _: 10**400])
def test_one_that_raises_is_one_line(raising: Any) -> None:
    with pytest.raises(UserError, match=r"hypothesis 'mine' failed: .*Error: "):
        hypothesis_values([UnitHypothesis("mine", raising)], [ONE])


def test_a_constant_one_is_refused_if_the_user_asked_for_it() -> None:
    halves = [np.array([[0.0, 1.0], [1.0, 1.0]]), np.array([[0.0, 0.0], [1.0, 1.0]])]
    mixed = [saying(0), saying(0, built_in=True)]
    assert telling(mixed, halves).tolist() == [True, False]
    with pytest.raises(UserError, match="'mine' is constant over 2 inputs"):
        telling([saying(0), saying(0)], halves)
