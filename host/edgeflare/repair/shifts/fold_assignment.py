"""The folds of cross-validation, assigned by seed: all inputs made from a seed are in one fold."""

from __future__ import annotations

import numpy as np

from edgeflare.repair.shifts.repair_samples import Labels

FOLDS = 5
"""§5.5.2."""

SPLITS = 5
"""Repetitions of the cross-validation, each with another generator seed (§5.5.2)."""


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
