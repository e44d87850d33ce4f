"""The interval of a rate in the field, of which the inputs are a sample."""

import numpy as np
import pytest

from edgeflare.survey.estimate.field_interval import FieldInterval, field_interval
from edgeflare.survey.estimate.rate import Fact, Sample
from edgeflare.survey.estimate.rate_interval import rate

INPUTS, CELLS = 200, 20


def _interval(seen: np.ndarray) -> FieldInterval:
    """Return the interval where all items, (CELLS, INPUTS), were asked."""
    flat = seen.ravel()
    everything = np.ones(len(flat), dtype=bool)
    fact = Fact(np.zeros_like(everything), flat)
    sample = Sample(np.zeros(len(flat), dtype=np.int64), everything)
    inputs = np.tile(np.arange(INPUTS), CELLS)
    return field_interval(rate(fact, sample), fact, sample, inputs, everything)


def test_items_that_deviate_apart_say_no_more_than_the_inputs() -> None:
    found = _interval(np.random.default_rng(1).random((CELLS, INPUTS)) < 0.1)
    assert found.draws == INPUTS


def test_inputs_that_deviate_in_all_cells_count_once() -> None:
    found = _interval(np.tile(np.random.default_rng(1).random(INPUTS) < 0.1, (CELLS, 1)))
    assert found.draws == pytest.approx(INPUTS, rel=0.01)


def test_nothing_seen_says_as_much_as_there_are_inputs() -> None:
    found = _interval(np.zeros((CELLS, INPUTS), dtype=bool))
    assert found.low == 0.0
    assert found.high == pytest.approx(1.96**2 / (INPUTS + 1.96**2), rel=0.01)


def test_intervals_cover_the_rate_of_the_field() -> None:
    rng = np.random.default_rng(2)
    covered = 0
    for _ in range(200):
        each = rng.beta(0.5, 4.5, INPUTS)  # a tenth on average, some inputs much oftener
        found = _interval(rng.random((CELLS, INPUTS)) < each)
        covered += found.low <= 0.1 <= found.high
    assert covered >= 184


def test_inputs_few_of_which_deviate_under_many_conditions_are_covered() -> None:
    rng = np.random.default_rng(3)
    covered = 0
    for _ in range(200):
        each = np.where(rng.random(INPUTS) < 0.02, 0.5, 0.0)
        found = _interval(rng.random((CELLS, INPUTS)) < each)
        covered += found.low <= 0.01 <= found.high
    assert covered >= 184
