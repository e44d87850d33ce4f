"""The arithmetic of one direction of an LSTM, and where its tensors stand.

At each step, with σ the logistic function and f the activation,

    i = σ(Wᵢ·x + Rᵢ·h + pᵢ∘c + bᵢ)        g = f(W_g·x + R_g·h + b_g)
    r = σ(W_r·x + R_r·h + p_r∘c + b_r)     c' = r∘c + i∘g, within the clip of the cell
    o = σ(Wₒ·x + Rₒ·h + pₒ∘c' + bₒ)        h' = o∘f(c'), projected and clipped if there is one

where r forgets. Coupled gates have i = 1 - r. With layer normalization a gate's sum without its
bias is normalized and multiplied with coefficients before the bias is added. Sak et al.,
"Long short-term memory recurrent neural network architectures for large scale acoustic modeling"
(2014), section 2, has the equations of projection and peepholes.
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
from edgeflare.conform.specification.operand import Reals

INPUT, FORGET, CELL, OUTPUT = range(4)
_GATES: Final = (INPUT, FORGET, CELL, OUTPUT)


@dataclass(frozen=True, slots=True)
class LstmPlaces:
    """Where the tensors of a direction stand among the operands.

    Attributes:
        weights: that of the input gate's; those of the other gates follow.
        recurrent: likewise of recurrent weights.
        peephole: that of the input gate's; those of the forget and the output gate follow.
        bias: that of the input gate's; those of the other gates follow.
        projection: the matrix; its bias follows.
        hidden: the state that is the result.
        cell: the state of the cells.
        auxiliary: of the input gate's weights for a second sequence, those of the others follow; 0
            where there is none.
        normalization: of the input gate's coefficients, those of the others follow; 0 likewise.

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


@dataclass(frozen=True, slots=True)
class LstmForm:
    """What an LSTM of one direction is.

    Attributes:
        batch, features, units, outputs: sizes; there are as many outputs as units without a
            projection.
        coupled: the input gate follows from the forget gate.
        peephole: gates see the cells.
        projection: "none", "weights", or "bias" for one that has a bias, too.
        normalized: gates are normalized.
        activation: of the schema.
        cell_clip, projection_clip: limits, 0 for none.
        rounds: whether what is multiplied with weights is rounded to eight bits.
        weighted: whether a second sequence has weights.

    """

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

    @property
    def gates(self) -> tuple[int, ...]:
        """The gates that have weights."""
        return _GATES[1:] if self.coupled else _GATES

    def tensors(self, at: LstmPlaces) -> RecurrentTensors:
        """Return the tensors of a direction."""
        column = RecurrentTensor("float", (self.units,))
        found: dict[int, RecurrentTensor] = {}
        for gate in self.gates:
            read = RecurrentTensor("weights", (self.units, self.features))
            found[at.weights + gate] = read
            found[at.recurrent + gate] = RecurrentTensor("weights", (self.units, self.outputs))
            found[at.bias + gate] = column
            if self.peephole and gate != CELL:
                found[_peephole(at, gate)] = RecurrentTensor("weights", (self.units,))
            if self.normalized:
                found[at.normalization + gate] = column
            if self.weighted:
                found[at.auxiliary + gate] = read
        if self.projection != "none":
            found[at.projection] = RecurrentTensor("weights", (self.outputs, self.units))
        if self.projection == "bias":
            found[at.projection + 1] = RecurrentTensor("float", (self.outputs,))
        found[at.hidden] = RecurrentTensor("state", (self.batch, self.outputs))
        found[at.cell] = RecurrentTensor("state", (self.batch, self.units))
        return found

    def steps(
        self,
        at: LstmPlaces,
        sequence: Sequence[Reals],
        read: Mapping[int, Reals],
        auxiliary: Sequence[Reals] | None = None,
    ) -> Iterator[BoundedReals]:
        """Yield the results after each step.

        Args:
            at: the places of the direction's tensors.
            sequence: (batch, features) of each step.
            read: all tensors by their places.
            auxiliary: likewise of a second sequence that has weights.

        """
        hidden = BoundedReals.exactly(read[at.hidden])
        cell = BoundedReals.exactly(read[at.cell])
        for number, step in enumerate(sequence):
            given = [(BoundedReals.exactly(step), at.weights), (hidden, at.recurrent)]
            if auxiliary is not None:
                given.append((BoundedReals.exactly(auxiliary[number]), at.auxiliary))
            forget = self._sum(at, FORGET, given, cell, read).logistic()
            new = self._sum(at, CELL, given, cell, read).activated(self.activation)
            if self.coupled:
                taken = forget.complement()
            else:
                taken = self._sum(at, INPUT, given, cell, read).logistic()
            cell = (forget * cell + taken * new).clipped(self.cell_clip)
            shown = self._sum(at, OUTPUT, given, cell, read).logistic()
            hidden = self._projected(at, shown * cell.activated(self.activation), read)
            yield hidden

    def _sum(
        self,
        at: LstmPlaces,
        gate: int,
        given: Sequence[tuple[BoundedReals, int]],
        cell: BoundedReals,
        read: Mapping[int, Reals],
    ) -> BoundedReals:
        """Return what a gate is before its activation."""
        total, *others = (
            values.times(read[first + gate], rounds=self.rounds) for values, first in given
        )
        for other in others:
            total = total + other
        if self.peephole and gate != CELL:
            total = total + cell * _everywhere(read[_peephole(at, gate)], cell)
        if self.normalized:
            coefficients = read[at.normalization + gate]
            total = total.normalized() * _everywhere(coefficients, total)
        return total + _everywhere(read[at.bias + gate], total)

    def _projected(
        self, at: LstmPlaces, shown: BoundedReals, read: Mapping[int, Reals]
    ) -> BoundedReals:
        if self.projection == "none":
            return shown
        found = shown.times(read[at.projection], rounds=self.rounds)
        if self.projection == "bias":
            found = found + _everywhere(read[at.projection + 1], found)
        return found.clipped(self.projection_clip)


def _peephole(at: LstmPlaces, gate: int) -> int:
    """Return the place of what a gate sees the cells with; the cells' own has none."""
    return at.peephole + (gate if gate < CELL else gate - 1)


def _everywhere(values: Reals, like: BoundedReals) -> BoundedReals:
    """Return a row of known values for each row of others."""
    return BoundedReals.exactly(np.broadcast_to(values, like.values.shape))
