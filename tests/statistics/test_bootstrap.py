from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

from changed_documents import known
from edgeflare.statistics.bootstrap import (
    Values,
    mean,
    median,
    ratio_of_means,
    success_rate,
)

queries = st.integers(1, 3000).map(float)
shapes = array_shapes(min_dims=2, max_dims=2, max_side=12)
found = arrays(np.float64, shapes, elements=queries)
tables = arrays(np.float64, shapes, elements=queries | st.just(np.nan))
laws = settings(max_examples=25, deadline=None)


@laws
@given(found)
def test_the_interval_of_a_mean_contains_it_and_the_same_values_give_the_same(
    values: Values,
) -> None:
    estimate = known(mean(values))
    assert estimate.value == pytest.approx(values.mean())
    assert estimate.low <= estimate.value * (1 + 1e-12)
    assert estimate.high >= estimate.value * (1 - 1e-12)
    for of in (mean, median, success_rate):
        assert of(values) == of(values.copy())


@laws
@given(tables)
def test_figures_are_over_the_searches_that_found_something(values: Values) -> None:
    finite = values[np.isfinite(values)]
    assert known(success_rate(values)).value == pytest.approx(finite.size / values.size)
    if finite.size:
        assert known(mean(values)).value == pytest.approx(finite.mean())
        assert known(median(values)).value == np.median(finite)
    else:
        assert mean(values) is None
        assert median(values) is None


@laws
@given(tables)
def test_a_generator_that_repeats_another_is_no_new_evidence(values: Values) -> None:
    once, thrice = success_rate(values), success_rate(np.repeat(values, 3, axis=1))
    assert known(thrice).low == pytest.approx(known(once).low)
    assert known(thrice).high == pytest.approx(known(once).high)


@pytest.mark.parametrize("value", [np.nan, 7.0])
def test_none_or_all_of_a_few_searches_is_no_certainty(value: float) -> None:
    rate = known(success_rate(np.full((5, 2), value)))
    ends = (0.0, 0.522) if np.isnan(value) else (0.478, 1.0)
    assert (rate.low, rate.high) == pytest.approx(ends, abs=1e-3)


@pytest.mark.slow
def test_many_seeds_are_drawn_in_bounded_memory() -> None:
    values = np.ones((20_000, 1))
    tracemalloc.start()
    mean(values)
    taken = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert taken < 2**28  # all draws together are 2**28.3 bytes, several times over


def test_more_seeds_make_an_interval_narrower() -> None:
    values = np.random.default_rng(0).geometric(0.01, (400, 1)).astype(np.float64)
    few, many = known(mean(values[:25])), known(mean(values))
    assert (few.high - few.low) > 2 * (many.high - many.low)


def test_an_interval_holds_the_truth_about_as_often_as_it_says() -> None:
    rng = np.random.default_rng(1)
    intervals = [known(mean(rng.normal(10.0, 2.0, (40, 1)))) for _ in range(100)]
    assert 85 <= sum(interval.low <= 10.0 <= interval.high for interval in intervals) <= 100


@pytest.mark.slow
@laws
@given(tables, st.data())
def test_a_ratio_looks_only_at_what_both_solved(values: Values, data: st.DataObject) -> None:
    baseline = data.draw(arrays(np.float64, values.shape, elements=queries | st.just(np.nan)))
    both = np.isfinite(values) & np.isfinite(baseline)
    ratio = ratio_of_means(values, baseline)
    if not both.any():
        assert ratio is None
        return
    assert known(ratio).value == pytest.approx(values[both].mean() / baseline[both].mean())
    assert ratio == ratio_of_means(np.where(both, values, 7.0e9), np.where(both, baseline, np.nan))


@pytest.mark.slow
@laws
@given(tables, st.sampled_from([0.5, 1.0, 4.0]))
def test_a_strategy_that_needs_k_times_as_much_has_the_ratio_k(values: Values, k: float) -> None:
    ratio = ratio_of_means(k * values, values)
    if ratio is not None:
        assert (ratio.value, ratio.low, ratio.high) == pytest.approx((k, k, k))


def test_without_searches_there_is_nothing_to_estimate() -> None:
    nothing = np.empty((0, 3))
    assert success_rate(nothing) is None
    assert mean(nothing) is None
    assert ratio_of_means(nothing, nothing) is None
