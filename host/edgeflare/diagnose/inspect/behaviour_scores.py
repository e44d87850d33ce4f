"""The scores of all units under one behaviour, and what chance gives the best of them.

Of all units together it is how well a sparse logistic regression on one half of the inputs
foretells the other.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import log, sqrt
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from edgeflare.diagnose.inspect.behaviour_block import BehaviourBlock
from edgeflare.diagnose.inspect.unit_measures import (
    CENTRES,
    INFLUENCES,
    MEASURES,
    HypothesisTargets,
    Measure,
    Orders,
    as_they_are,
    hypothesis_targets,
    unit_forms,
)
from edgeflare.errors import UserError
from edgeflare.statistics.influence import auc_influence, half_width
from edgeflare.statistics.standard_forms import doubled_ranks

LEVEL: Final = 0.999
"""Part of the permutations whose best score is below the level."""

_ROUNDING = 1e-9
"""Difference of equal scores that were computed in another order, at most."""

UNITS_AT_ONCE, ORDERS_AT_ONCE = 1024, 40
"""What is computed together; a few tens of MB with every hypothesis of ours."""

Matrix = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Halves:
    """The hypotheses on both halves, only those that vary; and how to permute the held-out one.

    Attributes:
        chosen: on the half to choose units on.
        held_out: on the other.
        groups: (n,) of the inputs held out.
        orders: (P, n) of the inputs held out, from `group_permutations`.

    """

    chosen: HypothesisTargets
    held_out: HypothesisTargets
    groups: NDArray[np.int64]
    orders: Orders


@dataclass(frozen=True, slots=True)
class FoundScore:
    """A score on the held-out half.

    Attributes:
        measure: name of the measure.
        hypothesis: index among those that vary.
        unit: index among all units; None for the regression.
        score: the score's value.
        half_width: half of what its 95 % interval spans.
        beyond: whether it reaches the level on the side on which the unit was chosen.

    """

    measure: Measure
    hypothesis: int
    unit: int | None
    score: float
    half_width: float
    beyond: bool


def halves_of(
    chosen: BehaviourBlock, held_out: BehaviourBlock, varies: NDArray[np.bool_], orders: Orders
) -> Halves:
    """Return the hypotheses that vary, on both halves."""
    targets = [hypothesis_targets(half.hypotheses[:, varies]) for half in (chosen, held_out)]
    return Halves(targets[0], targets[1], held_out.groups, orders)


def found_scores(
    chosen: Matrix, held_out: Matrix, halves: Halves, generator: int
) -> tuple[list[FoundScore], Mapping[str, float]]:
    """Return the best unit's score for each measure and hypothesis, and the level of each measure.

    Args:
        chosen: (m, U) float32, the behaviour on the half to choose units on.
        held_out: (n, U) float32, on the other.
        halves: the hypotheses.
        generator: seeds the regressions.

    """
    found, levels = [], permuted_levels(held_out, halves)
    for measure, centre in CENTRES.items():
        on_chosen = scores(measure, chosen, halves.chosen)
        for hypothesis, row in enumerate(on_chosen - centre):
            unit = int(np.abs(row).argmax())
            score, half = scored(measure, held_out[:, unit], halves, hypothesis)
            side = 1.0 if row[unit] >= 0.0 else -1.0
            beyond = is_beyond(side * (score - centre), levels[measure] - centre)
            found.append(FoundScore(measure, hypothesis, unit, score, half, beyond))
    regressed, levels[REGRESSION] = _regressed(chosen, held_out, halves, generator)
    return found + regressed, levels


def scores(measure: Measure, values: Matrix, targets: HypothesisTargets) -> Matrix:
    """Return (H, U) float32, the scores of all units on one half."""
    order = as_they_are(len(values))
    parts = [
        MEASURES[measure](unit_forms(values[:, units]), targets, order)[0]
        for units in _pieces(values.shape[1], UNITS_AT_ONCE)
    ]
    return np.concatenate(parts, axis=1)


def scored(measure: Measure, unit: Matrix, halves: Halves, hypothesis: int) -> tuple[float, float]:
    """Return one unit's score on the held-out half and half the width of its interval.

    Args:
        measure: name of the measure.
        unit: (n,), the behaviour of the unit on the held-out half.
        halves: the hypotheses.
        hypothesis: index of the one that the unit is held against.

    """
    targets = halves.held_out
    form = {"correlation": targets.standard, "mutual-information": targets.bins}
    column = form.get(measure, targets.split)[:, hypothesis].astype(np.float64)
    influence = INFLUENCES[measure](unit.astype(np.float64), column)
    score = float(scores(measure, unit[:, None], targets)[hypothesis, 0])
    return score, half_width(influence, halves.groups)


def permuted_levels(held_out: Matrix, halves: Halves) -> dict[str, float]:
    """Return what the best score of all units and hypotheses reaches by chance, by measure."""
    best = {measure: np.zeros(len(halves.orders)) for measure in MEASURES}
    for units in _pieces(held_out.shape[1], UNITS_AT_ONCE):
        forms = unit_forms(held_out[:, units])
        for some in _pieces(len(halves.orders), ORDERS_AT_ONCE):
            for measure, compute in MEASURES.items():
                made = compute(forms, halves.held_out, halves.orders[some])
                extreme = np.maximum(
                    made.max(axis=(1, 2)) - CENTRES[measure],
                    CENTRES[measure] - made.min(axis=(1, 2)),
                )
                best[measure][some] = np.maximum(best[measure][some], extreme)
    return {measure: level_of(extremes) + CENTRES[measure] for measure, extremes in best.items()}


def is_beyond(score: float, level: float) -> bool:
    """Whether a score is beyond a level; one that is the level itself is what chance gives."""
    return score > level + _ROUNDING


def level_of(extremes: NDArray[np.float64]) -> float:
    """Return the level, given the best score of each permutation."""
    return float(np.quantile(extremes, LEVEL, method="higher"))


def _regressed(
    chosen: Matrix, held_out: Matrix, halves: Halves, generator: int
) -> tuple[list[FoundScore], float]:
    spread = chosen.std(axis=0)
    varies = (chosen.max(axis=0) > chosen.min(axis=0)) & (spread > 0.0)  # which may underflow
    divisor = np.where(varies, spread, np.inf)
    one, other = ((half - chosen.mean(axis=0)) / divisor for half in (chosen, held_out))
    split = halves.held_out.split
    odds = np.stack(
        [foretold(one, column, other, generator) for column in halves.chosen.split.T],
        axis=1,
    )
    level = level_of(np.abs(foretold_aucs(odds, split, halves.orders) - 0.5).max(axis=1)) + 0.5
    aucs = foretold_aucs(odds, split, as_they_are(len(split)))[0]
    widths = [
        half_width(auc_influence(odds[:, h], split[:, h].astype(np.float64)), halves.groups)
        for h in range(len(aucs))
    ]
    return [
        FoundScore(REGRESSION, h, None, float(auc), widths[h], is_beyond(float(auc), level))
        for h, auc in enumerate(aucs)
    ], level


def _pieces(count: int, size: int) -> Iterator[slice]:
    for begin in range(0, count, size):
        yield slice(begin, min(begin + size, count))


REGRESSION: Final = "regression"
"""The name of this measure; its value is an AUC."""

OF_UNIVERSAL_PENALTY: Final = 0.5
"""The penalty over the one that keeps all weights at 0 where no unit has anything to do with it. By
half of that a few units come in by chance, which the other half uncovers; the whole of it leaves
signals out that are spread over many units, which is what healthy files have."""


def require_sparse_regression() -> None:
    """Refuse to go on without scikit-learn."""
    try:
        import sklearn  # noqa: F401, PLC0415 - an extra, and slow to import
    except ImportError:
        raise UserError(
            "scikit-learn is not installed, which fits the regression over all units: "
            "pip install 'edgeflare[whitebox]'"
        ) from None


def foretold(
    chosen: NDArray[np.float32],
    split: NDArray[np.bool_],
    held_out: NDArray[np.float32],
    generator: int,
) -> NDArray[np.float64]:
    """Fit on one half, and return (n,) float64, the log odds that it foretells on the other.

    The penalty is a constant times √(2 ln U / n), the greatest correlation that chance gives among
    U units; to find it by trial would take ten fits for each.

    Args:
        chosen: (m, U) float32, standardised values of the half to fit on.
        split: (m,) bool, the hypothesis there.
        held_out: (n, U) float32, values of the other half, standardised as the first.
        generator: seeds the fit, which takes the units in a random order.

    """
    require_sparse_regression()
    from sklearn.exceptions import ConvergenceWarning  # noqa: PLC0415 - an extra, slow to import
    from sklearn.linear_model import LogisticRegression  # noqa: PLC0415

    n, units = chosen.shape
    rate = float(split.mean())
    penalty = OF_UNIVERSAL_PENALTY * sqrt(2.0 * log(max(units, 2)) * n * rate * (1.0 - rate))
    # Before 1.8, and so on Python 3.10, the norm is named by another parameter.
    old = LogisticRegression().l1_ratio is None
    norm: dict[str, Any] = {"penalty": "l1"} if old else {"l1_ratio": 1.0}
    model = LogisticRegression(
        **norm, C=1.0 / penalty, solver="liblinear", tol=1e-3, random_state=generator
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(chosen.astype(np.float64), split)
    return np.asarray(model.decision_function(held_out.astype(np.float64)), np.float64)


def foretold_aucs(
    odds: NDArray[np.float64], split: NDArray[np.bool_], orders: NDArray[np.int64]
) -> NDArray[np.float64]:
    """Return (P, H) float64, the AUC of predictions for labels in each of P orders.

    Args:
        odds: (n, H), the predictions for each hypothesis.
        split: (n, H) bool, what is so.
        orders: (P, n) in which the rows of `split` are dealt to the inputs.

    """
    held = split.sum(axis=0)
    sums = np.einsum("nh,pnh->ph", doubled_ranks(odds).astype(np.float64), split[orders])
    return np.asarray(0.5 + sums / (2.0 * held * (len(split) - held)))
