"""Whether a model's classes, outputs or values are another one's in another order.

An order that is fitted to some answers always fits them better than none. So it is fitted to three
quarters of the seeds and judged on the fourth, each quarter in turn.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, TypeVar

import numpy as np
from numpy.typing import NDArray

from edgeflare.core.answer import NO_CONFUSION, Confusion
from edgeflare.core.task import Decoder
from edgeflare.core.tensor import RawBatch, Tensor, dequantize, pack_rows, unpack_rows, without_ones
from edgeflare.statistics.binomial import sign_test
from edgeflare.statistics.standard_forms import doubled_ranks, standardized
from edgeflare.tasks.value_decoder import ValueAnswer

_Scores = NDArray[np.float64]
"""A score for each class, (seeds, classes)."""

_LEAST_LIKENESS: Final = 0.3
"""Likeness of two classes from which on they may be one; see `_by_likeness`."""

_LEAST_MOVED: Final = 2
"""Fewer classes in another place are no other order, but a class that is mistaken for another."""

_Image = Mapping[int, int]
"""Class of the second model by each known class of the first."""


def class_order(
    confusions: Sequence[Confusion], scores: tuple[_Scores, _Scores] | None = None
) -> ConfirmedOrder | None:
    """Return the order in which a second model has the classes of a first one; None if it is none.

    Two classes match if each is most like the other, by how often they are given in the same places
    and by the correlation of their scores. Where that confirms nothing, a common offset of all
    classes is tried, such as that of a background class, which needs no class to be seen twice.
    Only classes that a model decides are matched.

    Args:
        confusions: `Confusion` of each seed; empty where a model failed.
        scores: scores of the first and the second model on the same seeds.

    """
    every = np.concatenate([NO_CONFUSION, *confusions])
    each = np.repeat(np.arange(len(confusions)), list(map(len, confusions)))
    classes = (every[:, :2] >= 0).all(axis=1)
    rows = every[classes]
    known, seed = np.unique(each[classes], return_inverse=True)
    if len(set(seed[rows[:, 0] != rows[:, 1]].tolist())) < LEAST_CHANGED:
        return None
    pairs = np.split(rows, np.flatnonzero(np.diff(seed)) + 1)
    by_match = _by_likeness(
        rows, seed, None if scores is None else [score[known] for score in scores]
    )
    for fit in (by_match, _by_offset(rows, seed)):
        judged = _held_out(len(pairs), fit, lambda image, at: _agreement(image, pairs[at]))
        moved = _moved(fit(np.ones(len(pairs), np.bool_)), rows)
        if moved and (order := _confirmed(judged, moved)):
            return order
    return None


def _by_likeness(
    rows: Confusion, seed: NDArray[np.int64], scores: Sequence[_Scores] | None
) -> Callable[[NDArray[np.bool_]], _Image]:
    """Match the classes that are decided, each with the one that is most like it.

    Their likeness is the share of places that they have in common, the cosine of two sets. The rank
    correlation of their scores is added, which knows more of classes that few seeds are.
    """
    mine, first = np.unique(rows[:, 0], return_inverse=True)
    its, second = np.unique(rows[:, 1], return_inverse=True)
    ranks = (
        None
        if scores is None
        else (doubled_ranks(scores[0][:, mine]), doubled_ranks(scores[1][:, its]))
    )

    def fit(seeds: NDArray[np.bool_]) -> _Image:
        used = seeds[seed]
        shared = np.zeros((len(mine), len(its)))
        np.add.at(shared, (first[used], second[used]), rows[used, 2])
        sizes = np.sqrt(shared.sum(axis=1))[:, None] * np.sqrt(shared.sum(axis=0))
        likeness = shared / np.maximum(sizes, 1.0)
        if ranks is not None:
            one, other = (standardized(each[seeds].astype(np.float64)) for each in ranks)
            likeness += one.T @ other / max(1, len(one))
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
    if len(pairs) == 1:  # as of an image with one class
        ((label, other, count),) = pairs.tolist()
        if label not in image or not count:
            return None
        return float(label == other), float(image[label] == other)
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


_MOST_VALUES = 1024
"""Values of an answer up to which their order is looked for: each is compared with each."""


def value_order(
    first: Sequence[ValueAnswer], second: Sequence[ValueAnswer]
) -> ConfirmedOrder | None:
    """Return the order in which a second model has the values of a first one; None if it is none.

    Two values are one if each is nearest to the other over the seeds. Models agree on a seed if
    they do not deviate.

    Args:
        first: the first model's answers to the seeds, none of which failed.
        second: the second model's answers.

    """
    size = first[0].values.shape[1]
    agreeing = [not answer.differs(other) for answer, other in zip(first, second, strict=True)]
    if not 2 <= size <= _MOST_VALUES or agreeing.count(False) < LEAST_CHANGED:
        return None
    mine, its = (
        np.stack([answer.values for answer in arm]).astype(np.float64) for arm in (first, second)
    )

    def fit(seeds: NDArray[np.bool_]) -> NDArray[np.int64]:
        """Return from which value of the second model each of the first one comes: (values,)."""
        a, b = (values[seeds].reshape(-1, size) for values in (mine, its))
        apart = (a**2).sum(axis=0)[:, None] + (b**2).sum(axis=0) - 2.0 * a.T @ b
        nearest, back = apart.argmin(axis=1), apart.argmin(axis=0)
        mutual = {i: int(j) for i, j in enumerate(nearest) if back[j] == i}
        # The others stay where they are, or fill what is left.
        order = {at: at for at in range(size) if at not in mutual and at not in mutual.values()}
        order |= mutual
        left = iter(sorted(set(range(size)).difference(order.values())))
        return np.array([order[at] if at in order else next(left) for at in range(size)])

    def agreement(order: NDArray[np.int64], at: int) -> tuple[float, float]:
        reordered = replace(second[at], values=second[at].values[:, order])
        return float(agreeing[at]), float(not first[at].differs(reordered))

    order = fit(np.ones(len(first), np.bool_)).tolist()
    moved = [(i, j) for i, j in enumerate(order) if i != j]
    return _confirmed(_held_out(len(first), fit, agreement), moved) if moved else None


def output_order(
    decoder: Decoder, rows: NDArray[np.generic], other: Decoder, its_rows: NDArray[np.generic]
) -> ConfirmedOrder | None:
    """Return which other outputs of a first model a second one has in the place of those it reads.

    Outputs of equal shape are matched by their values, without the mean of each over the seeds.
    Then the first model's outputs are read in that order, and models agree on a seed if their
    answers do not differ.

    Args:
        decoder: decoder of the first model.
        rows: (seeds, *row), its raw outputs on the seeds, of which none failed.
        other: decoder of the second model.
        its_rows: the second model's on the same seeds.

    """
    places = _exchangeable(decoder, other)
    if not places or len(rows) < LEAST_CHANGED:
        return None
    arrays, theirs = unpack_rows(decoder.outputs, rows), unpack_rows(other.outputs, its_rows)

    def likeness(mine: int, its: int) -> float:
        first = _centred(arrays[mine], decoder.outputs[mine])
        second = _centred(theirs[its], other.outputs[its])
        lengths = float(np.linalg.norm(first) * np.linalg.norm(second))
        return float((first * second).sum()) / lengths if lengths > 0.0 else 0.0

    found = {
        at: max(_like(decoder, at), key=lambda order, its=its: likeness(order, its))  # type: ignore[misc]
        for at, its in places.items()
    }
    taken = [found.get(at, at) for at in range(len(arrays))]
    moved = sorted((found_at, at) for at, found_at in found.items() if at != found_at)
    if not moved or len(set(found.values())) < len(found):
        return None
    answers, read = list(other.read(RawBatch(its_rows))), list(decoder.read(RawBatch(rows)))
    reread = list(decoder.read(RawBatch(pack_rows(decoder.outputs, [arrays[at] for at in taken]))))
    judged = [
        (float(not answer.differs(its)), float(not another.differs(its)))
        for answer, another, its in zip(read, reread, answers, strict=True)
    ]
    return _confirmed(judged, moved)


def _exchangeable(decoder: Decoder, other: Decoder) -> Mapping[int, int]:
    """Return the outputs that are read and have others like them, and the other model's of each."""
    if len(decoder.read_at) != len(other.read_at):
        return {}
    return {
        at: its
        for at, its in zip(decoder.read_at, other.read_at, strict=True)
        if len(_like(decoder, at)) > 1
        and np.prod(decoder.outputs[at].shape) == np.prod(other.outputs[its].shape)
    }


