"""Influence functions of measures, and the interval of 95 % that they give, for inputs in groups.

A measure is, but for terms that vanish faster, the mean of its influence function over the inputs.
So its variance is that of the groups' sums of it (the cluster-robust sandwich), whatever the values
are distributed like, and one interval serves all measures.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from edgeflare.statistics.distributions import normal_deviate
from edgeflare.statistics.standard_forms import standardized

Column = NDArray[np.float64]
Bins = NDArray[np.int64]


def half_width(influence: Column, groups: NDArray[np.int64]) -> float:
    """Return half the width of a score's 95 % interval.

    Args:
        influence: (n,) the influence of each input on the score, with mean 0.
        groups: (n,) the group of each.

    """
    sums = np.bincount(np.unique(groups, return_inverse=True)[1].reshape(-1), weights=influence)
    variance = float(np.square(sums).sum()) * len(sums) / max(len(sums) - 1, 1)
    return normal_deviate() * float(np.sqrt(variance)) / len(influence)


def correlation_influence(unit: Column, target: Column) -> Column:
    """Return the influence of inputs on a correlation, (n,); `target` is a hypothesis' values."""
    x, y = standardized(unit[:, None])[:, 0], standardized(target[:, None])[:, 0]
    return np.asarray(x * y - (x * y).mean() * (np.square(x) + np.square(y)) / 2.0)


def mean_difference_influence(unit: Column, target: Column) -> Column:
    """Return that on the standardised difference of means; `target` is 0 or 1."""
    held = target > 0.0
    means = np.where(held, unit[held].mean(), unit[~held].mean())
    within = float(np.sqrt(np.square(unit - means).mean()))
    if within == 0.0:
        return np.zeros(len(unit))
    size = (unit[held].mean() - unit[~held].mean()) / within
    z = (unit - means) / within
    return np.asarray(
        np.where(held, z / held.mean(), -z / (~held).mean()) - size / 2.0 * (np.square(z) - 1.0)
    )


def auc_influence(unit: Column, target: Column) -> Column:
    """Return that on an AUC (DeLong's placements); `target` is 0 or 1."""
    held = target > 0.0
    among_others, among_held = _below(unit[held], unit[~held]), _below(unit[~held], unit[held])
    area = float(among_others.mean())
    influence = np.empty(len(unit))
    influence[held] = (among_others - area) / held.mean()
    influence[~held] = (1.0 - among_held - area) / (~held).mean()
    return influence


def mutual_information_influence(rows: Bins, columns: Bins) -> Column:
    """Return that on mutual information in bits, of the bins of each input in two divisions."""
    joint = np.zeros((int(rows.max()) + 1, int(columns.max()) + 1))
    np.add.at(joint, (rows, columns), 1.0 / len(rows))
    alone = joint.sum(axis=1)[rows] * joint.sum(axis=0)[columns]
    told = np.log2(joint[rows, columns] / alone)
    return np.asarray(told - told.mean())


def slope_influence(values: Column, errors: Column) -> Column:
    """Return that on cov(values, errors) / var(errors)."""
    x, e = values - values.mean(), errors - errors.mean()
    variance = float(np.square(e).mean())
    if variance == 0.0:
        return np.zeros(len(e))
    slope = float((x * e).mean()) / variance
    return np.asarray((x * e - slope * np.square(e)) / variance)


def _below(values: Column, among: Column) -> Column:
    """Return which part of some numbers is below each value; ties count a half."""
    ordered = np.sort(among)
    ends = np.searchsorted(ordered, values, "left") + np.searchsorted(ordered, values, "right")
    return np.asarray(ends / (2.0 * len(among)))
