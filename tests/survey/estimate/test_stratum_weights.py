"""Tests of edgeflare.survey.estimate.stratum_weights."""

from __future__ import annotations

import numpy as np

from edgeflare.survey.estimate.rate import Sample
from edgeflare.survey.estimate.stratum_weights import StratumWeights


def test_those_asked_stand_for_all_items_of_their_stratum() -> None:
    """Three strata: a part was asked, all were, and nothing was."""
    stratum = np.array([0, 0, 0, 1, 1, 2, 2, 2, 2], np.int64)
    asked = np.array([1, 0, 1, 1, 1, 0, 0, 0, 0], bool)
    strata = StratumWeights.of(Sample(stratum, asked))
    assert strata.sizes.tolist() == [3, 2, 4]
    assert strata.asked.tolist() == [2, 2, 0]
    assert strata.weight.tolist() == [1.5, 1.0, 4.0]
    assert strata.unasked.tolist() == [1 / 3, 0.0, 1.0]
