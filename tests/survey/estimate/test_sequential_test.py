"""Tests that are looked at all the time: seldom wrong, and decided where the draws suffice."""

import numpy as np
import pytest
from numpy.typing import NDArray

from edgeflare.survey.estimate.rate import Fact
from edgeflare.survey.estimate.sequential_test import LimitEvidence, limit_evidence
from survey_populations import MakePopulation, Population, with_good_twin, with_useless_twin

REPETITIONS = 150


def _decided(population: Population, limit: float, count: int, seed: int) -> bool | None:
    """Look after every round; return the first decision."""
    design = population.design(np.random.default_rng(seed))
    while len(design.draws.items) < count:
        population.ask(design, min(design.round_size, count - len(design.draws.items)))
        found = limit_evidence(population.fact, design.strata, design.draws, limit).decided(0.95)
        if found is not None:
            return found
    return None


@pytest.mark.parametrize("twin", [with_good_twin, with_useless_twin])
@pytest.mark.parametrize("side", [-1, 1])
def test_a_wrong_decision_is_rare_however_often_one_looks(twin: MakePopulation, side: int) -> None:
    population = twin(0.02, 3000, np.random.default_rng(5))
    limit = population.rate * (1.0 - 0.02 * side)
    decided = [_decided(population, limit, 900, seed) for seed in range(REPETITIONS)]
    wrong = sum(one is (side > 0) for one in decided)
    assert wrong <= 0.05 * REPETITIONS + 3.0 * (0.05 * 0.95 * REPETITIONS) ** 0.5


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


def test_a_slice_is_judged_by_its_own_items() -> None:
    population = with_useless_twin(0.1, 6000, np.random.default_rng(5))
    clean = np.arange(6000) < 3000
    truth = population.truth & ~clean
    design = population.design(np.random.default_rng(6))
    population.asked(design, 2500)
    fact = Fact(population.foretold, truth)

    def decided(chosen: NDArray[np.bool_]) -> bool | None:
        return limit_evidence(fact, design.strata, design.draws, 0.02, chosen).decided(0.95)

    assert decided(clean) is True
    assert decided(~clean) is False


def test_evidence_below_what_the_confidence_asks_for_decides_nothing() -> None:
    assert LimitEvidence(below=2.0, above=0.0).decided(0.95) is None
    assert LimitEvidence(below=3.1, above=0.0).decided(0.95) is True
    assert LimitEvidence(below=0.0, above=3.1).decided(0.95) is False
