"""The rounds in which the device is asked, drawn again from what it answered."""

from __future__ import annotations

import numpy as np
import pytest

from constructed_surveys import as_asked, constructed_facts
from edgeflare.survey.estimate.rate import Sample
from edgeflare.survey.items.sampling_rounds import SamplingRounds
from edgeflare.survey.items.survey_facts import SurveyFacts


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
    known = asked_by(facts, every)
    again = SamplingRounds.replayed(known, 0, 900, (600,))
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
    rounds = SamplingRounds.of(facts, 0, None)
    first, second, third = drawn(facts, rounds, 3)
    known = asked_by(facts, first + second + third[:20])
    again = SamplingRounds.replayed(known, 0, None)
    assert again.design.draws.items.tolist() == first + second + third
