"""What the device is asked: strata, how draws are shared out, and rounds that can be repeated."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from constructed_surveys import as_asked, constructed_facts
from edgeflare.survey.items.survey_facts import Sample, SurveyFacts
from edgeflare.survey.sampling_design import (
    FIRST_ROUND,
    FLOOR,
    LEAST,
    SamplingRounds,
    Strata,
    StratumWeights,
    falling_rates,
    first_shares,
    next_shares,
    strata_of,
)
from survey_populations import Population, with_good_twin, with_useless_twin


@given(st.integers(1, 2000), st.integers(0, 2**32 - 1), st.integers(1, 40))
def test_every_item_is_in_one_stratum_and_equal_margins_are_together(
    items: int, seed: int, values: int
) -> None:
    rng = np.random.default_rng(seed)
    margin = rng.integers(0, values, items).astype(np.float64)
    foretold, doubtful = rng.random(items) < 0.1, rng.random(items) < 0.1
    strata = strata_of(margin, foretold, doubtful)
    assert strata.sizes.sum() == items
    assert (strata.sizes > 0).all()
    for block in strata.blocks:
        inside = np.isin(strata.of, block)
        assert len(set(zip(foretold[inside], doubtful[inside], strict=True))) == 1
        for lower, upper in pairwise(block):
            assert margin[strata.of == lower].max() < margin[strata.of == upper].min()


def by_margin(items: int) -> Strata:
    """Return strata of items of which none is foretold, and no two have the same margin."""
    none = np.zeros(items, dtype=bool)
    return strata_of(np.arange(items, dtype=np.float64), none, none)


def test_each_stratum_of_a_block_has_half_of_the_items_below_it() -> None:
    sizes = by_margin(4096).sizes
    assert sizes.tolist() == [64, 64, 128, 256, 512, 1024, 2048]
    assert sizes.min() == LEAST


def test_items_of_one_margin_are_one_stratum() -> None:
    none = np.zeros(500, dtype=bool)
    assert strata_of(np.zeros(500), none, none).count == 1


def test_those_asked_stand_for_all_items_of_their_stratum() -> None:
    """Three strata: a part was asked, all were, and nothing was."""
    stratum = np.array([0, 0, 0, 1, 1, 2, 2, 2, 2], np.int64)
    asked = np.array([1, 0, 1, 1, 1, 0, 0, 0, 0], bool)
    strata = StratumWeights.of(Sample(stratum, asked))
    assert strata.sizes.tolist() == [3, 2, 4]
    assert strata.asked.tolist() == [2, 2, 0]
    assert strata.weight.tolist() == [1.5, 1.0, 4.0]
    assert strata.unasked.tolist() == [1 / 3, 0.0, 1.0]


@given(st.integers(200, 5000), st.data())
def test_shares_add_up_and_leave_out_what_is_exhausted(items: int, data: st.DataObject) -> None:
    strata = by_margin(items)
    asked = np.asarray([data.draw(st.integers(0, size)) for size in strata.sizes.tolist()])
    surprises = np.asarray([data.draw(st.integers(0, count)) for count in asked.tolist()])
    if (asked == strata.sizes).all():
        return
    shares = next_shares(strata, asked, surprises, 100)
    assert np.isclose(shares.sum(), 1.0)
    assert ((shares == 0.0) == (asked == strata.sizes)).all()


def test_a_stratum_without_surprises_keeps_half_of_the_floor_by_its_items() -> None:
    strata = by_margin(4096)
    asked = np.full(strata.count, 60)
    surprises = np.asarray([30, *[0] * (strata.count - 1)])
    shares = next_shares(strata, asked, surprises, 100)
    left = strata.sizes - asked
    assert (shares >= 0.5 * FLOOR * left / left.sum()).all()
    assert shares[0] > 0.0


def test_strata_in_which_more_is_seen_get_more_of_the_draws() -> None:
    strata = by_margin(4096)
    asked = np.full(strata.count, 30)
    quiet = next_shares(strata, asked, np.zeros_like(asked), 100)
    surprises = np.where(np.arange(strata.count) == 4, 15, 0)
    shares = next_shares(strata, asked, surprises, 100)
    assert shares[4] > quiet[4]
    assert shares[6] < quiet[6]


def test_rates_fall_with_the_margin_within_a_block_only() -> None:
    asked = np.full(5, 50)
    rates = falling_rates(asked, np.asarray([1, 9, 4, 0, 20]), ((0, 1, 2), (3, 4)))
    assert rates[0] == rates[1]  # pooled, since the second had more than the first
    assert rates[1] > rates[2]
    assert rates[3] == rates[4]
    assert (rates > 0.0).all()
    unequal = falling_rates(np.asarray([10, 100]), np.asarray([2, 10]), ((0, 1),))
    assert unequal[0] > unequal[1]  # a larger share, though of fewer


def test_the_first_shares_go_by_the_root_of_the_items() -> None:
    shares = first_shares(by_margin(4096))
    assert np.isclose(shares.sum(), 1.0)
    assert np.isclose(shares[-1] / shares[0], np.sqrt(2048 / 64))


@given(st.integers(30, 1500), st.integers(0, 2**32 - 1))
def test_every_item_is_drawn_once_until_none_is_left(items: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    population = with_good_twin(0.05, items, rng)
    design = population.design(rng)
    assert population.asked(design, items).all()
    drawn = design.draws
    assert sorted(drawn.items.tolist()) == list(range(items))
    assert np.allclose(drawn.shares.sum(axis=1), 1.0)
    of = design.strata.of[drawn.items]
    assert (drawn.shares[np.arange(items), of] > 0.0).all()
    assert design.left == 0
    assert design.draw(5) == []


def test_a_round_is_half_of_what_was_drawn_and_depends_on_counts_alone() -> None:
    population = with_useless_twin(0.01, 5000, np.random.default_rng(1))
    design = population.design(np.random.default_rng(2))
    sizes = []
    for _ in range(4):
        sizes.append(design.round_size)
        population.ask(design, design.round_size)
    assert sizes == [FIRST_ROUND, FIRST_ROUND, FIRST_ROUND, FIRST_ROUND * 3 // 2]


def oftener_near_a_tie(population: Population, count: int, near: float) -> float:
    """Return how many times as often items of smaller margins are among so many draws."""
    design = population.design(np.random.default_rng(2))
    asked = population.asked(design, count)
    below = population.margin < near
    return float(asked[below].mean() / asked[~below].mean())


def test_items_near_a_tie_are_drawn_oftener_once_they_surprise() -> None:
    good = with_good_twin(0.02, 20_000, np.random.default_rng(1))
    assert oftener_near_a_tie(good, 1500, 0.1) > 3
    useless = with_useless_twin(0.05, 20_000, np.random.default_rng(1))
    assert 0.7 < oftener_near_a_tie(useless, 3000, 0.5) < 1.6


@pytest.fixture(scope="module")
def facts() -> SurveyFacts:
    return constructed_facts(inputs=150)


def asked_by(facts: SurveyFacts, items: list[int]) -> SurveyFacts:
    asked = np.zeros(facts.items, bool)
    asked[items] = True
    return as_asked(facts, Sample(np.zeros(facts.items, np.int64), asked))


def drawn(facts: SurveyFacts, rounds: SamplingRounds, count: int) -> list[list[int]]:
    """The items of the first rounds, each told before the next."""
    every = []
    for _ in range(count):
        items = rounds.draw()
        rounds.tell(items, facts)
        every.append(items)
    return every


def test_the_run_seed_decides_what_is_drawn(facts: SurveyFacts) -> None:
    first, second, other = (
        drawn(facts, SamplingRounds.of(facts, seed, 600), 3) for seed in (1, 1, 2)
    )
    assert first == second != other


def test_the_budget_is_spent_and_not_exceeded(facts: SurveyFacts) -> None:
    rounds = SamplingRounds.of(facts, 0, 300)
    assert [len(items) for items in drawn(facts, rounds, 3)] == [256, 44, 0]


def test_a_larger_budget_adds_to_what_was_drawn(facts: SurveyFacts) -> None:
    before = drawn(facts, SamplingRounds.of(facts, 0, 600), 3)
    rounds = SamplingRounds.of(facts, 0, 700, (300, 600))
    assert [len(items) for items in drawn(facts, rounds, 5)] == [256, 44, 256, 44, 100]
    after = drawn(facts, SamplingRounds.of(facts, 0, 900, (600,)), 4)
    assert after[:3] == before
    assert [len(items) for items in after] == [256, 256, 88, 300]
    every = [item for items in after for item in items]
    again = SamplingRounds.replayed(asked_by(facts, every), 0, 900, (600,))
    assert again.design.draws.items.tolist() == every


def test_without_a_budget_all_items_are_drawn_once(facts: SurveyFacts) -> None:
    rounds = SamplingRounds.of(facts, 0, None)
    every: list[int] = []
    while items := rounds.draw():
        rounds.tell(items, facts)
        every += items
    assert sorted(every) == list(range(facts.items))


def test_what_the_host_says_of_unasked_items_is_all_that_is_needed(facts: SurveyFacts) -> None:
    nothing = asked_by(facts, [])
    assert SamplingRounds.of(facts, 0, 300).draw() == SamplingRounds.of(nothing, 0, 300).draw()


def test_replayed_rounds_go_on_as_those_before(facts: SurveyFacts) -> None:
    first, second, third = drawn(facts, SamplingRounds.of(facts, 0, None), 3)
    known = asked_by(facts, first + second + third[:20])
    again = SamplingRounds.replayed(known, 0, None)
    assert again.design.draws.items.tolist() == first + second + third
