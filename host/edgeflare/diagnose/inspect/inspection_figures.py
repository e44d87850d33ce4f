"""The figures of an inspection, gathered one behaviour after the other to bound memory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from edgeflare.diagnose.inspect.behaviour_block import (
    CHOOSING,
    ERROR_GRADIENT,
    HELD_OUT,
    UnitLayer,
    layer_slices,
    unit_at,
)
from edgeflare.diagnose.inspect.behaviour_scores import (
    Halves,
    Matrix,
    found_scores,
    scored,
    scores,
)
from edgeflare.diagnose.inspect.error_shares import error_shares, share_interval
from edgeflare.diagnose.inspect.hypotheses import DEVIATES
from edgeflare.diagnose.inspect.inspection_halves import KeptInputs
from edgeflare.diagnose.inspect.inspection_result import BestScore, LayerScore, RankedUnit
from edgeflare.diagnose.inspect.unit_measures import possible_limits

MOST_LISTED: Final = 20
"""Units in a list."""

SHARE: Final = "share"
"""The list of units by their shares of the margin's error."""


class InspectionFigures:
    """What is found of each behaviour.

    Attributes:
        best: the best scores; see `InspectionResult`, as of the others.
        levels: what they have to reach.
        top_units: lists of units.

    """

    def __init__(
        self,
        layers: Sequence[UnitLayer],
        hypotheses: Sequence[str],
        kept: KeptInputs,
        halves: Halves,
    ) -> None:
        """Begin with none; `hypotheses` are the names of those in `halves`."""
        self.best: list[BestScore] = []
        self.levels: dict[tuple[str, str], float] = {}
        self.top_units: dict[str, tuple[RankedUnit, ...]] = {}
        self._layers = layers
        self._hypotheses = hypotheses
        self._kept = kept
        self._halves = halves
        self._aucs: list[dict[str, float]] = [{} for _ in layers]
        self._shares: list[tuple[float, int, float, float | None]] = []

    def add(self, behaviour: str, generator: int) -> None:
        """Compute the figures of one behaviour; `generator` seeds its regressions."""
        chosen, held_out = (self._kept.values(behaviour, half) for half in (CHOOSING, HELD_OUT))
        found, levels = found_scores(chosen, held_out, self._halves, generator)
        self.levels |= {(behaviour, measure): level for measure, level in levels.items()}
        self.best += [
            BestScore(
                behaviour, one.measure, self._hypotheses[one.hypothesis],
                None if one.unit is None else unit_at(self._layers, one.unit),
                one.score, *possible_limits(one.measure, one.score, one.half_width), one.beyond,
            )
            for one in found
        ]  # fmt: skip
        if DEVIATES in self._hypotheses:
            self._add_aucs(behaviour, chosen, held_out)
        if behaviour == ERROR_GRADIENT:
            self._add_shares(chosen, held_out)

    def layer_scores(self) -> tuple[LayerScore, ...]:
        """Return the figures of each layer."""
        if not self._shares:
            return tuple(LayerScore(aucs) for aucs in self._aucs)
        both = zip(self._aucs, self._shares, strict=True)
        return tuple(LayerScore(aucs, *shares) for aucs, shares in both)

    def _add_aucs(self, behaviour: str, chosen: Matrix, held_out: Matrix) -> None:
        which = self._hypotheses.index(DEVIATES)
        strength = np.abs(scores("auc", chosen, self._halves.chosen)[which] - 0.5)
        listed = []
        for unit in _greatest(strength):
            auc, half = scored("auc", held_out[:, unit], self._halves, which)
            listed.append(
                RankedUnit(unit_at(self._layers, unit), auc, *possible_limits("auc", auc, half))
            )
        self.top_units[behaviour] = tuple(listed)
        for aucs, where in zip(self._aucs, layer_slices(self._layers), strict=True):
            best = where.start + int(strength[where].argmax())
            aucs[behaviour] = scored("auc", held_out[:, best], self._halves, which)[0]

    def _add_shares(self, chosen: Matrix, held_out: Matrix) -> None:
        errors, groups = self._kept.half(HELD_OUT).margin_errors, self._halves.groups
        on_chosen = error_shares(chosen, self._kept.half(CHOOSING).margin_errors)
        on_held_out = error_shares(held_out, errors)
        listed = []
        for unit in _greatest(on_chosen):
            of = share_interval(held_out[:, unit], errors, groups)
            listed.append(RankedUnit(unit_at(self._layers, unit), of.share, of.low, of.high))
        self.top_units[SHARE] = tuple(listed)
        for where in layer_slices(self._layers):
            top = int(on_chosen[where].argmax())
            together, auc = held_out[:, where].sum(axis=1), None
            if DEVIATES in self._hypotheses:
                auc = scored("auc", together, self._halves, self._hypotheses.index(DEVIATES))[0]
            summed = float(on_held_out[where].sum())
            self._shares.append((summed, top, float(on_held_out[where][top]), auc))


def _greatest(values: np.ndarray[tuple[int, ...], np.dtype[np.floating]]) -> list[int]:
    return [int(one) for one in np.argsort(-values, kind="stable")[:MOST_LISTED]]
