"""Shares of the margin's error, and the layer in which a fault begins."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgeflare.diagnose.inspect.error_shares import error_shares, first_to_blame, is_to_blame
from inspected_units import network

LAYERS = network(16, 16, 16)


def shares(**tops: float) -> np.ndarray:
    """Return shares of 48 units, those of u0 to u47 as said and others small."""
    made = np.full(48, 0.04)
    for unit, share in tops.items():
        made[int(unit[1:])] = share
    return made


@given(st.integers(0, 2**32 - 1))
def test_shares_of_contributions_that_add_up_to_the_error_add_up_to_one(seed: int) -> None:
    contributions = np.random.default_rng(seed).normal(size=(50, 7)) + 1000.0
    assert error_shares(contributions, contributions.sum(axis=1)).sum() == pytest.approx(1.0)


def test_what_another_unit_cancels_and_what_is_small_has_no_share() -> None:
    rng = np.random.default_rng(0)
    errors, cancelled = rng.normal(size=(2, 5000))
    found = error_shares(np.column_stack([cancelled + errors, -cancelled, errors / 100]), errors)
    assert found == pytest.approx([1.0, 0.0, 0.01], abs=0.05)
    assert error_shares(errors[:, None], np.zeros(5000)).tolist() == [0.0]


@pytest.mark.parametrize(
    ("made", "unit"),
    [
        (shares(u18=0.4), 18),
        (shares(u18=0.36, u34=0.42), 18),  # a shortcut passes the channel on
        (shares(u2=0.26, u34=0.6), 34),  # a small fault before a large one
        (shares(u5=0.08, u40=0.09), 40),  # none is to blame
    ],
)
def test_blame_is_of_the_earliest_that_is_near_the_greatest(made: np.ndarray, unit: int) -> None:
    assert first_to_blame(made, LAYERS) == unit


def test_narrow_layers_need_a_larger_share() -> None:
    (two, six, wide) = network(2, 6, 1000)
    assert [is_to_blame(0.3, layer) for layer in (two, six, wide)] == [False, False, True]
    assert not is_to_blame(1.0, network(1)[0])
    assert is_to_blame(0.35, six)
