"""Rates, means and their intervals, against counts and against populations whose truth is known."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from constructed_surveys import constructed_facts, drawn_sample, with_distances
from edgeflare.statistics.sequential_test import LimitEvidence
from edgeflare.survey.gates.gate_judgement import limit_evidence
from edgeflare.survey.items.survey_facts import Fact, Sample
from edgeflare.survey.rates import pooling
from edgeflare.survey.rates.pooling import PERMUTATIONS, pooling_p_value
from edgeflare.survey.rates.rate_interval import (
    FieldInterval,
    Limits,
    Rate,
    SlicedFact,
    field_interval,
    mean_distance,
    rate,
)
from survey_populations import MakePopulation, Population, with_good_twin, with_useless_twin

pytestmark = pytest.mark.slow

REPETITIONS = 150
"""The share of intervals that hold errs by .053 at the most (3σ)."""

for_both_twins = pytest.mark.parametrize("twin", [with_good_twin, with_useless_twin])


def all_asked(items: int) -> Sample:
    return Sample(np.zeros(items, np.int64), np.ones(items, bool))


def pooled_rate(fact: Fact, sample: Sample, chosen: NDArray[np.bool_]) -> Rate:
    slices = np.where(chosen, 0, -1)
    return SlicedFact.of(fact, sample, slices, 1).pooled_rate(0, 0.95)


def covered(held: int) -> bool:
    """Whether so many of the intervals of 95 % held the truth as chance allows."""
    return bool(held >= 0.95 * REPETITIONS - 3.0 * (0.05 * 0.95 * REPETITIONS) ** 0.5)


@given(st.integers(1, 400), st.integers(0, 2**32 - 1))
def test_a_rate_is_the_share_itself_where_all_were_asked(items: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    foretold, seen, chosen = (rng.random(items) < share for share in (0.3, 0.4, 0.7))
    sample = replace(all_asked(items), stratum=rng.integers(0, 3, items))
    if not chosen.any():
        return
    for of in (rate, pooled_rate):
        found = of(Fact(foretold, seen), sample, chosen)
        share = float(seen[chosen].mean())
        assert (found.low, found.value, found.high) == pytest.approx((share,) * 3)


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
    assert 0.0 <= found.low <= found.value <= found.high <= 1.0
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
    asked = np.arange(len(truth)) < 1000
    found = rate(Fact(truth, truth), Sample(np.zeros(len(truth), dtype=np.int64), asked))
    assert found.low == found.value == 0.0
    assert found.high == pytest.approx(3.69 / 1000, rel=0.02)


def test_no_items_leave_everything_open() -> None:
    nothing = np.zeros(10, dtype=bool)
    for of in (rate, pooled_rate):
        found = of(Fact(nothing, nothing), Sample(np.zeros(10, dtype=np.int64), nothing), nothing)
        assert (found.low, found.high, found.items) == (0.0, 1.0, 0)


@for_both_twins
@pytest.mark.parametrize("share", [0.01, 0.1])
def test_intervals_cover_the_truth(twin: MakePopulation, share: float) -> None:
    """Benchmarks have the figures."""
    population = twin(share, 2000, np.random.default_rng(3))
    held = 0
    for seed in range(REPETITIONS):
        design = population.design(np.random.default_rng(seed))
        found = rate(population.fact, design.sample_of(population.asked(design, 400)))
        held += found.low <= population.rate <= found.high
    assert covered(held)


def test_a_slice_of_all_has_the_estimate_of_all() -> None:
    population = with_good_twin(0.05, 5000, np.random.default_rng(1))
    design = population.design(np.random.default_rng(2))
    sample = design.sample_of(population.asked(design, 800))
    everything = np.ones(5000, dtype=bool)
    found, whole = (of(population.fact, sample, everything) for of in (pooled_rate, rate))
    assert found.value == pytest.approx(whole.value)
    assert found.alone == Limits(whole.value, whole.low, whole.high)


def test_slices_that_do_not_differ_are_covered_by_much_narrower_intervals() -> None:
    held, narrower = 0, []
    for seed in range(REPETITIONS):
        rng = np.random.default_rng(seed)
        population = with_good_twin(0.02, 8000, rng)
        design = population.design(rng)
        sample = design.sample_of(population.asked(design, 600))
        chosen = rng.integers(0, 40, 8000) == 0
        found = pooled_rate(population.fact, sample, chosen)
        assert found.alone is not None
        held += found.low <= population.truth[chosen].mean() <= found.high
        narrower.append((found.high - found.low) / (found.alone.high - found.alone.low))
    assert covered(held)
    assert np.mean(narrower) < 0.25


POOLED = 1000
"""Items of ten slices that may be pooled."""


def _pooling_p(surprised: NDArray[np.bool_], seed: int = 0, first: int = POOLED // 10) -> float:
    """Return the p-value of slices of which the first has so many items, and the others share."""
    sample = Sample(np.arange(POOLED) % 3, np.ones(POOLED, bool))
    fact = Fact(np.zeros(POOLED, bool), surprised)
    slices = np.where(np.arange(POOLED) < first, 0, 1 + np.arange(POOLED) % 9)
    slices *= 10**17  # the number of a class may be as large as 64 bits hold
    return pooling_p_value(fact, sample, slices, np.random.default_rng(seed))


def test_slices_that_do_not_differ_have_p_values_of_all_sizes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(pooling, "PERMUTATIONS", 99)
    rng = np.random.default_rng(1)
    values = [_pooling_p(rng.random(POOLED) < 0.05, seed) for seed in range(30)]
    assert 0.25 < np.mean(values) < 0.75
    assert sum(value < 0.1 for value in values) <= 9
    assert _pooling_p(np.zeros(POOLED, dtype=bool)) == 1.0


def test_a_slice_that_surprises_oftener_is_noticed_though_it_is_small() -> None:
    surprised = np.random.default_rng(1).random(POOLED) < 0.02
    surprised[:100] |= np.random.default_rng(2).random(100) < 0.3
    assert _pooling_p(surprised) == 1.0 / (1 + PERMUTATIONS)
    surprised = np.random.default_rng(1).random(POOLED) < 0.05
    surprised[:20] = np.arange(20) < 6
    assert _pooling_p(surprised, first=20) < 0.02


INPUTS, CELLS = 200, 20


def _of_the_field(seen: NDArray[np.bool_]) -> FieldInterval:
    """Return the interval in the field where all items, (CELLS, INPUTS), were asked."""
    fact, sample = Fact(np.zeros(seen.size, bool), seen.ravel()), all_asked(seen.size)
    inputs = np.tile(np.arange(INPUTS), CELLS)
    return field_interval(rate(fact, sample), fact, sample, inputs, sample.asked)


@pytest.mark.parametrize("cells", [CELLS, 1], ids=["items apart", "inputs in all cells"])
def test_items_say_no_more_of_the_field_than_their_inputs(cells: int) -> None:
    seen = np.random.default_rng(1).random((cells, INPUTS)) < 0.1
    found = _of_the_field(np.tile(seen, (CELLS // cells, 1)))
    assert found.draws == pytest.approx(INPUTS, rel=0.01)
    assert found.draws <= INPUTS


def test_nothing_seen_says_as_much_of_the_field_as_there_are_inputs() -> None:
    found = _of_the_field(np.zeros((CELLS, INPUTS), dtype=bool))
    assert found.low == 0.0
    assert found.high == pytest.approx(1.96**2 / (INPUTS + 1.96**2), rel=0.01)


def test_what_was_foretold_and_did_not_happen_leaves_the_field_no_wider() -> None:
    """Two of 1,000 inputs were foretold to deviate, and the one that was asked did not."""
    inputs = np.arange(1000)
    foretold, asked = inputs < 2, (inputs == 0) | (inputs >= 600)
    fact, sample = (
        Fact(foretold, np.zeros(1000, bool)),
        Sample((inputs < 2).astype(np.int64), asked),
    )
    found = rate(fact, sample)
    assert found.value == 0.0
    field = field_interval(found, fact, sample, inputs, np.ones(1000, bool))
    assert found.high <= field.high < 0.02


@pytest.mark.parametrize("few", [False, True], ids=["some much oftener", "few that deviate"])
def test_intervals_cover_the_rate_of_the_field(few: bool) -> None:
    """Inputs deviate more or less often under all conditions: beta distributed, or a few alone."""
    rng = np.random.default_rng(2)
    held = 0
    for _ in range(REPETITIONS):
        each = 0.5 * (rng.random(INPUTS) < 0.02) if few else rng.beta(0.5, 4.5, INPUTS)
        found = _of_the_field(rng.random((CELLS, INPUTS)) < each)
        held += found.low <= (0.01 if few else 0.1) <= found.high
    assert covered(held)


Distances = tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.int64]]


@pytest.fixture(scope="module")
def distances() -> Distances:
    """What the twin foretells, what a device that never fails says, and the cells of the items."""
    made = with_distances(constructed_facts(inputs=80))
    foretold, seen = made.twin_distance, made.device_distance
    assert foretold is not None
    assert seen is not None
    return foretold, np.where(np.isnan(seen), foretold, seen), made.cell


def test_a_mean_distance_is_that_of_the_device_where_all_were_asked(distances: Distances) -> None:
    foretold, seen, cell = distances
    found = mean_distance(foretold, seen, all_asked(len(seen)), cell == 2, 0.95)
    assert found is not None
    assert found.low == found.high == found.value == pytest.approx(seen[cell == 2].mean())


@pytest.mark.parametrize("useful", [True, False], ids=["with a twin", "without one"])
def test_intervals_of_a_slice_cover_its_mean_distance(distances: Distances, useful: bool) -> None:
    foretold, seen, cell = distances
    facts = constructed_facts(inputs=80)
    chosen, held, widths = cell >= 4, 0, []
    for rng_seed in range(800):
        sample = drawn_sample(facts, 0.25, rng_seed)
        known = np.where(sample.asked, seen, np.nan)
        found = mean_distance(foretold * useful, known, sample, chosen, 0.95)
        assert found is not None
        held += found.low <= seen[chosen].mean() <= found.high
        widths.append(found.high - found.low)
    assert held >= 0.92 * 800
    assert np.mean(widths) < (0.08 if useful else 0.2)


def test_what_the_device_failed_on_is_left_out_of_a_mean_distance() -> None:
    seen = np.array([1.0, 3.0, np.nan, np.nan])
    found = mean_distance(np.zeros(4), seen, all_asked(4), np.ones(4, bool), 0.95)
    assert found is not None
    assert found.value == pytest.approx(2.0)


@pytest.mark.parametrize(
    ("stratum", "asked", "chosen"),
    [
        ([0, 0, 0, 0], [0, 0, 0, 0], [1, 1, 1, 1]),
        ([0, 0, 1, 1], [1, 1, 1, 0], [1, 1, 1, 1]),
        ([0, 0, 1, 1], [1, 1, 0, 0], [1, 1, 1, 1]),
        ([0, 0, 1, 1], [1, 1, 1, 1], [0, 0, 0, 0]),
    ],
    ids=["none asked", "one asked of a stratum", "a stratum not asked", "none chosen"],
)
def test_a_mean_distance_that_cannot_be_said_is_none(
    stratum: list[int], asked: list[int], chosen: list[int]
) -> None:
    flags = np.array(asked, bool)
    seen = np.where(flags, 1.0, np.nan)
    sample = Sample(np.array(stratum), flags)
    assert mean_distance(np.zeros(4), seen, sample, np.array(chosen, bool), 0.95) is None


def _decided(population: Population, limit: float, count: int, seed: int) -> bool | None:
    """Look after every round; return the first decision."""
    design = population.design(np.random.default_rng(seed))
    while len(design.draws.items) < count:
        population.ask(design, min(design.round_size, count - len(design.draws.items)))
        found = limit_evidence(population.fact, design.strata, design.draws, limit).decided(0.95)
        if found is not None:
            return found
    return None


@for_both_twins
@pytest.mark.parametrize("side", [-1, 1])
def test_a_wrong_decision_is_rare_however_often_one_looks(twin: MakePopulation, side: int) -> None:
    population = twin(0.02, 1500, np.random.default_rng(5))
    limit = population.rate * (1.0 - 0.02 * side)
    decided = [_decided(population, limit, 600, seed) for seed in range(REPETITIONS)]
    assert covered(sum(one is not (side > 0) for one in decided))


@pytest.mark.parametrize(("limit", "held"), [(0.05, True), (0.005, False)])
def test_a_clear_gate_is_decided(limit: float, held: bool) -> None:
    population = with_good_twin(0.02, 8000, np.random.default_rng(5))
    assert _decided(population, limit, 2500, 1) is held


def test_the_estimates_that_are_bet_on_have_the_rate_as_their_mean() -> None:
    """With all items drawn a bet on the truth neither wins nor loses without end."""
    population = with_good_twin(0.05, 400, np.random.default_rng(5))
    design = population.design(np.random.default_rng(6))
    population.asked(design, 400)
    found = limit_evidence(population.fact, design.strata, design.draws, population.rate)
    assert found.decided(0.9999) is None


def test_a_slice_is_decided_by_its_own_items() -> None:
    population = with_useless_twin(0.1, 6000, np.random.default_rng(5))
    clean = np.arange(6000) < 3000
    fact = Fact(population.foretold, population.truth & ~clean)
    design = population.design(np.random.default_rng(6))
    population.asked(design, 2500)
    for chosen in (clean, ~clean):
        found = limit_evidence(fact, design.strata, design.draws, 0.02, chosen).decided(0.95)
        assert found is bool(chosen[0])


@pytest.mark.parametrize(
    ("below", "above", "decided"), [(2.0, 0.0, None), (3.1, 0.0, True), (0.0, 3.1, False)]
)
def test_evidence_below_what_the_confidence_asks_for_decides_nothing(
    below: float, above: float, decided: bool | None
) -> None:
    assert LimitEvidence(below=below, above=above).decided(0.95) is decided
