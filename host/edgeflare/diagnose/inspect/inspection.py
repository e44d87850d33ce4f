"""An inspection: blocks of numbers come in one after the other, scores and a verdict come out."""

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
    unit_at,
)
from edgeflare.diagnose.inspect.behaviour_scores import (
    Halves,
    Matrix,
    halves_of,
    is_beyond,
    level_of,
    scored,
    scores,
)
from edgeflare.diagnose.inspect.error_shares import (
    ShareInterval,
    error_shares,
    first_to_blame,
    is_to_blame,
    permuted_shares,
    share_interval,
)
from edgeflare.diagnose.inspect.hypotheses import telling, varying
from edgeflare.diagnose.inspect.inspect_document import Ending, InspectionResult, InspectionVerdict
from edgeflare.diagnose.inspect.inspection_figures import InspectionFigures, KeptInputs
from edgeflare.diagnose.inspect.unit_measures import Orders
from edgeflare.errors import UserError
from edgeflare.hypothesis import UnitHypothesis
from edgeflare.linear_algebra import one_thread

_NOT_ASKED: Final = InspectionVerdict(
    "none", "no verdict: it needs the behaviour error-gradient, which was left out"
)

LEAST_INPUTS: Final = 200
"""Inputs before it may end early: shares settle within 200 to 400 inputs."""

BETWEEN_LOOKS: Final = 1.25
"""Factor by which the inputs grow until precision is looked at again."""

LEAST_GROUPS: Final = 20
"""Groups in each half: the variance between fewer is not known well enough for an interval."""

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
            layers: layers whose channels are the units, in execution order, without that of the
                scores.
            hypotheses: hypotheses that blocks have values of, in their order.
            precision: half the width of the 95 % interval that is precise enough: of the share of
                the unit that the verdict is about; without `error-gradient`, of the AUC of the
                best unit for each behaviour and hypothesis. Above 0 and below 1.
            rng: permutes, and seeds the regressions.
            permutations: number of permutations that levels come from.

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
            units = sum(layer.channels for layer in self._layers)
            if not block.values or any(value.shape[1] != units for value in block.values.values()):
                raise ValueError(f"a block has no behaviour of {units} units")
            if block.hypotheses.shape[1] != len(self._hypotheses):
                raise ValueError(f"a block has no values of {len(self._hypotheses)} hypotheses")
            self._kept = KeptInputs(block)
        kept, begin = self._kept, 0
        while begin < len(block) and self._ended == "inputs":
            end = min(len(block), begin + min(self._next_look, kept.most) - kept.count)
            kept.add(block.part(slice(begin, end)))
            begin = end
            if kept.count == self._next_look:
                self._next_look = int(self._next_look * BETWEEN_LOOKS)
                with one_thread():  # as for the result, which it decides on
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
        names = [hypothesis.name for hypothesis in self._hypotheses]
        tried = tuple(name for name, told in zip(names, varies, strict=True) if told)
        figures = InspectionFigures(
            self._layers, tried, kept, halves_of(chosen, held_out, varies, orders)
        )
        verdict = _NOT_ASKED
        with one_thread():  # last digits depend on the number of threads
            for behaviour in kept.behaviours:
                figures.add(behaviour, int(self._fits_rng.integers(2**31)))
            if ERROR_GRADIENT in kept.behaviours:
                both = [kept.values(ERROR_GRADIENT, half) for half in (CHOOSING, HELD_OUT)]
                verdict = _verdict_on(kept, both[0], both[1], self._layers, orders)
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

    def _is_precise(self, kept: KeptInputs) -> bool:
        if min(_groups(kept)) < LEAST_GROUPS:
            return False
        chosen, held_out = kept.half(CHOOSING), kept.half(HELD_OUT)
        varies = varying([chosen.hypotheses, held_out.hypotheses])
        asked = [not hypothesis.built_in for hypothesis in self._hypotheses]
        if not varies[asked].all():  # a rare one of the user's needs more inputs to say anything of
            return False
        if ERROR_GRADIENT in kept.behaviours:
            both = [kept.values(ERROR_GRADIENT, half) for half in (CHOOSING, HELD_OUT)]
            share = _blamed(kept, both[0], both[1], self._layers)[1]
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
    """Refuse a precision that is not above 0 and below 1."""
    if not 0.0 < precision < 1.0:
        raise UserError(f"precision is {precision:g}: give a number above 0 and below 1")


