"""Fit shifts of the boundary between each two classes, where the inputs give evidence for one.

Triggers and agreeing inputs near the boundary differ in which two classes have the largest outputs:
compression moves each boundary between two classes by another amount. So for each two classes one
number is fitted, their shift (`Shifts`). Of all shifts, the one with the largest net effect
(`ShiftEffects`) is taken, if that is more than chance explains,

    net > strength · sqrt(sum of the squared weights of what changes);

elsewhere the boundary stays. The strength is chosen by cross-validation over the folds, which looks
at each two classes alone. Where three classes meet, a shift between two of them also moves the
boundaries to the third. So the shifts themselves are fitted by coordinate descent: each in turn,
with all others held, until none changes (`_descend`).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from edgeflare.repair.shifts.repair_samples import Labels
from edgeflare.repair.shifts.shift_effects import (
    GRID,
    MOST,
    EffectSums,
    Real,
    ShiftEffects,
    WeightedInputs,
    changes_by_shift,
)
from edgeflare.repair.shifts.shifts import STEP, Shifts

STRENGTHS = (0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0)
"""Standard deviations by which a net has to exceed zero."""

TURNS = 3
"""Rounds through all pairs of classes. On an int8 LeNet-5, the first alone reaches 94 % of the net
of all three."""

_LEAST_PRODUCT = 0.02
"""Of two classes' probabilities, for a shift between them to be considered: below it, the largest
shift changes a value by less than two steps of an 8-bit output."""


@dataclass(frozen=True, slots=True)
class Fitted:
    """Shifts that were fitted.

    Attributes:
        table: (classes, classes), antisymmetric; [a, b] is in favour of a where positive.
        strength: the strength that was chosen; None where no strength gained anything.

    """

    table: Real
    strength: float | None

    @property
    def shifts(self) -> Shifts:
        """The table in whole steps, which can be applied and appended to a model."""
        return Shifts(np.rint(self.table / STEP).astype(np.int8))

    @property
    def pairs(self) -> int:
        """The number of pairs of classes whose boundary is moved."""
        return int(np.count_nonzero(self.table)) // 2


def fit(effects: ShiftEffects, folds: Labels, without: int | None = None) -> Fitted:
    """Fit the shifts; their strength is chosen by leaving out one fold after the other.

    Args:
        effects: what each shift does to each input.
        folds: (k,) the fold of each.
        without: the fold that is held out altogether, or None.

    """
    strength = _strength(effects, folds, without)
    classes = effects.inputs.vectors.shape[1]
    if strength is None:
        return Fitted(np.zeros((classes, classes)), None)
    rows = np.ones(len(folds), bool) if without is None else folds != without
    uses = np.bincount(effects.pair[rows], minlength=len(effects.pairs))
    by_use = effects.pairs[np.argsort(-uses)]
    return Fitted(_descend(effects.inputs.take(rows), by_use, strength), strength)


def _strength(effects: ShiftEffects, folds: Labels, without: int | None) -> float | None:
    """Return the strength with the largest net on folds that were left out; None if it is none."""
    parts = [effects.sums(folds == fold) for fold in np.unique(folds) if fold != without]
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
    """Fit the shift of each two classes in turn, with all others held; return the table."""
    vectors = inputs.vectors
    table = np.zeros((vectors.shape[1],) * 2)
    moved = np.zeros_like(vectors)  # the products of table and vectors
    top = np.sort(vectors, axis=1)[:, -1]
    affected = [_affected(vectors, top, a, b) for a, b in pairs.tolist()]
    for _ in range(TURNS):
        before = table.copy()
        for (a, b), rows in zip(pairs.tolist(), affected, strict=True):
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


def _affected(vectors: Real, top: Real, a: int, b: int) -> NDArray[np.int64]:
    """Return where a shift between two classes may change the label."""
    both = vectors[:, a] * vectors[:, b]
    best = np.maximum(vectors[:, a], vectors[:, b])
    # No shift changes a value by more than a quarter of itself, and both values may change.
    affected = (both > _LEAST_PRODUCT) & (best > top - MOST * STEP / 2)
    return np.flatnonzero(affected)
