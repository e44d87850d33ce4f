"""When another order of classes or outputs is certain: the test by which all of them are held.

An order that is fitted to some answers always fits them better than none. So it is fitted to three
quarters of the seeds and judged on the fourth, each quarter in turn.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, TypeVar

import numpy as np
from numpy.typing import NDArray

from edgeflare.run.sign_test import sign_test

Fitted = TypeVar("Fitted")

CHANCE: Final = 0.001
"""Greatest p of the sign test. So 11 seeds at least have to agree in the other order alone."""

LEAST_CHANGED: Final = 11
"""Seeds that have to differ for any order to pass the test: 2 * .5 ** 11 < .001."""

_LEFT: Final = 0.5
"""Greatest share of the disagreement that may be left in the other order. A broken model can gain
a little by another order; a model that is in another order agrees in it."""

_FOLDS: Final = 4

_GOLDEN: Final = 0.6180339887498949
"""The seeds are given to the quarters by this fraction, so that no quarter gets all the seeds of a
class where a file has its classes in turn."""


@dataclass(frozen=True, slots=True)
class ConfirmedOrder:
    """Another order, which is certain.

    Attributes:
        moved: what is elsewhere: its position or class in the first model, then in the second.
        before: share of the seeds' places on which the two agree as they are numbered.
        after: likewise in the other order, fitted without the seed that it is judged on.
        seeds: how many seeds that was judged on.

    """

    moved: tuple[tuple[int, int], ...]
    before: float
    after: float
    seeds: int


def quarters(seeds: int) -> NDArray[np.int64]:
    """Return in which quarter each seed is judged: (seeds,), 0 to 3."""
    places = np.arange(seeds) * _GOLDEN
    return np.asarray((places - np.floor(places)) * _FOLDS, np.int64)


def held_out(
    seeds: int,
    fit: Callable[[NDArray[np.bool_]], Fitted],
    agreement: Callable[[Fitted, int], tuple[float, float] | None],
) -> list[tuple[float, float]]:
    """Return how two models agree on each seed, as numbered and in an order fitted without it.

    Args:
        seeds: how many there are.
        fit: returns the order by some of the seeds, (seeds,).
        agreement: of a seed, both from 0 to 1; None where the order says nothing about it.

    """
    quarter = quarters(seeds)
    judged = []
    for fold in range(_FOLDS):
        order = fit(quarter != fold)
        each = (agreement(order, int(at)) for at in np.flatnonzero(quarter == fold))
        judged += [one for one in each if one is not None]
    return judged


def confirmed(
    judged: Sequence[tuple[float, float]], moved: Sequence[tuple[int, int]]
) -> ConfirmedOrder | None:
    """Return an order if it is certain: much better than none, and not by chance.

    Args:
        judged: the agreement on each seed, as numbered and in the order.
        moved: what the order moves.

    """
    better = sum(after > before for before, after in judged)
    worse = sum(after < before for before, after in judged)
    if not moved or sign_test(better, worse) >= CHANCE:
        return None
    before, after = (float(one) for one in np.mean(judged, axis=0))
    if 1.0 - after > _LEFT * (1.0 - before):
        return None
    return ConfirmedOrder(tuple(moved), before, after, len(judged))
