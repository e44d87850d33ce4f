"""The arithmetic of one direction of an LSTM, and where its tensors stand.

At each step, with σ the logistic function and f the activation,

    i = σ(Wᵢ·x + Rᵢ·h + pᵢ∘c + bᵢ)        g = f(W_g·x + R_g·h + b_g)
    r = σ(W_r·x + R_r·h + p_r∘c + b_r)     c' = r∘c + i∘g, within the clip of the cell
    o = σ(Wₒ·x + Rₒ·h + pₒ∘c' + bₒ)        h' = o∘f(c'), projected and clipped if there is one

where r forgets. Coupled gates have i = 1 - r. With layer normalization a gate's sum without its
bias is normalized and multiplied with coefficients before the bias is added. Sak et al.,
"Long short-term memory recurrent neural network architectures for large scale acoustic modeling"
(2014), section 2, has the equations of projection and peepholes.

With int8 activations what is before an activation has int16 steps of 2⁻¹² and saturates at 8: the
products with what is read first, and then the sum. What is behind one has steps of 2⁻¹⁵. Cells are
int16 with a scale of their own. Each product is rounded once.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from edgeflare.conform.operators.recurrent.bounded_reals import BoundedReals
from edgeflare.conform.operators.recurrent.recurrent_operator import (
    RecurrentTensor,
    RecurrentTensors,
)
from edgeflare.conform.specification.activation_tensors import Reals

INPUT, FORGET, CELL, OUTPUT = range(4)
_GATES: Final = (INPUT, FORGET, CELL, OUTPUT)


@dataclass(frozen=True, slots=True)
class LstmPlaces:
    """Where the tensors of a direction stand among the operands.

    Attributes:
        weights: the input gate's weights; those of the other gates follow.
        recurrent: the input gate's recurrent weights; those of the other gates follow.
        peephole: the input gate's weights for cells; those of the forget and the output gate
            follow.
        bias: the input gate's bias; those of the other gates follow.
        projection: the matrix; its bias follows.
        hidden: the state that is the result.
        cell: the state of the cells.
        auxiliary: the input gate's weights for a second sequence; those of the other gates follow.
            0 where there is none.
        normalization: the input gate's coefficients; those of the other gates follow. 0 where
            nothing is normalized.

    """

    weights: int
    recurrent: int
    peephole: int
    bias: int
    projection: int
    hidden: int
    cell: int
    auxiliary: int = 0
    normalization: int = 0


_SUM_STEP: Final = 2.0**-12
_GATE_STEP: Final = 2.0**-15
_TABLE_STEPS: Final = 4
"""Steps by which the fixed-point logistic function and tanh may be off, with a margin: over all
int16 arguments those of gemmlowp are off by less than 3."""

_INT16: Final = 2.0**15


@dataclass(frozen=True, slots=True)
class LstmSteps:
    """How an LSTM of int8 activations rounds its states.

    Attributes:
        cell: the scale of the cells.
        hidden: the scale of the result.
        zero_point: the zero point of the result.

    """

    cell: float
    hidden: float
    zero_point: int

    def summed(self, partial: BoundedReals) -> BoundedReals:
        """Return a sum before an activation."""
        return partial.off_by(_SUM_STEP).within(-_INT16 * _SUM_STEP, (_INT16 - 1) * _SUM_STEP)

    def activated(self, gate: BoundedReals) -> BoundedReals:
        """Return what is behind an activation."""
        return gate.off_by(_TABLE_STEPS * _GATE_STEP)

    def kept(self, cell: BoundedReals, products: int) -> BoundedReals:
        """Return cells that are the sum of some products."""
        return cell.off_by(products * self.cell).within(
            -_INT16 * self.cell, (_INT16 - 1) * self.cell
        )

    def fed_back(self, hidden: BoundedReals) -> BoundedReals:
        """Return a result as the next step reads it: a step off at most, like any result."""
        ends = ((end - self.zero_point) * self.hidden for end in (-128, 127))
        return hidden.off_by(self.hidden).within(*ends)


@dataclass(frozen=True, slots=True)
class LstmDirection:
    """A direction of an LSTM.

    Attributes:
        at: the places of its tensors.
        batch, features, units, outputs: sizes; there are as many outputs as units without a
            projection.
        coupled: the input gate follows from the forget gate.
        peephole: gates see the cells.
        projection: "none", "weights", or "bias" for one that has a bias, too.
        normalized: gates are normalized.
        activation: the fused activation's number in the schema.
        cell_clip, projection_clip: limits, 0 for none.
        rounds: whether what is multiplied with weights is rounded to eight bits.
        weighted: whether a second sequence has weights.
        steps_of: how states are rounded; None for floats.

    """

    at: LstmPlaces
    batch: int
    features: int
    units: int
    outputs: int
    coupled: bool
    peephole: bool
    projection: str
    normalized: bool
    activation: str
    cell_clip: float
    projection_clip: float
    rounds: bool = False
    weighted: bool = False
    steps_of: LstmSteps | None = None

    @property
    def gates(self) -> tuple[int, ...]:
        """The gates that have weights."""
        return _GATES[1:] if self.coupled else _GATES

    def tensors(self) -> RecurrentTensors:
        """Return the tensors that it reads besides the sequence."""
        column = RecurrentTensor("float", (self.units,))
        found: dict[int, RecurrentTensor] = {}
        for gate in self.gates:
            read = RecurrentTensor("weights", (self.units, self.features))
            found[self.at.weights + gate] = read
            found[self.at.recurrent + gate] = RecurrentTensor("weights", (self.units, self.outputs))
            found[self.at.bias + gate] = column
            if self.peephole and gate != CELL:
                found[_peephole(self.at, gate)] = RecurrentTensor("weights", (self.units,))
            if self.normalized:
                found[self.at.normalization + gate] = column
            if self.weighted:
                found[self.at.auxiliary + gate] = read
        if self.projection != "none":
            found[self.at.projection] = RecurrentTensor("weights", (self.outputs, self.units))
        if self.projection == "bias":
            found[self.at.projection + 1] = RecurrentTensor("float", (self.outputs,))
        found[self.at.hidden] = RecurrentTensor("state", (self.batch, self.outputs))
        found[self.at.cell] = RecurrentTensor("state", (self.batch, self.units))
        return found

    def steps(
        self, sequence: Reals, read: Mapping[int, Reals], auxiliary: Reals | None = None
    ) -> Iterator[BoundedReals]:
        """Yield the results after each step; see `Direction`."""
        hidden = BoundedReals.exactly(read[self.at.hidden])
        cell = BoundedReals.exactly(read[self.at.cell])
        for number, step in enumerate(sequence):
            given = [(BoundedReals.exactly(step), self.at.weights), (hidden, self.at.recurrent)]
            if auxiliary is not None:
                given.append((BoundedReals.exactly(auxiliary[number]), self.at.auxiliary))
            forget = self._gate(FORGET, given, cell, read)
            new = self._gate(CELL, given, cell, read)
            taken = forget.complement() if self.coupled else self._gate(INPUT, given, cell, read)
            cell = forget * cell + taken * new
            if self.steps_of is not None:
                cell = self.steps_of.kept(cell, products=2)
            cell = cell.clipped(self.cell_clip)
            shown = self._gate(OUTPUT, given, cell, read)
            seen = self._stepwise(cell.activated(self.activation))
            hidden = self._projected(shown * seen, read)
            yield hidden
            if self.steps_of is not None:
                hidden = self.steps_of.fed_back(hidden)

    def _gate(
        self,
        gate: int,
        given: Sequence[tuple[BoundedReals, int]],
        cell: BoundedReals,
        read: Mapping[int, Reals],
    ) -> BoundedReals:
        """Return what a gate is."""
        total = self._sum(gate, given, cell, read)
        return self._stepwise(
            total.activated(self.activation) if gate == CELL else total.logistic()
        )

    def _stepwise(self, values: BoundedReals) -> BoundedReals:
        return values if self.steps_of is None else self.steps_of.activated(values)

    def _sum(
        self,
        gate: int,
        given: Sequence[tuple[BoundedReals, int]],
        cell: BoundedReals,
        read: Mapping[int, Reals],
    ) -> BoundedReals:
        """Return what a gate is before its activation."""
        total, *others = (
            values.times(read[first + gate], rounds=self.rounds) for values, first in given
        )
        if self.steps_of is not None:
            total = self.steps_of.summed(total + _everywhere(read[self.at.bias + gate], total))
            return self.steps_of.summed(total + others[0])
        for other in others:
            total = total + other
        if self.peephole and gate != CELL:
            total = total + cell * _everywhere(read[_peephole(self.at, gate)], cell)
        if self.normalized:
            coefficients = read[self.at.normalization + gate]
            total = total.normalized() * _everywhere(coefficients, total)
        return total + _everywhere(read[self.at.bias + gate], total)

    def _projected(self, shown: BoundedReals, read: Mapping[int, Reals]) -> BoundedReals:
        if self.projection == "none":
            return shown
        found = shown.times(read[self.at.projection], rounds=self.rounds)
        if self.projection == "bias":
            found = found + _everywhere(read[self.at.projection + 1], found)
        return found.clipped(self.projection_clip)


def _peephole(at: LstmPlaces, gate: int) -> int:
    """Return the place of what a gate sees the cells with; the cells' own has none."""
    return at.peephole + (gate if gate < CELL else gate - 1)


def _everywhere(values: Reals, like: BoundedReals) -> BoundedReals:
    """Return a row of known values for each row of others."""
    return BoundedReals.exactly(np.broadcast_to(values, like.values.shape))
