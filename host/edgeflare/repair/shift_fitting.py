"""Shifts of the boundary between each two classes, as far as the data bear them out.

Which two classes are on top is what tells triggers from agreeing inputs near the boundary:
compression moves the boundary between two classes, and each by another amount. So for each two
classes one number is fitted, their shift (`Shifts`). It is taken where what it gains (`gains`)
exceeds what it loses by more than chance would have it,

    net > strength · sqrt(sum of the squared weights of what changes),

and by the most; elsewhere the boundary stays. How strict to be is chosen on folds, looking at each
two classes alone. Where three classes meet, a shift between two moves the boundaries to
the third as well; so the shifts themselves are fitted in turns, each in view of all others, until
none changes (`_descend`).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from edgeflare.repair.repair_samples import Labels
from edgeflare.repair.shift_effects import (
    GRID,
    MOST,
    EffectSums,
    Real,
    ShiftEffects,
    WeightedInputs,
    changes_by_shift,
)
from edgeflare.repair.shifts import STEP, Shifts

STRENGTHS = (0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0)
"""Standard deviations by which a net has to differ from none."""

TURNS = 3
"""Rounds through all pairs of classes. On an int8 LeNet-5, the first alone reaches 94 % of the net
that three do."""

_REACHED = 0.02
"""The least product of two classes' probabilities at which a shift between them is looked at: below
it, the largest changes a value by less than two steps of an 8-bit output."""


@dataclass(frozen=True, slots=True)
class Fitted:
    """Shifts that were fitted.

    Attributes:
        table: (classes, classes), antisymmetric; [a, b] is in favour of a where positive.
        strength: how strict the choice was; None where no strength gained anything.

    """

    table: Real
    strength: float | None

    @property
    def shifts(self) -> Shifts:
        """What can be applied and appended."""
        return Shifts(np.rint(self.table / STEP).astype(np.int8))

    @property
    def pairs(self) -> int:
        """The number of pairs of classes whose boundary is moved."""
        return int(np.count_nonzero(self.table)) // 2


def fit(gains: ShiftEffects, folds: Labels, without: int | None = None) -> Fitted:
    """Fit the shifts; how strict to be is chosen by leaving out one fold after the other.

    Args:
        gains: of all inputs.
        folds: (k,) the fold of each.
        without: the fold that is held out altogether, or None.

    """
    strength = _strength(gains, folds, without)
    classes = gains.inputs.vectors.shape[1]
    if strength is None:
        return Fitted(np.zeros((classes, classes)), None)
    rows = np.ones(len(folds), bool) if without is None else folds != without
    by_use = gains.pairs[np.argsort(-np.bincount(gains.pair[rows], minlength=len(gains.pairs)))]
    return Fitted(_descend(gains.inputs.take(rows), by_use, strength), strength)


def _strength(gains: ShiftEffects, folds: Labels, without: int | None) -> float | None:
    """Return the strength with the largest net on folds that were left out; None if it is none."""
    parts = [gains.sums(folds == fold) for fold in np.unique(folds) if fold != without]
    whole = EffectSums(sum(part.net for part in parts), sum(part.spread for part in parts))  # type: ignore[arg-type]
    net = dict.fromkeys(STRENGTHS, 0.0)
    for part in parts:
        rest = EffectSums(whole.net - part.net, np.maximum(whole.spread - part.spread, 0.0))
        for strength in STRENGTHS:
            chosen = rest.choose(strength)
            net[strength] += float(part.net[np.arange(len(chosen)), chosen].sum())
    best = max(reversed(STRENGTHS), key=lambda strength: net[strength])
    return best if net[best] > 0.0 else None


def _descend(inputs: WeightedInputs, pairs: NDArray[np.int64], strength: float) -> Real:
    """Fit the shift of each two classes in view of all others, in turns; return the table."""
    vectors = inputs.vectors
    table = np.zeros((vectors.shape[1],) * 2)
    moved = np.zeros_like(vectors)  # the products of table and vectors
    top = np.sort(vectors, axis=1)[:, -1]
    near = [_near(vectors, top, a, b) for a, b in pairs.tolist()]
    for _ in range(TURNS):
        before = table.copy()
        for (a, b), rows in zip(pairs.tolist(), near, strict=True):
            changes = changes_by_shift(inputs, moved, rows, (a, b), GRID - table[a, b]).astype(
                np.float64
            )
            weights = inputs.weights[rows]
            score = weights @ changes - strength * np.sqrt(weights**2 @ np.abs(changes))
            more = GRID[int(score.argmax())] - table[a, b]
            if more:
                table[a, b] += more
                table[b, a] -= more
                moved[:, a] += more * vectors[:, b]
                moved[:, b] -= more * vectors[:, a]
        if (table == before).all():
            break
    return table


def _near(vectors: Real, top: Real, a: int, b: int) -> NDArray[np.int64]:
    """Return where a shift between two classes may change the label."""
    both = vectors[:, a] * vectors[:, b]
    best = np.maximum(vectors[:, a], vectors[:, b])
    # No shift changes a value by more than a quarter of itself, and both values may change.
    near = (both > _REACHED) & (best > top - MOST * STEP / 2)
    return np.flatnonzero(near)
