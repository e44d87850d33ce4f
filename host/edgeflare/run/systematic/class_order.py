"""Whether a model's classes are another one's in another order."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from edgeflare.core.answer import Confusion
from edgeflare.run.systematic.confirmed_order import (
    LEAST_CHANGED,
    ConfirmedOrder,
    confirmed,
    held_out,
)

Scores = NDArray[np.float64]
"""A score for each class, (seeds, classes)."""

_LEAST_LIKENESS: Final = 0.3
"""Likeness of two classes from which on they may be one; see `_by_likeness`."""

_LEAST_MOVED: Final = 2
"""Fewer classes in another place are no other order, but a class that is mistaken for another."""

_Image = Mapping[int, int]
"""Of each class of the first model that is known, the class of the second."""


def class_order(
    confusions: Sequence[Confusion], scores: tuple[Scores, Scores] | None = None
) -> ConfirmedOrder | None:
    """Return the order in which a second model has the classes of a first one; None if it is none.

    Two classes match if each is most like the other, by how often they are given in the same places
    and by the correlation of their scores. Where that confirms nothing, a common offset of all
    classes is tried, such as that of a background class, which needs no class to be seen twice.
    Only classes that a model decides are matched.

    Args:
        confusions: of each seed; empty where a model failed.
        scores: of the first and the second model on the same seeds.

    """
    known = [at for at, one in enumerate(confusions) if (one[:, :2] >= 0).all(axis=1).any()]
    pairs = [confusions[at][(confusions[at][:, :2] >= 0).all(axis=1)] for at in known]
    if sum(bool((one[:, 0] != one[:, 1]).any()) for one in pairs) < LEAST_CHANGED:
        return None
    rows = np.concatenate(pairs)
    seed = np.repeat(np.arange(len(pairs)), [len(one) for one in pairs])
    by_match = _by_likeness(rows, seed, None if scores is None else [one[known] for one in scores])
    for fit in (by_match, _by_offset(rows, seed)):
        judged = held_out(len(pairs), fit, lambda image, at: _agreement(image, pairs[at]))
        moved = _moved(fit(np.ones(len(pairs), np.bool_)), rows)
        if moved and (order := confirmed(judged, moved)):
            return order
    return None


def _by_likeness(
    rows: Confusion, seed: NDArray[np.int64], scores: Sequence[Scores] | None
) -> Callable[[NDArray[np.bool_]], _Image]:
    """Match the classes that are decided, each with the one that is most like it.

    Their likeness is the share of places that they have in common, the cosine of two sets. The rank
    correlation of their scores is added, which knows more of classes that few seeds are.
    """
    mine, first = np.unique(rows[:, 0], return_inverse=True)
    its, second = np.unique(rows[:, 1], return_inverse=True)
    ranks = None if scores is None else (_ranks(scores[0][:, mine]), _ranks(scores[1][:, its]))

    def fit(seeds: NDArray[np.bool_]) -> _Image:
        used = seeds[seed]
        shared = np.zeros((len(mine), len(its)))
        np.add.at(shared, (first[used], second[used]), rows[used, 2])
        sizes = np.sqrt(shared.sum(axis=1))[:, None] * np.sqrt(shared.sum(axis=0))
        likeness = shared / np.maximum(sizes, 1.0)
        if ranks is not None:
            one, other = (_standardized(each[seeds]) for each in ranks)
            likeness += one.T @ other
        best, back = likeness.argmax(axis=1), likeness.argmax(axis=0)
        return {
            int(mine[i]): int(its[j])
            for i, j in enumerate(best)
            if back[j] == i and likeness[i, j] > _LEAST_LIKENESS
        }

    return fit


def _by_offset(rows: Confusion, seed: NDArray[np.int64]) -> Callable[[NDArray[np.bool_]], _Image]:
    """Move all classes by the commonest difference of the two models' classes."""

    def fit(seeds: NDArray[np.bool_]) -> _Image:
        used = rows[seeds[seed]]
        offsets, inverse = np.unique(used[:, 1] - used[:, 0], return_inverse=True)
        if not len(offsets):
            return {}
        offset = int(offsets[np.bincount(inverse, weights=used[:, 2]).argmax()])
        return {label: label + offset for label in np.unique(rows[:, 0]).tolist()}

    return fit


def _agreement(image: _Image, pairs: Confusion) -> tuple[float, float] | None:
    """Return the shares of a seed's places on which two models agree, as numbered and mapped."""
    known = np.array([label in image for label in pairs[:, 0].tolist()])
    total = pairs[known, 2].sum()
    if not total:
        return None
    mapped = np.array([image[label] for label in pairs[known, 0].tolist()])
    as_numbered = pairs[known, 2][pairs[known, 0] == pairs[known, 1]].sum()
    in_order = pairs[known, 2][mapped == pairs[known, 1]].sum()
    return float(as_numbered / total), float(in_order / total)


def _moved(image: _Image, rows: Confusion) -> list[tuple[int, int]]:
    """Return the classes that are elsewhere, if they are an order and no mere confusion.

    A class is elsewhere if the second model gives that class in most of its places. The class that
    it is elsewhere in must not be in its own place too, as where a model mistakes one for the
    other.
    """
    sizes: dict[int, int] = {}
    there: dict[tuple[int, int], int] = {}
    for first, second, count in rows.tolist():
        sizes[first] = sizes.get(first, 0) + count
        there[first, second] = there.get((first, second), 0) + count
    moved = [
        (first, second)
        for first, second in sorted(image.items())
        if first != second and 2 * there.get((first, second), 0) > sizes[first]
    ]
    stays = any(2 * there.get((to, to), 0) > sizes.get(to, 0) for _, to in moved)
    return [] if stays or len(moved) < _LEAST_MOVED else moved


def _ranks(scores: Scores) -> Scores:
    """Return the rank of each seed in each class, equal scores having one: (seeds, classes)."""
    ranks = np.empty_like(scores)
    for at, column in enumerate(scores.T):
        _, inverse, counts = np.unique(column, return_inverse=True, return_counts=True)
        ranks[:, at] = (np.cumsum(counts) - (counts - 1) / 2)[inverse]
    return ranks


def _standardized(columns: Scores) -> Scores:
    """Return columns of mean 0 and length 1; zeros where they are constant."""
    centred = columns - columns.mean(axis=0)
    lengths = np.linalg.norm(centred, axis=0)
    standardized: Scores = centred / np.where(lengths > 0.0, lengths, np.inf)
    return standardized
