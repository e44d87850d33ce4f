"""Whether slices may pool their answers: a test of whether the device surprises as often in each.

A rate that is pooled takes it for granted that surprises do not depend on the slice, given what the
host foretells and the twin's margin.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from edgeflare.survey.items.survey_facts import Fact, Sample

PERMUTATIONS: Final = 499
"""Permutations of the surprises: enough for a p-value of 1 in 500."""


def pooling_p_value(
    fact: Fact, sample: Sample, slices: NDArray[np.int64], rng: np.random.Generator
) -> float:
    """Return the probability of slices that differ as much, if surprises do not depend on them.

    The surprises are shuffled among the items asked of each stratum and prediction. What is
    compared is the sum over the slices of (surprises − expected)² / expected.

    Args:
        fact: what was foretold and seen.
        sample: items that were asked.
        slices: (items,) the slice of each, from 0; of items with −1 nothing is looked at.
        rng: generator of all random draws.

    """
    asked = sample.asked & (slices >= 0)
    surprised = (fact.seen != fact.foretold)[asked]
    if not surprised.any():
        return 1.0
    # Numbered anew, since those of classes may be as large as 64 bits hold.
    _, of = np.unique(slices[asked], return_inverse=True)
    kinds, count = (2 * sample.stratum + fact.foretold)[asked], int(of.max()) + 1
    every = int(kinds.max()) + 1

    def by_kind(items: NDArray[np.bool_]) -> NDArray[np.int64]:
        numbers = kinds[items] * count + of[items]
        return np.bincount(numbers, minlength=every * count).reshape(every, count)

    told, seen = by_kind(np.ones(len(kinds), bool)), by_kind(surprised)
    some = seen.any(axis=1)
    told, seen = told[some], seen[some]
    rates = seen.sum(axis=1) / told.sum(axis=1)
    expected = (told * rates[:, np.newaxis]).sum(axis=0)
    # The surprises of a kind are as many of its items, drawn without replacement.
    counts = np.zeros((1 + PERMUTATIONS, count), np.int64)
    counts[0] = seen.sum(axis=0)
    for items, surprises in zip(told, seen.sum(axis=1).tolist(), strict=True):
        counts[1:] += rng.multivariate_hypergeometric(
            items, surprises, PERMUTATIONS, method="count"
        )
    on = expected > 0.0
    uneven = ((counts[:, on] - expected[on]) ** 2 / expected[on]).sum(axis=1)
    return float((uneven >= uneven[0]).mean())
