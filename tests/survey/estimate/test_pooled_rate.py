"""The rate of a slice from the answers to all items."""

import numpy as np
import pytest

from edgeflare.survey.estimate.pooled_rate import pooled_rate
from edgeflare.survey.estimate.rate import Fact, Limits, Sample
from edgeflare.survey.estimate.rate_interval import rate
from survey_populations import with_good_twin

SLICES = 40


def test_a_slice_of_all_has_the_estimate_of_all() -> None:
    population = with_good_twin(0.05, 5000, np.random.default_rng(1))
    design = population.design(np.random.default_rng(2))
    sample = design.sample_of(population.asked(design, 800))
    everything = np.ones(5000, dtype=bool)
    found, whole = (of(population.fact, sample, everything) for of in (pooled_rate, rate))
    assert found.estimate == pytest.approx(whole.estimate)
    assert found.alone == Limits(whole.estimate, whole.low, whole.high)


def test_where_all_were_asked_nothing_is_pooled() -> None:
    rng = np.random.default_rng(1)
    seen, chosen = rng.random(400) < 0.2, rng.random(400) < 0.1
    everything = np.ones(400, dtype=bool)
    sample = Sample(np.zeros(400, dtype=np.int64), everything)
    found = pooled_rate(Fact(~everything, seen), sample, chosen)
    share = float(seen[chosen].mean())
    assert (found.low, found.estimate, found.high) == pytest.approx((share,) * 3)


def test_slices_that_do_not_differ_are_covered_by_much_narrower_intervals() -> None:
    covered, narrower = 0, []
    for seed in range(150):
        rng = np.random.default_rng(seed)
        population = with_good_twin(0.02, 8000, rng)
        design = population.design(rng)
        sample = design.sample_of(population.asked(design, 600))
        chosen = rng.integers(0, SLICES, 8000) == 0
        found = pooled_rate(population.fact, sample, chosen)
        assert found.alone is not None
        covered += found.low <= population.truth[chosen].mean() <= found.high
        narrower.append((found.high - found.low) / (found.alone.high - found.alone.low))
    assert covered >= 134
    assert np.mean(narrower) < 0.25


def test_no_items_leave_everything_open() -> None:
    nothing = np.zeros(10, dtype=bool)
    found = pooled_rate(
        Fact(nothing, nothing), Sample(np.zeros(10, dtype=np.int64), nothing), nothing
    )
    assert (found.low, found.high) == (0.0, 1.0)