def _groups(kept: KeptInputs) -> tuple[int, int]:
    """Return how many groups each half has."""
    return (len(set(kept.half(CHOOSING).groups)), len(set(kept.half(HELD_OUT).groups)))


def group_permutations(
    groups: NDArray[np.int64],
    strata: NDArray[np.int64],
    count: int,
    rng: np.random.Generator,
) -> NDArray[np.int64]:
    """Return orders of inputs, as likely as their own if what is permuted has nothing to tell.

    Whole groups change places with groups that have as many inputs in each stratum, since inputs of
    one group are alike and are no independent evidence. Then the inputs of a group change places
    within their stratum: in pairs of which always one deviates, that is all there is to permute.

    Args:
        groups: (inputs,) the group of each.
        strata: (inputs,) the stratum of each.
        count: number of orders.
        rng: generator of all random draws.

    Returns:
        (count, inputs): `values[orders[n]]` are permuted values.

    """
    numbers = np.unique(groups, return_inverse=True)[1].reshape(-1)
    members: dict[int, list[int]] = {}
    for input_, number in enumerate(numbers.tolist()):
        members.setdefault(number, []).append(input_)
    kinds: dict[tuple[int, ...], int] = {}
    kind_of = np.empty(len(members), np.int64)
    for number, inputs in members.items():
        kind_of[number] = kinds.setdefault(tuple(sorted(strata[inputs].tolist())), len(kinds))
    kind = kind_of[numbers]
    places = np.lexsort((strata, numbers, kind))
    orders = np.empty((count, len(groups)), np.int64)
    for order in orders:
        shuffled = rng.random(len(members))[numbers]
        order[places] = np.lexsort((rng.random(len(groups)), strata, shuffled, kind))
    return orders


def _blamed(
    kept: KeptInputs, chosen: Matrix, held_out: Matrix, layers: Sequence[UnitLayer]
) -> tuple[int, ShareInterval]:
    """Return the unit that the verdict is about, and its share on the held-out half.

    Args:
        kept: the inputs.
        chosen: (m, U), the contributions on the half to choose units on.
        held_out: (n, U), on the other.
        layers: layers in execution order.

    """
    one, other = kept.half(CHOOSING), kept.half(HELD_OUT)
    unit = first_to_blame(error_shares(chosen, one.margin_errors), layers)
    return unit, share_interval(held_out[:, unit], other.margin_errors, other.groups)


def _verdict_on(
    kept: KeptInputs,
    chosen: Matrix,
    held_out: Matrix,
    layers: Sequence[UnitLayer],
    orders: Orders,
) -> InspectionVerdict:
    """Return the verdict; arguments as of `_blamed`, and (P, n) orders of the inputs held out.

    A channel is blamed if the lower limit of its share's interval is beyond the threshold: a
    healthy network's top channel may be at half of it, and noise does the rest.
    """
    unit, share = _blamed(kept, chosen, held_out, layers)
    errors = kept.half(HELD_OUT).margin_errors
    extremes = [
        np.abs(permuted_shares(held_out, errors, some)).max(axis=1)
        for some in np.array_split(orders, max(len(orders) // 100, 1))
    ]
    level = level_of(np.concatenate(extremes))
    where = unit_at(layers, unit)
    layer = layers[where.layer]
    said = f"channel {where.channel} of {layer}"
    if not is_beyond(share.share, level) or level == 0.0:
        sentence = "nothing: no channel has more of the margin's error than chance gives"
        return InspectionVerdict("nothing", sentence, where, share, level)
    if is_to_blame(share.low, layer):
        sentence = f"{said} has {share.share:.0%} of the margin's error"
        return InspectionVerdict("channel", sentence, where, share, level)
    sentence = f"diffuse: the top channel, {where.channel} of {layer}, has {share.share:.0%}"
    return InspectionVerdict("diffuse", sentence, where, share, level)
