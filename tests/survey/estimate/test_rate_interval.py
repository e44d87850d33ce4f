"""Rates and their intervals, against populations whose truth is known."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgeflare.survey.estimate.rate import Fact, Sample
from edgeflare.survey.estimate.rate_interval import rate
from survey_populations import MakePopulation, Population, with_good_twin, with_useless_twin

REPETITIONS = 150


@given(st.integers(1, 400), st.integers(0, 2**32 - 1))
def test_a_rate_is_the_share_itself_where_all_were_asked(items: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    foretold, seen = rng.random(items) < 0.3, rng.random(items) < 0.4
    sample = Sample(rng.integers(0, 3, items), np.ones(items, dtype=bool))
    chosen = rng.random(items) < 0.7
    found = rate(Fact(foretold, seen), sample, chosen)
    if chosen.any():
        share = seen[chosen].mean()
        assert found.low == pytest.approx(share)
        assert found.estimate == pytest.approx(share)
        assert found.high == pytest.approx(share)


@given(st.integers(40, 800), st.integers(0, 2**32 - 1), st.floats(0.5, 0.99))
def test_the_interval_holds_the_estimate_and_what_is_certain(
    items: int, seed: int, confidence: float
) -> None:
    rng = np.random.default_rng(seed)
    population = with_good_twin(0.1, items, rng)
    design = population.design(rng)
    asked = population.asked(design, items // 3)
    chosen = rng.random(items) < 0.5
    found = rate(population.fact, design.sample_of(asked), chosen, confidence)
    assert 0.0 <= found.low <= found.estimate <= found.high <= 1.0
    assert found.asked == (asked & chosen).sum()
    assert found.seen == (asked & chosen & population.truth).sum()
    if found.items:
        assert found.low >= found.seen / found.items - 1e-12
        assert found.high <= 1.0 - (found.asked - found.seen) / found.items + 1e-12


def test_an_interval_of_higher_confidence_holds_one_of_lower() -> None:
    population = with_good_twin(0.02, 5000, np.random.default_rng(1))
    design = population.design(np.random.default_rng(2))
    sample = design.sample_of(population.asked(design, 700))
    wide, narrow = (rate(population.fact, sample, None, one) for one in (0.999, 0.8))
    assert wide.low < narrow.low < narrow.high < wide.high


def test_nothing_seen_leaves_some_four_in_the_number_asked() -> None:
    truth = np.zeros(100_000, dtype=bool)
    asked = np.zeros_like(truth)
    asked[:1000] = True
    sample = Sample(np.zeros(len(truth), dtype=np.int64), asked)
    found = rate(Fact(truth, truth), sample)
    assert found.low == found.estimate == 0.0
    assert found.high == pytest.approx(3.69 / 1000, rel=0.02)


def test_no_items_leave_everything_open() -> None:
    truth = np.zeros(10, dtype=bool)
    found = rate(Fact(truth, truth), Sample(np.zeros(10, dtype=np.int64), truth), truth)
    assert (found.low, found.high, found.items) == (0.0, 1.0, 0)


@pytest.mark.parametrize("twin", [with_good_twin, with_useless_twin])
@pytest.mark.parametrize("share", [0.01, 0.1])
def test_intervals_cover_the_truth(twin: MakePopulation, share: float) -> None:
    """The bound is three standard deviations below 95 %; benchmarks have the figures."""
    population = twin(share, 4000, np.random.default_rng(3))
    covered = sum(_covers(population, seed) for seed in range(REPETITIONS))
    assert covered >= (0.95 - 3.0 * (0.05 * 0.95 / REPETITIONS) ** 0.5) * REPETITIONS


def _covers(population: Population, seed: int) -> bool:
    design = population.design(np.random.default_rng(seed))
    found = rate(population.fact, design.sample_of(population.asked(design, 600)))
    return found.low <= population.rate <= found.high
