from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from edgeflare.statistics.randomization_test import DRAWN, EXACT, randomization_test

LEVEL = 0.05


NULLS = 4000
"""Comparisons of alike models: the share of false alarms errs by .01 at the most (3σ)."""


def alike(seeds: int) -> NDArray[np.float64]:
    """Differences of models that are alike, as skewed as queries are: a budget cuts some off."""
    rng = np.random.default_rng(2)
    queries = np.minimum(rng.exponential(100.0, (2, NULLS, seeds)).round(), 300.0)
    differences: NDArray[np.float64] = queries[0] - queries[1]
    return differences


@pytest.mark.slow
@pytest.mark.parametrize("seeds", [5, 6, 14, 15])
def test_chance_alone_is_called_significant_no_oftener_than_it_should(seeds: int) -> None:
    ps = np.array(randomization_test(alike(seeds)))
    alarms = np.mean(ps < LEVEL)
    if seeds < 6:
        assert alarms == 0.0
    else:
        assert alarms <= 0.06
    if seeds >= 10:
        assert alarms >= 0.035, "it is not bought with a test that sees nothing"
        assert ps.mean() == pytest.approx(0.5, abs=0.03)


def test_what_is_drawn_is_near_what_is_exact() -> None:
    rng = np.random.default_rng(3)
    for seeds in (4, 14):
        few = rng.normal(30.0, 60.0, (5, seeds))
        # As few that tell something, but too many that differ for all exchanges to be counted.
        many = np.concatenate([few, np.full((5, EXACT), 1e-12)], axis=1)
        assert randomization_test(many) == pytest.approx(randomization_test(few), abs=0.015)


def test_the_share_of_exchanges_by_hand() -> None:
    # Of 8 exchanges, +++ and --- lead to a sum of 6; 3 and 1 + 2 to one of 0.
    assert randomization_test(np.array([[1.0, 2.0, 3.0], [1.0, 2.0, -3.0]])) == [0.25, 1.0]


def test_a_seed_that_does_not_differ_tells_nothing() -> None:
    few = np.array([[5.0, 5.0, 5.0, 5.0, 5.0]])
    padded = np.concatenate([few, np.zeros((1, 100))], axis=1)
    assert randomization_test(padded) == randomization_test(few) == [2 / 32]


@pytest.mark.parametrize("seeds", [10, 20, 60])
def test_a_clear_difference_is_seen_with_few_seeds(seeds: int) -> None:
    rng = np.random.default_rng(4)
    clear = rng.normal(20.0, 10.0, (200, seeds))
    assert np.mean(np.array(randomization_test(clear)) < LEVEL) > 0.99


def test_none_of_many_seeds_makes_p_nothing() -> None:
    assert randomization_test(np.ones((1, 500))) == [1 / (DRAWN + 1)]
    # 20 models: the least p is below .05 after Holm's correction.
    assert 190 / (DRAWN + 1) < LEVEL