def _like(decoder: Decoder, at: int) -> list[int]:
    """Return the outputs that could stand in the place of one: of its shape, type and step."""
    mine = decoder.outputs[at]
    return [
        place
        for place, tensor in enumerate(decoder.outputs)
        if without_ones(tensor.shape) == without_ones(mine.shape)
        and (tensor.dtype, tensor.scale, tensor.zero_point)
        == (mine.dtype, mine.scale, mine.zero_point)
    ]


def _centred(raw: NDArray[np.generic], tensor: Tensor) -> NDArray[np.float64]:
    values = np.nan_to_num(dequantize(raw, tensor)).reshape(len(raw), -1)
    centred: NDArray[np.float64] = values - values.mean(axis=0)
    return centred


_Fitted = TypeVar("_Fitted")

_CHANCE: Final = 0.001
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


def _held_out(
    seeds: int,
    fit: Callable[[NDArray[np.bool_]], _Fitted],
    agreement: Callable[[_Fitted, int], tuple[float, float] | None],
) -> list[tuple[float, float]]:
    """Return how two models agree on each seed, as numbered and in an order fitted without it.

    Args:
        seeds: how many there are.
        fit: returns the order by some of the seeds, (seeds,).
        agreement: returns the agreement on a seed as numbered and in the order, both from 0 to 1;
            None where the order says nothing about it.

    """
    places = np.arange(seeds) * _GOLDEN
    quarter = ((places - np.floor(places)) * _FOLDS).astype(np.int64)  # 0 to 3
    judged = []
    for fold in range(_FOLDS):
        order = fit(quarter != fold)
        each = (agreement(order, int(at)) for at in np.flatnonzero(quarter == fold))
        judged += [known for known in each if known is not None]
    return judged


def _confirmed(
    judged: Sequence[tuple[float, float]], moved: Sequence[tuple[int, int]]
) -> ConfirmedOrder | None:
    """Return an order if it is certain: much better than none, and not by chance.

    Args:
        judged: the agreement on each seed, as numbered and in the order.
        moved: what the order moves.

    """
    better = sum(after > before for before, after in judged)
    worse = sum(after < before for before, after in judged)
    if not moved or sign_test(better, worse) >= _CHANCE:
        return None
    before, after = (float(share) for share in np.mean(judged, axis=0))
    if 1.0 - after > _LEFT * (1.0 - before):
        return None
    return ConfirmedOrder(tuple(moved), before, after, len(judged))
