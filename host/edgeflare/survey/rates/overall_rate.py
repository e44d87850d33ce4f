"""The rate that a survey is sampled for: of deviations over all changed inputs."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from edgeflare.survey.estimate.rate import Rate, Sample
from edgeflare.survey.estimate.rate_interval import rate
from edgeflare.survey.items.measures import headline
from edgeflare.survey.items.survey_facts import SurveyFacts
from edgeflare.survey.rates.item_parts import surveyed


def overall_rate(facts: SurveyFacts, sample: Sample, confidence: float) -> Rate:
    """Return the rate over all cells but the inputs unchanged, or over these where no other is."""
    return rate(headline(facts), sample, surveyed(facts), confidence)


def cell_rates(facts: SurveyFacts, sample: Sample) -> NDArray[np.float64]:
    """Return the estimated rate of deviations in each cell: (cells,)."""
    fact, cell = headline(facts), facts.cell
    return np.array([rate(fact, sample, cell == at).estimate for at in range(len(facts.cells))])
