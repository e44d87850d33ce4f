"""How much units have to do with hypotheses: four measures of all units and hypotheses at once.

Each is a product of two matrices, one of the units and one of the hypotheses, and what is computed
from its elements. So a thousand permutations are one product with a wider matrix. Sums of ranks and
counts are whole numbers below 2^24 there, which float32 keeps exactly.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final, Literal

import numpy as np
from numpy.typing import NDArray

from edgeflare.statistics.influence import (
    Column,
    auc_influence,
    correlation_influence,
    mean_difference_influence,
    mutual_information_influence,
)
from edgeflare.statistics.standard_forms import doubled_ranks, rank_bins, standardized

BINS: Final = 4
"""Bins of mutual information, for units and for hypotheses that have more than two values: quarters
show what no mean shows, such as a middle that is unlike both ends. With 4 × 4 cells, 100 inputs
that are independent have .065 bits by chance; finer bins would drown in that."""


@dataclass(frozen=True, slots=True)
class HypothesisTargets:
    """The values of H hypotheses on n inputs, none of them constant.

    Attributes:
        standard: (n, H) float64 with mean 0 and variance 1.
        split: (n, H) bool: above the median; or at it, where nothing is above.
        bins: (n, H) int64 from 0 to 3: quarters by rank; of two values 0 and 1.

    """

    standard: NDArray[np.float64]
    split: NDArray[np.bool_]
    bins: NDArray[np.int64]


def hypothesis_targets(values: NDArray[np.float64]) -> HypothesisTargets:
    """Return the forms of some values, (n, H) float64."""
    medians = np.median(values, axis=0)
    split = np.where(medians < values.max(axis=0), values > medians, values >= medians)
    quarters = rank_bins(doubled_ranks(values), BINS)
    two_valued = ((values == values.min(axis=0)) | (values == values.max(axis=0))).all(axis=0)
    two = values == values.max(axis=0)
    return HypothesisTargets(standardized(values), split, np.where(two_valued, two, quarters))


Measure = Literal["correlation", "mean-difference", "auc", "mutual-information", "regression"]
"""How a unit, or for the last one all units, and a hypothesis are held against each other."""

CENTRES: Final[Mapping[Measure, float]] = MappingProxyType(
    {"correlation": 0.0, "mean-difference": 0.0, "auc": 0.5, "mutual-information": 0.0}
)
"""The value of each measure where a unit has nothing to do with a hypothesis."""

Scores = NDArray[np.float32]
Orders = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class UnitForms:
    """The behaviour of U units on n inputs in the forms that measures need it in.

    Attributes:
        standard: (n, U) float32 with mean 0 and variance 1; zeros where constant.
        ranks: (n, U) float32, see `doubled_ranks`.
        bins: (n, U) int8, quarters by rank.

    """

    standard: Scores
    ranks: Scores
    bins: NDArray[np.int8]


def unit_forms(values: NDArray[np.float32]) -> UnitForms:
    """Return the forms of (n, U) float32 values."""
    ranks = doubled_ranks(values)
    return UnitForms(
        standardized(values).astype(np.float32),
        ranks.astype(np.float32),
        rank_bins(ranks, BINS).astype(np.int8),
    )


def correlation(units: UnitForms, targets: HypothesisTargets, orders: Orders) -> Scores:
    """Return Pearson's correlations, see `MEASURES`."""
    sums = _product(units.standard, targets.standard, orders)
    return np.asarray(sums / np.float32(len(units.standard)))


def mean_difference(units: UnitForms, targets: HypothesisTargets, orders: Orders) -> Scores:
    """Return the differences of means where a hypothesis holds and where not, see `MEASURES`.

    They are in standard deviations within the two (Cohen's d), at most 1,000 / √(p(1 − p)).
    """
    n = len(units.standard)
    spread = np.sqrt(targets.split.mean(axis=0) * (1.0 - targets.split.mean(axis=0)))
    centred = (targets.split - targets.split.mean(axis=0)) / spread
    r = _product(units.standard, centred, orders) / np.float32(n)
    within = np.sqrt(np.maximum(1.0 - np.square(r), 1e-6) * n / (n - 2))
    return np.asarray(r / (within * spread[:, None]), np.float32)


