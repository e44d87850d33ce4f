"""The figures of an inspection, gathered one behaviour after the other to bound memory.

Rows are kept as they came, in float32 and at most so many of them, and no histograms or moments: an
AUC, a permutation and an L1 regression need the inputs one by one, and with rows they are exact.
It loses nothing. 2,048 inputs in a half bound the interval of any correlation by .043 and that of
an AUC by .025, which is below the default precision; so an inspection that has as many ends there,
since each further input would cost two inferences and a gradient, and could tell no more.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from edgeflare.diagnose.inspect.behaviour_block import (
    CHOOSING,
    ERROR_GRADIENT,
    HELD_OUT,
    BehaviourBlock,
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
from edgeflare.diagnose.inspect.inspect_document import BestScore, LayerScore, RankedUnit
from edgeflare.diagnose.inspect.unit_measures import possible_limits

MOST_LISTED: Final = 20
"""Units in a list."""

SHARE: Final = "share"
"""The list of units by their shares of the margin's error."""

MOST_INPUTS: Final = 4096
MOST_BYTES_KEPT: Final = 96 * 2**20
"""Bytes of all behaviours together; 1,184 units and three behaviours take 58 MB of them. What is
computed at the end takes about as much again."""


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
                behaviour, score.measure, self._hypotheses[score.hypothesis],
                None if score.unit is None else unit_at(self._layers, score.unit),
                score.score, *possible_limits(score.measure, score.score, score.half_width),
                score.beyond,
            )
            for score in found
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
    return [int(unit) for unit in np.argsort(-values, kind="stable")[:MOST_LISTED]]


class KeptInputs:
    """Rows of inputs, up to a bound, and the half of each.

    Attributes:
        count: number of inputs kept.
        most: number that may be kept.

    """

    def __init__(self, first: BehaviourBlock) -> None:
        """Make room.

        Args:
            first: a block with the behaviours, units and hypotheses of all; nothing is kept of it.

        """
        row_bytes = sum(4 * values.shape[1] for values in first.values.values())
        self.most = min(MOST_INPUTS, MOST_BYTES_KEPT // max(row_bytes, 1))
        self.count = 0
        self._values = {
            name: np.empty((self.most, values.shape[1]), np.float32)
            for name, values in first.values.items()
        }  # memory of rows that are not reached is never touched, and not taken
        self._hypotheses = np.empty((self.most, first.hypotheses.shape[1]))
        self._errors = np.empty(self.most)
        self._groups = np.empty(self.most, np.int64)
        self._strata = np.empty(self.most, np.int64)
        self._halves = np.empty(self.most, np.int8)

    def add(self, block: BehaviourBlock) -> None:
        """Keep a block, which may have as many inputs as there is still room for.

        Raises:
            ValueError: its arrays are not of the shapes that they should have, or not finite.

        """
        _check(
            block, {name: rows.shape[1] for name, rows in self._values.items()}, self._hypotheses
        )
        rows = slice(self.count, self.count + len(block))
        for name, values in block.values.items():
            self._values[name][rows] = values
        self._hypotheses[rows] = block.hypotheses
        self._errors[rows] = block.margin_errors
        self._groups[rows] = block.groups
        self._strata[rows] = block.strata
        self._halves[rows] = block.halves
        self.count = rows.stop

    def half(self, which: int) -> BehaviourBlock:
        """Return the inputs of one half, without behaviours."""
        rows = self._rows(which)
        return BehaviourBlock(
            {}, self._hypotheses[rows], self._errors[rows],
            self._groups[rows], self._halves[rows], self._strata[rows],
        )  # fmt: skip

    def values(self, behaviour: str, which: int) -> NDArray[np.float32]:
        """Return (inputs of the half, units), what units did on one half; a copy."""
        return self._values[behaviour][self._rows(which)]

    @property
    def behaviours(self) -> tuple[str, ...]:
        """Names of the behaviours, in the order of the first block."""
        return tuple(self._values)

    def _rows(self, which: int) -> NDArray[np.intp]:
        return np.flatnonzero(self._halves[: self.count] == which)


def _check(block: BehaviourBlock, units: dict[str, int], kept: NDArray[np.float64]) -> None:
    if units.keys() != block.values.keys():
        raise ValueError(f"a block has the behaviours {list(block.values)}, others {list(units)}")
    expected = {name: (len(block), count) for name, count in units.items()}
    found = {name: values.shape for name, values in block.values.items()}
    if not np.isin(block.halves, (CHOOSING, HELD_OUT)).all():
        raise ValueError("a block has inputs of no half")
    if found != expected or block.hypotheses.shape != (len(block), kept.shape[1]):
        raise ValueError(f"a block of {len(block)} inputs has values {found}, not {expected}")
    numbers = all(np.isfinite(values).all() for values in block.values.values())
    if ERROR_GRADIENT in units:
        numbers &= bool(np.isfinite(block.margin_errors).all())
    if not (numbers and np.isfinite(block.hypotheses).all()):
        raise ValueError("a block has values that are not finite")
