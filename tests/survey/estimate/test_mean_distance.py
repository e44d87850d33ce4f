"""Tests of edgeflare.survey.estimate.mean_distance: exact, or valid where some were asked."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from constructed_surveys import constructed_facts, drawn_sample, whole_sample, with_distances
from edgeflare.survey.estimate.mean_distance import mean_distance
from edgeflare.survey.estimate.rate import Sample
from edgeflare.survey.items.survey_facts import SurveyFacts

REPETITIONS = 800


@pytest.fixture(scope="module")
def facts() -> SurveyFacts:
    """Distances of a device that never fails."""
    made = with_distances(constructed_facts(inputs=80))
    assert made.device_distance is not None
    assert made.twin_distance is not None
    filled = np.where(np.isnan(made.device_distance), made.twin_distance, made.device_distance)
    return replace(made, device_distance=filled)


def test_where_all_were_asked_it_is_the_mean_of_the_device(facts: SurveyFacts) -> None:
    chosen = facts.cell == 2
    foretold, seen = facts.twin_distance, facts.device_distance
    assert foretold is not None
    assert seen is not None
    found = mean_distance(foretold, seen, whole_sample(facts), chosen, 0.95)
    assert found is not None
    assert found.estimate == pytest.approx(seen[chosen].mean())
    assert found.low == found.high == found.estimate


@pytest.mark.parametrize("useful", [True, False], ids=["with a twin", "without one"])
def test_intervals_of_a_slice_cover_its_mean(facts: SurveyFacts, useful: bool) -> None:
    chosen = facts.cell >= 4
    seen = facts.device_distance
    assert seen is not None
    foretold = facts.twin_distance if useful else np.zeros(facts.items)
    assert foretold is not None
    truth, held, widths = seen[chosen].mean(), 0, []
    for rng_seed in range(REPETITIONS):
        sample = drawn_sample(facts, 0.25, rng_seed)
        found = mean_distance(foretold, np.where(sample.asked, seen, np.nan), sample, chosen, 0.95)
        assert found is not None
        held += found.low <= truth <= found.high
        widths.append(found.high - found.low)
    assert held / REPETITIONS >= 0.92
    assert np.mean(widths) < (0.08 if useful else 0.2)


def test_what_the_device_failed_on_is_left_out(facts: SurveyFacts) -> None:
    foretold, seen = np.zeros(4), np.array([1.0, 3.0, np.nan, np.nan])
    sample = Sample(np.zeros(4, np.int64), np.ones(4, bool))
    found = mean_distance(foretold, seen, sample, np.ones(4, bool), 0.95)
    assert found is not None
    assert found.estimate == pytest.approx(2.0)


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
def test_what_cannot_be_said_is_none(
    stratum: list[int], asked: list[int], chosen: list[int]
) -> None:
    flags = np.array(asked, bool)
    seen = np.where(flags, 1.0, np.nan)
    sample = Sample(np.array(stratum), flags)
    assert mean_distance(np.zeros(4), seen, sample, np.array(chosen, bool), 0.95) is None
