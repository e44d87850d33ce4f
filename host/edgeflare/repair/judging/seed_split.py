"""The seeds in three parts: to fit repairs with, to choose one by, and to judge the chosen one."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

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
    def sizes(self) -> dict[str, int]:
        """How many seeds each part has, by its name."""
        return {"fit": len(self.fit), "choose": len(self.choose), "judge": len(self.judge)}


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
