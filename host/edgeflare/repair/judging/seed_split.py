"""The seeds in three parts: to fit repairs with, to choose one by, and to judge the chosen one."""

from __future__ import annotations

from dataclasses import dataclass

import msgspec
import numpy as np
from numpy.typing import NDArray

from edgeflare.record.json_types import Count

Rows = NDArray[np.int64]
"""Positions of seeds, rising."""

PARTS = 5
"""Three fifths fit, one chooses, one judges."""


@dataclass(frozen=True, slots=True)
class SeedSplit:
    """Positions of the seeds of each part; all inputs made from a seed belong to its part.

    Attributes:
        fit: three fifths; methods may look at them as they like.
        choose: one fifth; candidates are compared on them.
        judge: one fifth; only what was chosen is evaluated on them.

    """

    fit: Rows
    choose: Rows
    judge: Rows

    @property
    def sizes(self) -> SeedCounts:
        """How many seeds each part has."""
        return SeedCounts(len(self.fit), len(self.choose), len(self.judge))


class SeedCounts(msgspec.Struct, frozen=True):
    """How many seeds each part has.

    Attributes:
        fit: seeds to fit with.
        choose: seeds to choose by.
        judge: seeds to judge what was chosen.

    """

    fit: Count
    choose: Count
    judge: Count

    def __str__(self) -> str:
        return f"{self.fit} seeds to fit with, {self.choose} to choose by, {self.judge} to judge"


def split_seeds(labels: NDArray[np.int64], rng: np.random.Generator) -> SeedSplit:
    """Divide seeds at random, so that each part has its share of each label, to within one seed.

    Args:
        labels: (seeds,), by which they are stratified.
        rng: the generator of the division.

    """
    order = rng.permutation(len(labels))
    order = order[np.argsort(labels[order], kind="stable")]
    place = np.arange(len(order)) % PARTS
    fit, choose, judge = (np.sort(order[chosen]) for chosen in (place < 3, place == 3, place == 4))
    return SeedSplit(fit, choose, judge)
