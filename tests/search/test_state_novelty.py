from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from edgeflare.search.state_novelty import NOVELTY_THRESHOLD, SeenStates


@settings(deadline=None, max_examples=50)
@given(seed=st.integers(0, 2**32), count=st.integers(0, 300), spread=st.floats(0.05, 1.0))
def test_answers_as_a_search_through_all_states_does(seed: int, count: int, spread: float) -> None:
    rng = np.random.default_rng(seed)
    states = SeenStates()
    known: list[NDArray[np.float64]] = []
    for state in rng.normal(0.0, spread, (count, 6)):
        far = all(((state - other) ** 2).sum() > NOVELTY_THRESHOLD for other in known)
        assert states.is_new(state) == far
        states.add(state)
        known.append(state)


def test_looks_beyond_the_newest() -> None:
    states = SeenStates()
    states.add(np.zeros(3))
    for row in range(1, 500):
        states.add(np.full(3, 10.0 * row))
    assert not states.is_new(np.zeros(3))
    assert states.is_new(np.full(3, 5.0))


@pytest.mark.parametrize(("squared", "new"), [(0.49, False), (0.51, True)])
def test_new_is_beyond_a_squared_distance_of_one_half(squared: float, new: bool) -> None:
    states = SeenStates()
    states.add(np.array([1.0, 0.0]))
    assert states.is_new(np.array([1.0, squared**0.5])) == new


def test_keeps_a_copy() -> None:
    states, state = SeenStates(), np.zeros(2)
    states.add(state)
    state += 10.0
    assert not states.is_new(np.zeros(2))
