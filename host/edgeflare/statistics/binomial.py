"""Exact intervals and tests by the binomial distribution: of a share, of a median, of signs.

The interval of a share is that of Clopper and Pearson. The sign test is that of Dixon and Mood,
"The statistical sign test", JASA 41 (1946); of answers that are right or wrong it is McNemar's
exact test.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from functools import lru_cache

import numpy as np

_SURE = 0.05


@lru_cache(maxsize=4096)
def exact_interval(hits: int, trials: int) -> tuple[float, float]:
    """Return the 95 % interval of a share of trials; at least one.

    None or all of the trials is no certainty: 0 of 100 leaves up to 3.6 %. More hits than trials
    count as all of them.
    """
    hits = min(hits, trials)
    low = 0.0 if hits == 0 else 1.0 - _tail_inverse(trials - hits, trials)
    high = 1.0 if hits == trials else _tail_inverse(hits, trials)
    return low, high


def median_interval(values: Sequence[float], confidence: float = 0.95) -> tuple[float, float]:
    """Return an interval that contains the median, whatever the distribution.

    Its ends are two of the values, as many places from the least as from the greatest: the number
    of values below the median is binomial. Few values have no such interval; theirs are the least
    and the greatest.

    Args:
        values: one value or more, independent of each other.
        confidence: confidence that the interval contains the median.

    """
    ordered, count = sorted(values), len(values)
    beyond = bisect_right(
        range(count // 2),
        (1.0 - confidence) / 2.0,
        key=lambda place: _probability_at_most(place, count, 0.5),
    )
    place = max(0, beyond - 1)
    return ordered[place], ordered[-1 - place]


def _tail_inverse(hits: int, trials: int) -> float:
    """Return the chance at which so few hits or fewer come up in one of 40 cases."""
    at_most = _cumulative(hits, trials)
    low, high = 0.0, 1.0
    for _ in range(60):
        middle = (low + high) / 2
        if at_most(middle) > 0.025:
            low = middle
        else:
            high = middle
    return (low + high) / 2


def _probability_at_most(hits: int, trials: int, chance: float) -> float:
    """Return the binomial probability of `hits` or fewer in `trials` of probability `chance`."""
    return _cumulative(hits, trials)(chance)


def _cumulative(hits: int, trials: int) -> Callable[[float], float]:
    """Return the binomial probability of `hits` or fewer in `trials`, by the chance of each."""
    counts = np.arange(min(hits, trials) + 1, dtype=np.float64)
    logs = np.concatenate(([0.0], np.cumsum(np.log(np.arange(1.0, trials + 1.0)))))
    choose = (logs[-1] - logs - logs[::-1])[: len(counts)]
    others = trials - counts

    def probability(chance: float) -> float:
        with np.errstate(divide="ignore"):  # a chance may be rounded to 1
            powers = choose + counts * np.log(chance) + others * np.log1p(-chance)
        return float(np.exp(powers).sum())

    return probability


def sign_test(better: int, worse: int) -> float:
    """Return p, two-sided and exact.

    It is the chance that so many inputs, of which each changes for the better or for the worse with
    a chance of one half, are distributed as unevenly or more. Inputs that do not change do not
    count; where none changes, p is 1.

    Args:
        better: number of inputs that changed for the better.
        worse: number of those that changed for the worse.

    """
    return min(1.0, 2.0 * _probability_at_most(min(better, worse), better + worse, 0.5))


def surely_more(better: int, worse: int) -> bool:
    """Whether more inputs changed for the better than for the worse, with p below .05.

    Args: as of `sign_test`.

    """
    return better > worse and sign_test(better, worse) < _SURE
