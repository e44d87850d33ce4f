"""The moves of shrinking that change what a failing model is given: fewer rows, plain values."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from functools import partial

import numpy as np
from numpy.typing import NDArray

from edgeflare.conform.findings.shrink_candidate import ShrinkCandidate, ShrinkContext
from edgeflare.conform.findings.shrinking_moves import ShrinkingMove
from edgeflare.conform.graphs.operator_graph import GraphValue, Values

_MOST_CHUNKS = 32
"""Parts of an operand that are set to zero one by one."""


def fewer_rows(one: ShrinkCandidate, _context: ShrinkContext) -> Iterator[ShrinkingMove]:
    """Yield moves that keep one row; and then those that keep half of the rows."""
    half = one.rows // 2
    kept = [[at] for at in range(one.rows)]
    kept += [list(range(half)), list(range(half, one.rows))] if half > 1 else []
    for rows in kept if one.rows > 1 else ():

        def made(now: ShrinkCandidate, rows: list[int] = rows) -> ShrinkCandidate:
            return ShrinkCandidate(now.draft, tuple(v[rows] for v in now.operands), len(rows))

        yield ShrinkingMove("rows", made)


def plainer_operands(one: ShrinkCandidate, context: ShrinkContext) -> Iterator[ShrinkingMove]:
    """Yield moves that make all values of an operand zero, or ones and zeros, or whole."""
    for at, value in enumerate(context.values(one.draft)):
        zero = _zero(value)
        for plain in (_zeros, _ones, _wholes):
            if not _same(plain(one.operands[at], zero), one.operands[at]):
                yield _value_move(at, ("operand", at), partial(plain, zero=zero))


def zeroed_parts(one: ShrinkCandidate, context: ShrinkContext) -> Iterator[ShrinkingMove]:
    """Yield moves that set a part of an operand's values to zero."""
    for at, value in enumerate(context.values(one.draft)):
        zero = _zero(value)
        flat = one.operands[at].ravel()
        left = np.flatnonzero(flat != zero)
        for chunk in np.array_split(left, min(len(left), _MOST_CHUNKS)) if len(left) > 1 else ():
            change = partial(_with, places=chunk, zero=zero)
            yield _value_move(at, ("part", at, int(chunk[0])), change)


def _value_move(at: int, subject: Hashable, change: Callable[[Values], Values]) -> ShrinkingMove:
    def made(now: ShrinkCandidate) -> ShrinkCandidate | None:
        operands = list(now.operands)
        operands[at] = change(operands[at])
        if _same(operands[at], now.operands[at]):
            return None
        return ShrinkCandidate(now.draft, tuple(operands), now.rows)

    return ShrinkingMove(subject, made)


def _zero(value: GraphValue) -> int:
    """Return the raw value that stands for zero."""
    return 0 if value.quantization is None else value.quantization.zero_point


def _zeros(old: Values, zero: int) -> Values:
    return np.full_like(old, zero)


def _ones(old: Values, zero: int) -> Values:
    """Return 1 above zero, raw, and 0 elsewhere."""
    high = old.dtype.type(1) if old.dtype.kind in "fb" else min(zero + 1, np.iinfo(old.dtype).max)
    return np.asarray(np.where(old > zero, high, zero), old.dtype)


def _wholes(old: Values, zero: int) -> Values:
    """Return distances from zero rounded: floats to whole numbers, others to powers of 2."""
    if old.dtype.kind == "f":
        return np.asarray(np.round(old), old.dtype)
    far = np.asarray(old, np.int64) - zero
    power = 2 ** np.floor(np.log2(np.maximum(np.abs(far), 1))).astype(np.int64)
    return np.asarray(np.where(far == 0, 0, np.sign(far) * power) + zero, old.dtype)


def _with(old: Values, places: NDArray[np.intp], zero: int) -> Values:
    changed: Values = np.array(old)
    changed.ravel()[places] = zero
    return changed


def _same(one: Values, other: Values) -> bool:
    return one.tobytes() == other.tobytes()
