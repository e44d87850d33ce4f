"""A world of probability vectors in which the boundaries between classes were moved, to repair."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from edgeflare.core.tensor import Tensor
from edgeflare.repair.shifts.mixture import Mixture
from edgeflare.repair.shifts.repair_samples import Samples
from edgeflare.repair.shifts.shifts import Shifts
from edgeflare.repair.shifts.training_inputs import TrainingInputs

CLASSES = 4
OUTPUT = Tensor("scores", (1, CLASSES), "int8", 1 / 256, -128)


def shifts(**steps: int) -> Shifts:
    """Shifts from `c01=8`: by 8 steps in favour of class 0 against class 1."""
    table = np.zeros((CLASSES, CLASSES), np.int8)
    for name, value in steps.items():
        a, b = int(name[1]), int(name[2])
        table[a, b], table[b, a] = value, -value
    return Shifts(table)


class World:
    """Inputs whose original is the device with moved boundaries, but for some that are noise."""

    def __init__(self, moved: Shifts, seeds: int = 60, noise: float = 0.0, number: int = 0) -> None:
        self._moved = moved
        self._rng = np.random.default_rng(number)
        self._seeds = seeds
        self._noise = noise

    def near(self, count: int) -> Samples:
        """Inputs near the boundary between two classes, without ties."""
        rng = self._rng
        raw = np.full((count, CLASSES), -128, np.int16)
        pairs = np.array([rng.permutation(CLASSES)[:2] for _ in range(count)])
        lead = rng.integers(1, 25, count)
        rows = np.arange(count)
        raw[rows, pairs[:, 0]], raw[rows, pairs[:, 1]] = lead, -lead
        ids = rng.integers(0, self._seeds, count)
        return self._samples(raw.astype(np.int8), ids, pairs[rows, rng.integers(0, 2, count)])

    def seeds(self) -> Samples:
        """One input far from any boundary for each seed."""
        raw = np.full((self._seeds, CLASSES), -128, np.int8)
        labels = np.arange(self._seeds) % CLASSES
        raw[np.arange(self._seeds), labels] = 127
        return self._samples(raw, np.arange(self._seeds), labels)

    def training(self, near: int = 6000, mixture: Mixture | None = None) -> TrainingInputs:
        """Everything that a repairer is made of; each seed has one trigger."""
        bisected = self.near(near)
        deviating = bisected.take(bisected.deviating)
        ids, firsts = np.unique(deviating.seed_ids, return_index=True)
        rest = np.ones(len(deviating), bool)
        rest[firsts] = False
        agreeing, sampled = bisected.take(~bisected.deviating), self.near(near)
        return TrainingInputs(
            deviating.take(firsts),
            self.seeds().take(ids),
            agreeing.take(np.isin(agreeing.seed_ids, ids)),
            deviating.take(rest),
            sampled.take(np.isin(sampled.seed_ids, ids)),
            mixture or Mixture(),
        )

    def _samples(
        self,
        raw: NDArray[np.int8],
        ids: NDArray[np.integer],
        seed_labels: NDArray[np.integer],
    ) -> Samples:
        originals = self._moved.apply(raw, OUTPUT).argmax(axis=1)
        second = np.argsort(raw, axis=1, kind="stable")[:, -2]
        flipped = (self._rng.random(len(raw)) < self._noise) & (raw.max(axis=1) < 100)
        return Samples(
            np.asarray(ids, np.int64),
            np.asarray(seed_labels, np.int64),
            np.where(flipped, second, originals).astype(np.int64),
            raw,
            OUTPUT,
        )
