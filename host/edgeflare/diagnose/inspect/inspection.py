"""An inspection: blocks of numbers come in one after the other, scores and a verdict come out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
from threadpoolctl import threadpool_limits

from edgeflare.diagnose.inspect.behaviour_block import (
    CHOOSING,
    ERROR_GRADIENT,
    HELD_OUT,
    BehaviourBlock,
    UnitLayer,
)
from edgeflare.diagnose.inspect.behaviour_scores import Halves, halves_of, scored, scores
from edgeflare.diagnose.inspect.group_permutations import group_permutations
from edgeflare.diagnose.inspect.hypothesis_values import telling, varying
from edgeflare.diagnose.inspect.inspection_figures import InspectionFigures
from edgeflare.diagnose.inspect.inspection_result import Ending, InspectionResult
from edgeflare.diagnose.inspect.inspection_verdict import NOT_ASKED, blamed, verdict_on
from edgeflare.diagnose.inspect.kept_inputs import KeptInputs
from edgeflare.errors import UserError
from edgeflare.hypothesis import UnitHypothesis

LEAST_INPUTS: Final = 200
"""Before it may end early: shares settle within 200 to 400 inputs."""

BETWEEN_LOOKS: Final = 1.25
"""By how much the inputs grow until precision is looked at again."""

LEAST_GROUPS: Final = 20
"""In each half: the variance between fewer is not known well enough for an interval."""

PERMUTATIONS: Final = 1000


class Inspection:
    """Takes blocks of inputs until the verdict is precise enough.

    Inputs have to come in a random order, since it may end before all came. What it finds does not
    depend on how they are divided into blocks.
    """

    def __init__(
        self,
        layers: Sequence[UnitLayer],
        hypotheses: Sequence[UnitHypothesis],
        precision: float,
        rng: np.random.Generator,
        permutations: int = PERMUTATIONS,
    ) -> None:
        """Begin.

        Args:
            layers: whose channels are the units, in execution order, without that of the scores.
            hypotheses: that blocks have values of, in their order.
            precision: half the width of the 95 % interval that is precise enough: of the share of
                the unit that the verdict is about; without `error-gradient`, of the AUC of the
                best unit for each behaviour and hypothesis. Above 0 and below 1.
            rng: permutes, and seeds the regressions.
            permutations: from which levels come.

        Raises:
            UserError: the precision is out of its range.

        """
        require_precision(precision)
        self._layers = tuple(layers)
        self._hypotheses = tuple(hypotheses)
        self._precision = precision
        self._permutations = permutations
        self._orders_rng, self._fits_rng = rng.spawn(2)
        self._kept: KeptInputs | None = None
        self._next_look = LEAST_INPUTS
        self._ended: Ending = "inputs"

    def add(self, block: BehaviourBlock) -> bool:
        """Take a block, of which what comes after the end is left.

        Returns:
            Whether more inputs are wanted.

        Raises:
            ValueError: the block is not of the shapes that it should have, or not finite.

        """
        if self._kept is None:
            self._check_units(block)
            self._kept = KeptInputs(block)
        kept, begin = self._kept, 0
        while begin < len(block) and self._ended == "inputs":
            end = min(len(block), begin + min(self._next_look, kept.most) - kept.count)
            kept.add(block.part(slice(begin, end)))
            begin = end
            if kept.count == self._next_look:
                self._next_look = int(self._next_look * BETWEEN_LOOKS)
                with threadpool_limits(1):  # as for the result, which it decides on
                    if self._is_precise(kept):
                        self._ended = "precise"
            if kept.count == kept.most and self._ended == "inputs":
                self._ended = "full"
        return self._ended == "inputs"

    def result(self) -> InspectionResult:
        """Return what was found.

        Raises:
            UserError: there were too few inputs, a hypothesis of the user is constant, or
                scikit-learn is not installed.

        """
        kept = self._kept
        groups = (0, 0) if kept is None else _groups(kept)
        if kept is None or min(groups) < LEAST_GROUPS:
            raise UserError(
                f"{sum(groups)} groups of inputs are too few to inspect: give inputs in"
                f" {2 * LEAST_GROUPS} groups or more"
            )
        chosen, held_out = kept.half(CHOOSING), kept.half(HELD_OUT)
        varies = telling(self._hypotheses, [chosen.hypotheses, held_out.hypotheses])
        if not varies.any():
            raise UserError("no hypothesis varies over the inputs: add one of your own, or inputs")
        orders = group_permutations(
            held_out.groups, held_out.strata, self._permutations, self._orders_rng
        )
        names = [one.name for one in self._hypotheses]
        tried = tuple(name for name, told in zip(names, varies, strict=True) if told)
        figures = InspectionFigures(
            self._layers, tried, kept, halves_of(chosen, held_out, varies, orders)
        )
        verdict = NOT_ASKED
        with threadpool_limits(1):  # last digits depend on the number of threads
            for behaviour in kept.behaviours:
                figures.add(behaviour, int(self._fits_rng.integers(2**31)))
            if ERROR_GRADIENT in kept.behaviours:
                both = [kept.values(ERROR_GRADIENT, half) for half in (CHOOSING, HELD_OUT)]
                verdict = verdict_on(kept, both[0], both[1], self._layers, orders)
        return InspectionResult(
            layers=self._layers,
            inputs=kept.count,
            halves=(len(chosen), len(held_out)),
            groups=groups,
            ended=self._ended,
            precision=self._precision,
            permutations=self._permutations,
            behaviours=kept.behaviours,
            hypotheses=tried,
            constant=tuple(name for name in names if name not in tried),
            levels=figures.levels,
            best=tuple(figures.best),
            layer_scores=figures.layer_scores(),
            top_units=figures.top_units,
            verdict=verdict,
        )

    def _check_units(self, block: BehaviourBlock) -> None:
        units = sum(layer.channels for layer in self._layers)
        if not block.values or any(one.shape[1] != units for one in block.values.values()):
            raise ValueError(f"a block has no behaviour of {units} units")
        if block.hypotheses.shape[1] != len(self._hypotheses):
            raise ValueError(f"a block has no values of {len(self._hypotheses)} hypotheses")

    def _is_precise(self, kept: KeptInputs) -> bool:
        if min(_groups(kept)) < LEAST_GROUPS:
            return False
        chosen, held_out = kept.half(CHOOSING), kept.half(HELD_OUT)
        varies = varying([chosen.hypotheses, held_out.hypotheses])
        asked = [not one.built_in for one in self._hypotheses]
        if not varies[asked].all():  # a rare one of the user's needs more inputs to say anything of
            return False
        if ERROR_GRADIENT in kept.behaviours:
            both = [kept.values(ERROR_GRADIENT, half) for half in (CHOOSING, HELD_OUT)]
            share = blamed(kept, both[0], both[1], self._layers)[1]
            return share.half_width <= self._precision
        if not varies.any():
            return False
        halves = halves_of(chosen, held_out, varies, np.empty((0, len(held_out)), np.int64))
        return all(self._auc_is_precise(kept, name, halves) for name in kept.behaviours)

    def _auc_is_precise(self, kept: KeptInputs, behaviour: str, halves: Halves) -> bool:
        on_chosen = scores("auc", kept.values(behaviour, CHOOSING), halves.chosen)
        units, held_out = np.abs(on_chosen - 0.5).argmax(axis=1), kept.values(behaviour, HELD_OUT)
        return all(
            scored("auc", held_out[:, unit], halves, hypothesis)[1] <= self._precision
            for hypothesis, unit in enumerate(units)
        )


def require_precision(precision: float) -> None:
    """Refuse a precision that is not above 0 and below 1.

    Raises:
        UserError: it is not.

    """
    if not 0.0 < precision < 1.0:
        raise UserError(f"precision is {precision:g}: give a number above 0 and below 1")


def _groups(kept: KeptInputs) -> tuple[int, int]:
    """Return how many groups each half has."""
    return (len(set(kept.half(CHOOSING).groups)), len(set(kept.half(HELD_OUT).groups)))
