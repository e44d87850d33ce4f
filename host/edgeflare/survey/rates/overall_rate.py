"""The rate that a survey is sampled for: of deviations over all changed inputs."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from edgeflare.survey.estimate.rate import Rate, Sample
from edgeflare.survey.estimate.rate_interval import rate
from edgeflare.survey.items.measures import headline
from edgeflare.survey.items.survey_facts import Flags, SurveyFacts


def overall_rate(facts: SurveyFacts, sample: Sample, confidence: float) -> Rate:
    """Return the rate over all cells but the inputs unchanged, or over these where no other is."""
    return rate(headline(facts), sample, surveyed(facts), confidence)


def cell_rates(facts: SurveyFacts, sample: Sample) -> NDArray[np.float64]:
    """Return the estimated rate of deviations in each cell: (cells,)."""
    fact, cell = headline(facts), facts.cell
    return np.array([rate(fact, sample, cell == at).estimate for at in range(len(facts.cells))])


def surveyed(facts: SurveyFacts) -> Flags:
    """Return the items that rates over all are of, (items,) bool.

    The unchanged inputs are among them only where nothing else is surveyed.
    """
    return np.asarray(facts.cell > 0) if len(facts.cells) > 1 else np.ones(facts.items, bool)


def items_by_condition(facts: SurveyFacts) -> Iterator[tuple[str, Flags]]:
    """Yield each condition with its items, (items,) bool."""
    for name in dict.fromkeys(one.condition for one in facts.cells[1:]):
        cells = [at for at, one in enumerate(facts.cells) if at and one.condition == name]
        yield name, np.isin(facts.cell, cells)
