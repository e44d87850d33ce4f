"""The 95 % interval of one score, for inputs that come in groups.

A score is, but for terms that vanish faster, the mean of its influence function over the inputs. So
its variance is that of the groups' sums of it (the cluster-robust sandwich), whatever the values
are distributed like, and one interval serves all measures.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final

import numpy as np
from numpy.typing import NDArray

from edgeflare.diagnose.inspect.unit_measures import (
    BINS,
    doubled_ranks,
    rank_bins,
    standardized,
)

Z95 = 1.959963984540054
Column = NDArray[np.float64]

_POSSIBLE: Final[Mapping[str, tuple[float, float]]] = MappingProxyType(
    {
        "correlation": (-1.0, 1.0),
        "auc": (0.0, 1.0),
        "mutual information": (0.0, float(np.log2(BINS))),
        "regression": (0.0, 1.0),
    }
)


def half_width(influence: Column, groups: NDArray[np.int64]) -> float:
    """Return half the width of a score's 95 % interval.

    Args:
        influence: (n,) the influence of each input on the score, with mean 0.
        groups: (n,) the group of each.

    """
    sums = np.bincount(np.unique(groups, return_inverse=True)[1].reshape(-1), weights=influence)
    variance = float(np.square(sums).sum()) * len(sums) / max(len(sums) - 1, 1)
    return Z95 * float(np.sqrt(variance)) / len(influence)


def limits(measure: str, score: float, half: float) -> tuple[float, float]:
    """Return the limits of an interval within what the measure can be."""
    least, most = _POSSIBLE.get(measure, (-np.inf, np.inf))
    return max(score - half, least), min(score + half, most)


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


def mutual_information_influence(unit: Column, target: Column) -> Column:
    """Return that on mutual information in bits; `target` is the bin of each input."""
    rows = rank_bins(doubled_ranks(unit[:, None]), BINS)[:, 0]
    columns = target.astype(np.int64)
    joint = np.zeros((BINS, BINS))
    np.add.at(joint, (rows, columns), 1.0 / len(unit))
    alone = joint.sum(axis=1)[rows] * joint.sum(axis=0)[columns]
    told = np.log2(joint[rows, columns] / alone)
    return np.asarray(told - told.mean())


def share_influence(contribution: Column, errors: Column) -> Column:
    """Return that on cov(contribution, errors) / var(errors), see `error_shares`."""
    x, e = contribution - contribution.mean(), errors - errors.mean()
    variance = float(np.square(e).mean())
    if variance == 0.0:
        return np.zeros(len(e))
    slope = float((x * e).mean()) / variance
    return np.asarray((x * e - slope * np.square(e)) / variance)


INFLUENCES: Final[Mapping[str, Callable[[Column, Column], Column]]] = MappingProxyType(
    {
        "correlation": correlation_influence,
        "mean difference": mean_difference_influence,
        "auc": auc_influence,
        "mutual information": mutual_information_influence,
    }
)


def _below(values: Column, among: Column) -> Column:
    """Return which part of some numbers is below each value; ties count a half."""
    ordered = np.sort(among)
    ends = np.searchsorted(ordered, values, "left") + np.searchsorted(ordered, values, "right")
    return np.asarray(ends / (2.0 * len(among)))
