"""The answers of device and original on some inputs, as arrays for a repairer, and their folds.

Folds of the cross-validation are assigned by seed: all inputs made from a seed are in one fold.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from edgeflare.core.tensor import Tensor, dequantize

Labels = NDArray[np.int64]
Rows = NDArray[np.int64]
"""Positions of samples."""

FOLDS = 5
"""§5.5.2."""

SPLITS = 5
"""Repetitions of the cross-validation, each with another generator seed (§5.5.2)."""


@dataclass(frozen=True, slots=True)
class Samples:
    """Answers on k inputs; the images themselves are not kept.

    Attributes:
        seed_ids: (k,) int64, the seed that each was made from; all inputs of a seed share a fold.
        seed_labels: (k,) int64, the device's label of that seed.
        originals: (k,) int64, the original's labels.
        raw: (k, classes), the device's raw outputs.
        tensor: the compressed model's output tensor, with its scale and zero point.

    """

    seed_ids: Labels
    seed_labels: Labels
    originals: Labels
    raw: NDArray[np.generic]
    tensor: Tensor

    def __len__(self) -> int:
        return len(self.originals)

    @property
    def vectors(self) -> NDArray[np.float64]:
        """The device's outputs as real values: (k, classes)."""
        return dequantize(self.raw, self.tensor)

    @property
    def labels(self) -> Labels:
        """The device's labels: (k,); the lowest index among equals."""
        labels: Labels = self.raw.argmax(axis=1).astype(np.int64, copy=False)
        return labels

    @property
    def deviating(self) -> NDArray[np.bool_]:
        """(k,) bool, where the device's label is not the original's."""
        deviating: NDArray[np.bool_] = self.labels != self.originals
        return deviating

    @property
    def margins(self) -> NDArray[np.float64]:
        """(k,) the device's margin: its largest output less the second largest."""
        two = np.partition(self.vectors, -2, axis=1)[:, -2:]
        margins: NDArray[np.float64] = two[:, 1] - two[:, 0]
        return margins

    @property
    def seconds(self) -> Labels:
        """The labels of the second largest outputs: (k,); the lowest index among equals."""
        rest = self.vectors
        rest[np.arange(len(self)), self.labels] = -np.inf
        seconds: Labels = rest.argmax(axis=1).astype(np.int64, copy=False)
        return seconds

    @property
    def on_seeds_side(self) -> NDArray[np.bool_]:
        """(k,) bool, where the device gives an input the same label as its seed."""
        on_side: NDArray[np.bool_] = self.labels == self.seed_labels
        return on_side

    def take(self, rows: NDArray[np.bool_] | Rows) -> Samples:
        """Return some of the samples: by position, or by a mask."""
        return Samples(
            self.seed_ids[rows],
            self.seed_labels[rows],
            self.originals[rows],
            self.raw[rows],
            self.tensor,
        )


def together(parts: Sequence[Samples]) -> Samples:
    """Concatenate samples of one model."""
    return Samples(
        np.concatenate([part.seed_ids for part in parts]),
        np.concatenate([part.seed_labels for part in parts]),
        np.concatenate([part.originals for part in parts]),
        np.concatenate([part.raw for part in parts]),
        parts[0].tensor,
    )


def assign_folds(seed_ids: Labels, labels: Labels, split: int) -> dict[int, int]:
    """Assign seeds to folds, stratified by label.

    Args:
        seed_ids: (k,) the seeds' ids.
        labels: (k,) the original's labels of them.
        split: the generator seed.

    Returns:
        The fold of each seed, by its id.

    """
    order = np.random.default_rng(split).permutation(len(seed_ids))
    order = order[np.argsort(labels[order], kind="stable")]
    return {int(seed_ids[at]): place % FOLDS for place, at in enumerate(order)}


def fold_of(seed_ids: Labels, assigned: dict[int, int]) -> Labels:
    """Return the fold of each sample: (k,)."""
    return np.array([assigned[seed_id] for seed_id in seed_ids.tolist()], np.int64)