def auc(units: UnitForms, targets: HypothesisTargets, orders: Orders) -> Scores:
    """Return how often a unit is greater where a hypothesis holds than where not, see `MEASURES`.

    Ties count a half.
    """
    held = targets.split.sum(axis=0)
    pairs = held * (len(targets.split) - held)
    sums = _product(units.ranks, targets.split, orders)
    return np.asarray(0.5 + sums / (2.0 * pairs[:, None]), np.float32)


def mutual_information(units: UnitForms, targets: HypothesisTargets, orders: Orders) -> Scores:
    """Return the bits that the quarter of a unit tells of that of a hypothesis, see `MEASURES`.

    What chance alone gives is not subtracted; permutations have as much of it.
    """
    n = len(targets.bins)
    counts = np.arange(n + 1, dtype=np.float64)
    table = (counts * np.log2(np.maximum(counts, 1.0))).astype(np.float32)
    occupied = [(h, bin_) for h, column in enumerate(targets.bins.T) for bin_ in np.unique(column)]
    hot = np.stack([targets.bins[:, h] == bin_ for h, bin_ in occupied], axis=1)
    starts = np.flatnonzero(np.diff([h for h, _ in occupied], prepend=-1))
    joint = np.zeros((len(orders), targets.bins.shape[1], units.bins.shape[1]), np.float32)
    alone = np.zeros(units.bins.shape[1])
    for number in range(BINS):
        in_bin = (units.bins == number).astype(np.float32)
        cells = table[_product(in_bin, hot, orders).astype(np.int32)]
        joint += np.add.reduceat(cells, starts, axis=1)
        alone += table[in_bin.sum(axis=0).astype(np.int64)]
    targets_alone = np.add.reduceat(table[hot.sum(axis=0)].astype(np.float64), starts)
    known = joint - alone - targets_alone[:, None]
    return np.asarray(np.maximum(known / n + np.log2(n), 0.0), np.float32)


MeasureFunction = Callable[[UnitForms, HypothesisTargets, Orders], Scores]

MEASURES: Final[Mapping[Measure, MeasureFunction]] = MappingProxyType(
    dict(zip(CENTRES, (correlation, mean_difference, auc, mutual_information), strict=True))
)
"""Each takes the units (n, U), the hypotheses (n, H) and orders (P, n) in which the hypotheses'
values are dealt to the inputs, and returns (P, H, U) float32."""


def _mutual_information_influence(unit: Column, target: Column) -> Column:
    bins = rank_bins(doubled_ranks(unit[:, None]), BINS)[:, 0]
    return mutual_information_influence(bins, target.astype(np.int64))


INFLUENCES: Final[Mapping[str, Callable[[Column, Column], Column]]] = MappingProxyType(
    {
        "correlation": correlation_influence,
        "mean-difference": mean_difference_influence,
        "auc": auc_influence,
        "mutual-information": _mutual_information_influence,
    }
)
"""Each takes a unit, (n,), and a hypothesis' values, (n,): `standard`, `bins` or else `split`; and
returns the influence of each input on the measure, (n,)."""

_POSSIBLE: Final[Mapping[str, tuple[float, float]]] = MappingProxyType(
    {
        "correlation": (-1.0, 1.0),
        "auc": (0.0, 1.0),
        "mutual-information": (0.0, float(np.log2(BINS))),
        "regression": (0.0, 1.0),
    }
)


def possible_limits(measure: str, score: float, half: float) -> tuple[float, float]:
    """Return the limits of an interval within what the measure can be."""
    least, most = _POSSIBLE.get(measure, (-np.inf, np.inf))
    return max(score - half, least), min(score + half, most)


def as_they_are(n: int) -> Orders:
    """Return the one order (1, n) that permutes nothing."""
    return np.arange(n)[None]


def _product(units: Scores, columns: NDArray[np.generic], orders: Orders) -> Scores:
    """Return (P, columns, U), the sums over the inputs of units times permuted columns."""
    dealt = columns.astype(np.float32)[orders]  # (P, n, columns)
    flat = dealt.transpose(0, 2, 1).reshape(-1, dealt.shape[1])
    return np.asarray(flat @ units).reshape(len(orders), columns.shape[1], units.shape[1])
