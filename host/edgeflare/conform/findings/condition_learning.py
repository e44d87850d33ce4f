"""Conditions learned from models that failed and models that passed.

A fault shows in some of the models that meet its condition, at a rate that is not known, and in no
others: a kernel's wrong result may be hidden by rounding, saturation or luck. A condition is
therefore as good as the probability of what was seen given that, with the rate integrated out,
times its own probability beforehand; `score` is the negative logarithm of the two, in nats. All
failing models must meet it. A predicate that they share by chance gains nothing once a few
models have failed and a few without it have not.
"""

from __future__ import annotations

from dataclasses import dataclass
from heapq import nsmallest
from math import lgamma

import numpy as np
from numpy.typing import NDArray

from edgeflare.conform.findings.fault_condition import FaultCondition, Truths
from edgeflare.conform.findings.vocabulary import Vocabulary

MOST_PREDICATES = 4
"""Most predicates of a condition."""

_BEAM = 60
"""Conditions that are extended by one more predicate."""

_KEPT = 4 * _BEAM
"""Conditions of each length that are remembered."""

Places = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Hypothesis:
    """A condition, and how well it explains what was seen.

    Attributes:
        condition: met by all failing models.
        score: nats; the less the better.

    """

    condition: FaultCondition
    score: float


@dataclass(frozen=True, slots=True, eq=False)
class ModelEvidence:
    """What is known of the models of an operator.

    Attributes:
        vocabulary: what conditions may be made of.
        failing: whether each predicate holds of each failing model: (predicates, failing models).
        passing: likewise (predicates, passing models).

    """

    vocabulary: Vocabulary
    failing: Truths
    passing: Truths


def hypotheses(evidence: ModelEvidence, most: int = 200) -> list[Hypothesis]:
    """Return the best conditions that all failing models meet, the best first.

    Args:
        evidence: evidence with at least one failing model.
        most: how many are returned at most.

    """
    shared = np.flatnonzero(evidence.failing.all(axis=1))
    passing = evidence.passing[shared].astype(np.float32)
    costs = evidence.vocabulary.costs[shared]
    failing, others = evidence.failing.shape[1], evidence.passing.shape[1]
    surprise = np.array([surprise_of(failing, some) for some in range(others + 1)])
    found: dict[Places, float] = {(): float(surprise[-1])}
    singles = costs + surprise[passing.sum(axis=1).astype(np.intp)]
    found.update(((at,), float(single)) for at, single in enumerate(singles))
    beam: list[Places] = [(int(at),) for at in np.argsort(singles, kind="stable")[:_BEAM]]
    for _ in range(MOST_PREDICATES - 1):
        beam = _extended(beam, passing, costs, surprise, found)
    order = nsmallest(most, found, key=lambda places: (found[places], len(places), places))
    named = [evidence.vocabulary.predicates[at] for at in shared]
    return [
        Hypothesis(FaultCondition.of([named[at] for at in places]), found[places])
        for places in order
    ]


def _extended(
    beam: list[Places],
    passing: NDArray[np.float32],
    costs: NDArray[np.float64],
    surprise: NDArray[np.float64],
    found: dict[Places, float],
) -> list[Places]:
    """Add the best conditions with one predicate more to what was found, and return them."""
    if not beam:
        return []
    chosen = np.array(beam)
    held = passing[chosen].prod(axis=1)
    met = (held @ passing.T).astype(np.intp)
    scores = surprise[met] + costs[chosen].sum(axis=1)[:, None] + costs[None, :]
    best: dict[Places, float] = {}
    # A condition can be found from each of its parts, and from itself.
    for flat in lowest(scores.ravel(), _KEPT * (len(beam[0]) + 2)).tolist():
        row, at = divmod(flat, scores.shape[1])
        if at in beam[row]:
            continue
        places = tuple(sorted((*beam[row], at)))
        if places not in best:
            best[places] = float(scores[row, at])
            if len(best) == _KEPT:
                break
    found.update(best)
    return sorted(best, key=lambda places: (best[places], places))[:_BEAM]


def lowest(scores: NDArray[np.float64], most: int) -> NDArray[np.intp]:
    """Return the places of the lowest scores, the lowest first, the earlier of equal ones first."""
    if len(scores) > most:
        limit = np.partition(scores, most)[most]
        places = np.flatnonzero(scores <= limit)
        return places[np.argsort(scores[places], kind="stable")][:most]
    return np.argsort(scores, kind="stable")


def surprise_of(failing: int, passing: int) -> float:
    """Return how improbable so many failing and passing models are in one region, in nats.

    The rate is uniform beforehand: the integral of rate^failing · (1 - rate)^passing.
    """
    return lgamma(failing + passing + 2) - lgamma(failing + 1) - lgamma(passing + 1)
