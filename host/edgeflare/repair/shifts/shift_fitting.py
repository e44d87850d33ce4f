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

The effect of a shift is how many inputs it makes deviate, or agree. The label that each shift gives
to each input is computed once. A deviating input counts as a gain where that label is the
original's; an agreeing input or a seed counts as a loss where it no longer is. The inputs are those
of the mixture, a third of each kind, and those sampled near the boundary without the original's
answers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from edgeflare.repair.shifts.repair_samples import Labels, Samples, together
from edgeflare.repair.shifts.shifts import STEP, Shifts
from edgeflare.repair.shifts.training_inputs import TrainingInputs, match

STRENGTHS = (0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0)
"""Standard deviations by which a net has to exceed zero."""

TURNS = 3
"""Rounds through all pairs of classes. On an int8 LeNet-5, the first alone reaches 94 % of the net
of all three."""

_LEAST_PRODUCT = 0.02
"""Least product of two classes' probabilities for a shift between them to be considered: below it,
the largest shift changes a value by less than two steps of an 8-bit output."""


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


MOST = 24
"""Steps of the largest shift that is tried. Where two classes have all the probability, a shift
changes the margin by half of itself: 24 steps reach margins of .19; nine in ten triggers of an int8
LeNet-5 have less than .09."""

SAMPLED_WEIGHT = 48.0
"""How much more the sampled inputs count than each kind of the mixture. Near the boundary, half of
the mixture deviates, but of an int8 LeNet-4's test images without a tie 1 in 25: 60 deviate, and
139 after shifts that are fitted to the mixture alone. With a weight of 12, 24, 48 and 96 it is 60,
68, 41 and 41, and the gain on the mixture is 4.7, 1.8, 0.9 and 0.4 points."""

GRID = np.array(sorted(range(-MOST, MOST + 1), key=abs)) * STEP
"""The shifts that are tried, the smallest first, so that among equals the smallest is taken."""

Real = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class WeightedInputs:
    """The inputs that shifts are fitted to: deviating, agreeing, seeds and sampled, with weights.

    Attributes:
        vectors: (k, classes) probabilities of the device.
        originals: (k,) the original's labels.
        weights: (k,) how much each counts; 1 for a trigger.
        step: quantization step of the device's outputs; 0 where they are not quantized.

    """

    vectors: Real
    originals: Labels
    weights: Real
    step: float

    def take(self, rows: NDArray[np.bool_]) -> WeightedInputs:
        """Return some of them."""
        return WeightedInputs(
            self.vectors[rows], self.originals[rows], self.weights[rows], self.step
        )


class EffectSums(NamedTuple):
    """Sums over some inputs, for each two classes (rows) and each shift of the grid (columns).

    Attributes:
        net: weights of the inputs that no longer deviate, less those of the inputs that begin to.
        spread: squared weights of the inputs that change: the variance of the net by chance.

    """

    net: Real
    spread: Real

    def choose(self, strength: float) -> NDArray[np.int64]:
        """Return the place in the grid of the best shift for each two classes; 0 is none."""
        best: NDArray[np.int64] = (self.net - strength * np.sqrt(self.spread)).argmax(axis=1)
        return best


@dataclass(frozen=True, slots=True)
class ShiftEffects:
    """The effect of each shift alone on the inputs whose two largest outputs are its two classes.

    Attributes:
        inputs: the inputs.
        pairs: (pairs, 2) every two classes that are the top two of any input, the lower first.
        pair: (k,) which row of `pairs` each input belongs to.
        gains: (k, grid) int8: 1 where the input no longer deviates, -1 where it begins to.
        mixed: (k,) bool, whether an input belongs to the mixture; the others are sampled.

    """

    inputs: WeightedInputs
    pairs: NDArray[np.int64]
    pair: NDArray[np.int64]
    gains: NDArray[np.int8]
    mixed: NDArray[np.bool_]

    def sums(self, rows: NDArray[np.bool_]) -> EffectSums:
        """Add up some of the inputs for each two classes."""
        net, spread = np.zeros((2, len(self.pairs), len(GRID)))
        gains, weights, pair = self.gains[rows], self.inputs.weights[rows], self.pair[rows]
        for at in np.unique(pair):
            there = pair == at
            changed = gains[there].astype(np.float64)
            net[at] = weights[there] @ changed
            spread[at] = weights[there] ** 2 @ np.abs(changed)
        return EffectSums(net, spread)

    @property
    def mixture_only(self) -> ShiftEffects:
        """The effects on the mixture, without the sampled inputs."""
        rows = self.mixed
        return ShiftEffects(
            self.inputs.take(rows), self.pairs, self.pair[rows], self.gains[rows], self.mixed[rows]
        )

    @property
    def ceiling(self) -> float:
        """The largest net that shifts reach on the inputs that they are fitted to.

        It is a share of the mixture. No repairer that moves the boundary between two classes by one
        amount for each two gains more on these inputs.
        """
        net = self.sums(self.mixed).net
        return float(net.max(axis=1).sum() / self.inputs.weights[self.mixed].sum())


