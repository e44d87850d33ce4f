"""The exact sign test: whether changes in one direction outnumber those in the other by chance.

Dixon and Mood, "The statistical sign test", JASA 41 (1946). Of answers that are right or wrong it
is McNemar's exact test.
"""

from __future__ import annotations

from edgeflare.run.exact_interval import probability_at_most


def sign_test(better: int, worse: int) -> float:
    """Return p, two-sided and exact.

    It is the chance that so many inputs, of which each changes for the better or for the worse with
    a chance of one half, are distributed as unevenly or more. Inputs that do not change do not
    count; where none changes, p is 1.

    Args:
        better: number of inputs that changed for the better.
        worse: number of those that changed for the worse.

    """
    return min(1.0, 2.0 * probability_at_most(min(better, worse), better + worse, 0.5))
