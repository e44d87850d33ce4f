"""The smallest model of one operator that still fails as another does."""

from __future__ import annotations

from collections.abc import Callable, Generator, Hashable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from edgeflare.conform.findings.shrinking_moves import (
    MoveFamily,
    ShrinkCandidate,
    ShrinkContext,
    ShrinkingMove,
    default_settings,
    drawn_constants,
    fewer_operators,
    simpler_settings,
)
from edgeflare.conform.operator_graph import GraphValue, Values

_MOST_CHUNKS = 32
"""Parts of an operand that are set to zero one by one."""

MOST_RUNS = 300
"""Models that shrinking one finding may run."""

ROWS = 8
"""Rows on which smaller models are tried: a fault may show on one input, and not on the next."""

_MOST_MOVES = 40
"""Models that are run at a time: together they take hardly longer than one."""

Shrinking = Generator[list[ShrinkCandidate], list[bool], ShrinkCandidate]
"""Yields models to run, never none, is sent which of them fail with the same verdict and symptom,
and returns the smallest. So models of many findings can be run side by side."""

T = TypeVar("T")

_Asking = Generator[list[ShrinkCandidate], list[bool], T]


def shrinking(
    start: ShrinkCandidate, context: ShrinkContext, most_runs: int = MOST_RUNS
) -> Shrinking:
    """Shrink a failing model; see `Shrinking`.

    Args:
        start: fails.
        context: makes models and operands, and draws.
        most_runs: models that may be run.

    """
    state = _ShrinkState(start, most_runs)
    more = context.with_rows(start, ROWS)
    if more.rows > start.rows and (yield from state.run([more]))[0]:
        state.now = more
    for family, share in _PHASES:
        state.limit = int(share * most_runs)
        while (yield from state.improved(list(family(state.now, context)))):
            continue
    return state.now


@dataclass(slots=True)
class _ShrinkState:
    """The smallest model so far.

    Attributes:
        now: the smallest model.
        limit: runs after which the moves that have their turn end, all earlier runs included.
        runs: runs so far.
        left: drafts that were the smallest before. Parameters that follow each other could lead
            back to one.

    """

    now: ShrinkCandidate
    limit: int
    runs: int = 0
    left: set[str] = field(default_factory=set)

    def improved(self, moves: Sequence[ShrinkingMove]) -> _Asking[bool]:
        """Make as many of some moves as can be made together; return whether any was.

        Each is tried alone, and then the good ones one after the other.
        """
        tried = list(islice(self._made(moves), _MOST_MOVES))
        fails = yield from self.run([model for _, model in tried])
        good: dict[object, tuple[ShrinkingMove, ShrinkCandidate]] = {}
        for (move, model), failed in zip(tried, fails, strict=True):
            if failed:
                good.setdefault(move.subject, (move, model))
        if not good:
            return False
        (_, best), *others = good.values()
        together = list(self._joined(best, [move for move, _ in others]))
        fails = yield from self.run(together)
        last = max((at for at, failed in enumerate(fails) if failed), default=None)
        smaller = best if last is None else together[last]
        if repr(smaller.draft) != repr(self.now.draft):
            self.left.add(repr(self.now.draft))
        self.now = smaller
        return True

    def run(self, models: Sequence[ShrinkCandidate]) -> _Asking[list[bool]]:
        """Return which models still fail; those beyond the limit are not run, and do not."""
        allowed = list(models[: max(0, self.limit - self.runs)])
        self.runs += len(allowed)
        fails = (yield allowed) if allowed else []
        return [*fails, *[False] * (len(models) - len(allowed))]

    def _made(
        self, moves: Sequence[ShrinkingMove]
    ) -> Iterator[tuple[ShrinkingMove, ShrinkCandidate]]:
        for move in moves:
            model = move.made(self.now)
            if model is not None and repr(model.draft) not in self.left:
                yield move, model

    def _joined(
        self, first: ShrinkCandidate, moves: Sequence[ShrinkingMove]
    ) -> Iterator[ShrinkCandidate]:
        """Yield a model with one more of some moves, and with two, and so on."""
        model = first
        for move in moves:
            more = move.made(model)
            if more is not None and repr(more.draft) not in self.left:
                model = more
                yield model


def _fewer_rows(one: ShrinkCandidate, _context: ShrinkContext) -> Iterator[ShrinkingMove]:
    """Yield moves that keep one row; and then those that keep half of the rows."""
    half = one.rows // 2
    kept = [[at] for at in range(one.rows)]
    kept += [list(range(half)), list(range(half, one.rows))] if half > 1 else []
    for rows in kept if one.rows > 1 else ():

        def made(now: ShrinkCandidate, rows: list[int] = rows) -> ShrinkCandidate:
            return ShrinkCandidate(now.draft, tuple(v[rows] for v in now.operands), len(rows))

        yield ShrinkingMove("rows", made)


def _plainer_operands(one: ShrinkCandidate, context: ShrinkContext) -> Iterator[ShrinkingMove]:
    """Yield moves that make all values of an operand zero, or ones and zeros, or whole."""
    for at, value in enumerate(context.values(one.draft)):
        zero = _zero(value)
        for plain in (_zeros, _ones, _wholes):
            if not _same(plain(one.operands[at], zero), one.operands[at]):
                yield _value_move(at, ("operand", at), partial(plain, zero=zero))


def _zeroed_parts(one: ShrinkCandidate, context: ShrinkContext) -> Iterator[ShrinkingMove]:
    """Yield moves that set a part of an operand's values to zero."""
    for at, value in enumerate(context.values(one.draft)):
        zero = _zero(value)
        flat = one.operands[at].ravel()
        left = np.flatnonzero(flat != zero)
        for chunk in np.array_split(left, min(len(left), _MOST_CHUNKS)) if len(left) > 1 else ():
            change = partial(_with, places=chunk, zero=zero)
            yield _value_move(at, ("part", at, int(chunk[0])), change)


_PHASES: tuple[tuple[MoveFamily, float], ...] = (
    (fewer_operators, 1.0),
    (drawn_constants, 1.0),
    (default_settings, 0.3),
    (simpler_settings, 0.75),
    (_fewer_rows, 0.85),
    (_plainer_operands, 0.9),
    (_zeroed_parts, 1.0),
)
"""Moves in their order, and the share of all runs after which the next ones have their turn."""


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
