"""Whether a model's outputs, or the values of one, are another model's in another order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from edgeflare.core.task import Decoder
from edgeflare.core.tensor import RawBatch, Tensor, dequantize, pack_rows, unpack_rows, without_ones
from edgeflare.run.systematic.confirmed_order import (
    LEAST_CHANGED,
    ConfirmedOrder,
    confirmed,
    held_out,
)
from edgeflare.tasks.value_decoder import ValueAnswer

MOST_VALUES = 1024
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
    agreeing = [not one.differs(other) for one, other in zip(first, second, strict=True)]
    if not 2 <= size <= MOST_VALUES or agreeing.count(False) < LEAST_CHANGED:
        return None
    mine, its = (
        np.stack([one.values for one in arm]).astype(np.float64) for arm in (first, second)
    )

    def fit(seeds: NDArray[np.bool_]) -> NDArray[np.int64]:
        """Return from which value of the second model each of the first one comes: (values,)."""
        a, b = (one[seeds].reshape(-1, size) for one in (mine, its))
        apart = (a**2).sum(axis=0)[:, None] + (b**2).sum(axis=0) - 2.0 * a.T @ b
        return _completed(_mutual(-apart), size)

    def agreement(order: NDArray[np.int64], at: int) -> tuple[float, float]:
        reordered = replace(second[at], values=second[at].values[:, order])
        return float(agreeing[at]), float(not first[at].differs(reordered))

    order = fit(np.ones(len(first), np.bool_)).tolist()
    moved = [(i, j) for i, j in enumerate(order) if i != j]
    return confirmed(held_out(len(first), fit, agreement), moved) if moved else None


def output_order(
    decoder: Decoder, rows: NDArray[np.generic], other: Decoder, its_rows: NDArray[np.generic]
) -> ConfirmedOrder | None:
    """Return which other outputs of a first model a second one has in the place of those it reads.

    Outputs of equal shape are matched by their values, without the mean of each over the seeds.
    Then the first model's outputs are read in that order, and models agree on a seed if their
    answers do not differ.

    Args:
        decoder: of the first model.
        rows: (seeds, *row), its raw outputs on the seeds, of which none failed.
        other: of the second model.
        its_rows: the second model's on the same seeds.

    """
    places = _exchangeable(decoder, other)
    if not places or len(rows) < LEAST_CHANGED:
        return None
    arrays, theirs = unpack_rows(decoder.outputs, rows), unpack_rows(other.outputs, its_rows)

    def likeness(mine: int, its: int) -> float:
        return _correlation(
            _centred(arrays[mine], decoder.outputs[mine]), _centred(theirs[its], other.outputs[its])
        )

    found = {
        at: max(_like(decoder, at), key=lambda one, its=its: likeness(one, its))  # type: ignore[misc]
        for at, its in places.items()
    }
    taken = [found.get(at, at) for at in range(len(arrays))]
    moved = sorted((one, at) for at, one in found.items() if at != one)
    if not moved or len(set(found.values())) < len(found):
        return None
    answers, read = list(other.read(RawBatch(its_rows))), list(decoder.read(RawBatch(rows)))
    reread = list(decoder.read(RawBatch(pack_rows(decoder.outputs, [arrays[at] for at in taken]))))
    judged = [
        (float(not one.differs(its)), float(not another.differs(its)))
        for one, another, its in zip(read, reread, answers, strict=True)
    ]
    return confirmed(judged, moved)


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


def _correlation(first: NDArray[np.float64], second: NDArray[np.float64]) -> float:
    """Return the correlation of two outputs over all seeds and values; 0 where one is constant."""
    lengths = float(np.linalg.norm(first) * np.linalg.norm(second))
    return float((first * second).sum()) / lengths if lengths > 0.0 else 0.0


def _mutual(likeness: NDArray[np.float64]) -> dict[int, int]:
    best, back = likeness.argmax(axis=1), likeness.argmax(axis=0)
    return {i: int(j) for i, j in enumerate(best) if back[j] == i}


def _completed(known: Mapping[int, int], size: int) -> NDArray[np.int64]:
    """Return an order of all places: the others stay where they are, or fill what is left."""
    order = {at: at for at in range(size) if at not in known and at not in known.values()}
    order |= known
    left = iter(sorted(set(range(size)).difference(order.values())))
    return np.array([order[at] if at in order else next(left) for at in range(size)])
