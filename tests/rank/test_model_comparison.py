from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from edgeflare.rank.ranking import (
    DRAWN,
    EXACT,
    SIGNIFICANT,
    ModelComparison,
    compare_all,
    places,
    randomization_test,
    seeds_needed,
)
from edgeflare.statistics.bootstrap import Values

LEVEL = 0.05

NULLS = 4000
"""Comparisons of alike models: the share of false alarms errs by .01 at the most (3σ)."""


def searches(*means: float, seeds: int = 60, spread: float = 10.0) -> Values:
    """Queries of models whose searches differ by a constant, from seeds that differ much more."""
    rng = np.random.default_rng(0)
    hardness = rng.exponential(300.0, seeds)
    return np.stack([(hardness + mean + rng.normal(0.0, spread, seeds))[:, None] for mean in means])


def only(values: Values) -> ModelComparison:
    (comparison,) = compare_all(values)
    return comparison


def test_a_small_difference_on_the_same_seeds_is_seen_through_their_own_spread() -> None:
    comparison = only(searches(20.0, 0.0))
    assert comparison.significant
    assert comparison.difference.low > 0.0
    assert comparison.difference.value == pytest.approx(20.0, abs=4.0)
    assert comparison.effect is not None
    assert comparison.effect > 1.0
    assert comparison.order_kept == 1.0


def test_the_same_difference_on_other_seeds_is_not() -> None:
    values = searches(20.0, 0.0)
    values[1] = values[1, np.random.default_rng(1).permutation(60)]
    comparison = only(values)
    assert not comparison.significant
    assert comparison.order_kept < 0.9


def test_equal_searches_are_never_told_apart() -> None:
    values = searches(0.0)
    comparison = only(np.concatenate([values, values]))
    assert (comparison.p, comparison.p_corrected) == (1.0, 1.0)
    assert comparison.effect is None
    assert comparison.order_kept == 0.5
    assert places([1.0, 1.0], [comparison]) == [1, 1]


@pytest.mark.parametrize("seeds", [1, 2, 5])
def test_fewer_than_six_seeds_tell_no_models_apart(seeds: int) -> None:
    values = np.stack([np.full((seeds, 1), 1000.0), np.full((seeds, 1), 1.0)])
    assert only(values).p == 2.0 ** (1 - seeds)
    assert not only(values).significant


@pytest.mark.parametrize(("comparisons", "seeds"), [(1, 6), (2, 7), (3, 7), (15, 10), (190, 13)])
def test_the_fewest_seeds_that_can_tell_models_apart(comparisons: int, seeds: int) -> None:
    assert seeds_needed(comparisons) == seeds
    least = randomization_test(np.ones((1, seeds)))
    assert (
        least[0] * comparisons
        < SIGNIFICANT
        <= randomization_test(np.ones((1, seeds - 1)))[0] * comparisons
    )


def test_generators_of_one_seed_are_no_further_seeds() -> None:
    values = searches(4.0, 0.0, seeds=15)
    repeated = np.repeat(values, 10, axis=2)
    assert only(repeated).p == only(values).p
    assert only(repeated).difference.low == pytest.approx(only(values).difference.low)


def test_who_is_first_does_not_change_what_is_significant() -> None:
    values = searches(20.0, 0.0, 1.0)
    forth = {(one.first, one.second): one for one in compare_all(values)}
    for one in compare_all(values[::-1]):
        other = forth[2 - one.second, 2 - one.first]
        assert one.difference.value == pytest.approx(-other.difference.value)
        assert one.p == other.p
        assert one.significant == other.significant


def test_a_place_is_one_and_the_models_that_are_significantly_harder() -> None:
    values = searches(40.0, 39.5, 0.0, -40.0)
    means = values.mean(axis=(1, 2)).tolist()
    assert places(means, compare_all(values)) == [1, 1, 3, 4]


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