def shift_effects(training: TrainingInputs) -> ShiftEffects:
    """Compute the effect of each shift alone on the mixture and on the sampled inputs."""
    kinds = (training.deviating, training.agreeing, training.seeds, training.sampled)
    samples = together(kinds)
    inputs = _inputs(kinds, samples)
    both = np.sort(np.stack([samples.labels, samples.seconds], axis=1), axis=1)
    pairs, pair = np.unique(both, axis=0, return_inverse=True)
    pair = pair.reshape(-1).astype(np.int64, copy=False)
    gains = np.zeros((len(samples), len(GRID)), np.int8)
    nothing = np.zeros_like(inputs.vectors)
    for at, (a, b) in enumerate(pairs.tolist()):
        rows = np.flatnonzero(pair == at)
        gains[rows] = changes_by_shift(inputs, nothing, rows, (a, b), GRID)
    mixed = np.arange(len(samples)) < len(samples) - len(training.sampled)
    return ShiftEffects(inputs, pairs, pair, gains, mixed)


def fold_rows(folds: Mapping[str, Labels]) -> Labels:
    """Return the fold of each input, in the order of `shift_effects`."""
    return np.concatenate(list(folds.values()))


def changes_by_shift(
    inputs: WeightedInputs,
    products: Real,
    rows: NDArray[np.int64],
    pair: tuple[int, int],
    more: Real,
) -> NDArray[np.int8]:
    """Return the effect of changes in the shift of two classes, computed as `Shifts` does.

    Args:
        inputs: all of them.
        products: (k, classes) products of the shifts so far and the vectors.
        rows: rows of the inputs in question.
        pair: the two classes.
        more: (n,) changes of the shift in favour of the first.

    Returns:
        (rows, n), compared with the first of the changes: 1 where an input no longer deviates,
        -1 where it begins to.

    """
    a, b = pair
    vectors, products = inputs.vectors[rows], products[rows]
    others = _rounded(vectors * (1.0 + products), inputs.step)
    others[:, [a, b]] = -1.0
    third, its_value = others.argmax(axis=1)[:, None], others.max(axis=1)[:, None]
    p_a, p_b = vectors[:, [a]], vectors[:, [b]]
    first = _rounded(p_a * (1.0 + products[:, [a]] + more * p_b), inputs.step)
    second = _rounded(p_b * (1.0 + products[:, [b]] - more * p_a), inputs.step)
    labels = np.where(first >= second, a, b)  # a is the lower of the two
    best = np.maximum(first, second)
    labels = np.where((its_value > best) | ((its_value == best) & (third < labels)), third, labels)
    right = labels == inputs.originals[rows, None]
    changes: NDArray[np.int8] = right.astype(np.int8) - right[:, :1].astype(np.int8)
    return changes


def _inputs(kinds: Sequence[Samples], samples: Samples) -> WeightedInputs:
    deviating, agreeing, seeds, sampled = kinds
    sizes = (
        np.ones(len(deviating)),
        match(deviating, agreeing),
        np.ones(len(seeds)),
        np.ones(len(sampled)),
    )
    shares = (1.0, 1.0, 1.0, SAMPLED_WEIGHT)
    weights = [
        size * (share * len(deviating) / max(float(size.sum()), 1e-12))
        for share, size in zip(shares, sizes, strict=True)
    ]
    step = 0.0 if samples.tensor.dtype == "float32" else samples.tensor.scale
    return WeightedInputs(samples.vectors, samples.originals, np.concatenate(weights), step)


def _rounded(values: Real, step: float) -> Real:
    return np.floor(values / step + 0.5) if step else values
