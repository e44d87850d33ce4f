"""RNN, UNIDIRECTIONAL_SEQUENCE_RNN and BIDIRECTIONAL_SEQUENCE_RNN.

At each step h' = f(W·x + R·h + b), with f the activation; h' is the result and the next state.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from edgeflare.conform.operator_graph import GraphValue
from edgeflare.conform.operators.recurrent.bounded_reals import BoundedReals
from edgeflare.conform.operators.recurrent.recurrent_operator import (
    BidirectionalOperator,
    RecurrentOperator,
    RecurrentTensor,
    RecurrentTensors,
    direction_places,
    sequence_places,
    step_places,
)
from edgeflare.conform.operators.window_settings import size_parameter
from edgeflare.conform.specification.activation_tensors import DYNAMIC, FLOAT, Reals
from edgeflare.conform.specification.model_parts import (
    OptionOf,
    Place,
    SizeOf,
)
from edgeflare.conform.specification.parameter import Choice, Configuration, whole, word

_ACTIVATION: Final = Choice("activation", ("TANH", "NONE", "RELU", "RELU6"))
"""Activations that kernels have, that which converters write first."""

_FORWARD, _BACKWARD = 1, 5
"""Where the weights, recurrent weights, bias and state of a direction begin."""

_AUX, _AUX_WEIGHTS = 9, (10, 11)
"""The places of a second sequence, and of its weights forward and backward."""


@dataclass(frozen=True, slots=True)
class _RnnDirection:
    """A direction of an RNN.

    Attributes:
        first: the place of its weights; its recurrent weights, bias and state follow.
        batch, features, units: sizes.
        activation: the fused activation's number in the schema.
        rounds: whether what is multiplied with weights is rounded to eight bits.
        auxiliary: the place of the weights of a second sequence; 0 where there is none.

    """

    first: int
    batch: int
    features: int
    units: int
    activation: str
    rounds: bool
    auxiliary: int = 0

    def tensors(self) -> RecurrentTensors:
        """Return the tensors that it reads besides the sequence, without `auxiliary`."""
        return {
            self.first: RecurrentTensor("weights", (self.units, self.features)),
            self.first + 1: RecurrentTensor("weights", (self.units, self.units)),
            self.first + 2: RecurrentTensor("float", (self.units,)),
            self.first + 3: RecurrentTensor("state", (self.batch, self.units)),
        }

    def steps(
        self, sequence: Reals, read: Mapping[int, Reals], auxiliary: Reals | None = None
    ) -> Iterator[BoundedReals]:
        """Yield the states after each step; see `Direction`."""
        weights, recurrent, bias, state = (read[self.first + at] for at in range(4))
        hidden = BoundedReals.exactly(state)
        for at, step in enumerate(sequence):
            total = BoundedReals.exactly(step).times(weights, rounds=self.rounds)
            total = total + BoundedReals.exactly(np.broadcast_to(bias, total.values.shape))
            if auxiliary is not None:
                other = BoundedReals.exactly(auxiliary[at])
                total = total + other.times(read[self.auxiliary], rounds=self.rounds)
            total = total + hidden.times(recurrent, rounds=self.rounds)
            hidden = total.activated(self.activation)
            yield hidden


def _forward(configuration: Configuration, *, rounds: bool) -> _RnnDirection:
    return _RnnDirection(
        _FORWARD,
        batch=whole(configuration, "batch"),
        features=whole(configuration, "features"),
        units=whole(configuration, "units"),
        activation=word(configuration, "activation"),
        rounds=rounds,
    )


@dataclass(frozen=True, eq=False)
class _Rnn(RecurrentOperator):
    """One direction, over a sequence or one step."""

    def tensors(self, configuration: Configuration) -> RecurrentTensors:
        """Return the tensors that are read besides the sequence."""
        return _forward(configuration, rounds=False).tensors()

    def widths(self, configuration: Configuration) -> tuple[int, ...]:
        """Return the last dimension of each result."""
        return (whole(configuration, "units"),)

    def run(
        self,
        configuration: Configuration,
        sequence: Reals,
        read: Mapping[int, Reals],
        rounds: bool,
        tensors: Mapping[int, GraphValue],
    ) -> Sequence[Sequence[BoundedReals]]:
        """Return what the result is at each step."""
        del tensors
        return [list(_forward(configuration, rounds=rounds).steps(sequence, read))]


@dataclass(frozen=True, eq=False)
class _BidirectionalRnn(BidirectionalOperator):
    """Both directions, which may have different numbers of units."""

    def directions(
        self, configuration: Configuration, *, rounds: bool
    ) -> tuple[_RnnDirection, _RnnDirection]:
        """Return the forward and the backward direction."""
        forward = _forward(configuration, rounds=rounds)
        units = whole(configuration, "backward_units")
        ahead, back = _AUX_WEIGHTS
        return (
            replace(forward, auxiliary=ahead),
            replace(forward, first=_BACKWARD, units=units, auxiliary=back),
        )

    def tensors(self, configuration: Configuration) -> RecurrentTensors:
        """Return the tensors that are read besides the sequence, in the order of their draws."""
        found = dict(super().tensors(configuration))
        if word(configuration, "auxiliary") == "weighted":
            for each in self.directions(configuration, rounds=False):
                found[each.auxiliary] = RecurrentTensor("weights", (each.units, each.features))
        return found


def _units(name: str, weights: int) -> Place:
    return SizeOf(size_parameter(name, 17, unit="units"), 0, 2, weights)


RNNS = (
    _Rnn(
        "RNN",
        (FLOAT, DYNAMIC),
        (
            *step_places(),
            _units("units", _FORWARD),
            OptionOf(_ACTIVATION, "fusedActivationFunction"),
        ),
        read_weights=_FORWARD,
        reads=5,
        first_versions=(1, 2, 3),
    ),
    _Rnn(
        "UNIDIRECTIONAL_SEQUENCE_RNN",
        (FLOAT, DYNAMIC),
        (
            *sequence_places(),
            _units("units", _FORWARD),
            OptionOf(_ACTIVATION, "fusedActivationFunction"),
        ),
        read_weights=_FORWARD,
        reads=5,
        first_versions=(1, 2, 3),
    ),
    _BidirectionalRnn(
        "BIDIRECTIONAL_SEQUENCE_RNN",
        (FLOAT, DYNAMIC),
        (
            *sequence_places(),
            _units("units", _FORWARD),
            _units("backward_units", _BACKWARD),
            OptionOf(_ACTIVATION, "fusedActivationFunction"),
            *direction_places(_AUX, _AUX_WEIGHTS[0]),
        ),
        read_weights=_FORWARD,
        reads=12,
        first_versions=(1, 2, 3),
        second=_AUX,
        width_settings=("units", "backward_units"),
    ),
)
