"""RNN, UNIDIRECTIONAL_SEQUENCE_RNN and BIDIRECTIONAL_SEQUENCE_RNN.

At each step h' = f(W·x + R·h + b), with f the activation; h' is the result and the next state. The
backward direction of a bidirectional one begins with the last step. A second sequence is multiplied
with weights of its own in both directions, or read by the backward direction in place of the first.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from edgeflare.conform.operator_graph import GraphValue
from edgeflare.conform.operators.recurrent.bounded_reals import BoundedReals
from edgeflare.conform.operators.recurrent.recurrent_operator import (
    RecurrentOperator,
    RecurrentTensor,
    RecurrentTensors,
    concatenated,
    sequence_places,
    step_places,
)
from edgeflare.conform.operators.window_settings import size_parameter
from edgeflare.conform.specification.activation_tensors import DYNAMIC, FLOAT
from edgeflare.conform.specification.model_parts import (
    ModelParts,
    OptionOf,
    Place,
    ReadFrom,
    SizeOf,
)
from edgeflare.conform.specification.operand import Reals
from edgeflare.conform.specification.parameter import Choice, Configuration, whole, word, yes

_ACTIVATION: Final = Choice("activation", ("TANH", "NONE", "RELU", "RELU6"))
"""Activations that kernels have, that which converters write first."""

_FORWARD, _BACKWARD = 1, 5
"""Where the weights, recurrent weights, bias and state of a direction begin."""

_AUX, _AUX_WEIGHTS = 9, (10, 11)
"""The places of a second sequence, and of its weights forward and backward."""


def _direction(first: int, batch: int, features: int, units: int) -> RecurrentTensors:
    return {
        first: RecurrentTensor("weights", (units, features)),
        first + 1: RecurrentTensor("weights", (units, units)),
        first + 2: RecurrentTensor("float", (units,)),
        first + 3: RecurrentTensor("state", (batch, units)),
    }


def _steps(
    sequence: Sequence[Reals],
    read: Mapping[int, Reals],
    first: int,
    activation: str,
    rounds: bool,
    auxiliary: tuple[Sequence[Reals], Reals] | None = None,
) -> Iterator[BoundedReals]:
    """Yield the states after each step of a direction, whose tensors begin at a place.

    Args:
        sequence: (batch, features) of each step.
        read: all tensors by their places.
        first: the place of the direction's weights.
        activation: of the schema.
        rounds: whether what is multiplied with weights is rounded.
        auxiliary: a second sequence, and its weights.

    """
    weights, recurrent, bias, state = (read[first + at] for at in range(4))
    hidden = BoundedReals.exactly(state)
    for at, step in enumerate(sequence):
        total = BoundedReals.exactly(step).times(weights, rounds=rounds)
        total = total + BoundedReals.exactly(np.broadcast_to(bias, total.values.shape))
        if auxiliary is not None:
            other = BoundedReals.exactly(auxiliary[0][at])
            total = total + other.times(auxiliary[1], rounds=rounds)
        total = total + hidden.times(recurrent, rounds=rounds)
        hidden = total.activated(activation)
        yield hidden


@dataclass(frozen=True, eq=False)
class _Rnn(RecurrentOperator):
    """One direction, over a sequence or one step."""

    def tensors(self, configuration: Configuration) -> RecurrentTensors:
        """Return the tensors that are read besides the sequence."""
        batch, features, units = (
            whole(configuration, name) for name in ("batch", "features", "units")
        )
        return _direction(_FORWARD, batch, features, units)

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
        activation = word(configuration, "activation")
        return [list(_steps(list(sequence), read, _FORWARD, activation, rounds))]


def _auxiliary(parts: ModelParts) -> str:
    if _AUX_WEIGHTS[0] in parts.tensors:
        return "weighted"
    return "backward" if _AUX in parts.tensors else "none"


AUXILIARY: Final = Choice("auxiliary", ("none", "weighted", "backward"))
"""What a second sequence is for."""


@dataclass(frozen=True, eq=False)
class _BidirectionalRnn(RecurrentOperator):
    """Both directions."""

    def tensors(self, configuration: Configuration) -> RecurrentTensors:
        """Return the tensors that are read besides the sequence."""
        batch, steps, features = (
            whole(configuration, name) for name in ("batch", "steps", "features")
        )
        units = [whole(configuration, name) for name in ("units", "backward_units")]
        found = {
            **_direction(_FORWARD, batch, features, units[0]),
            **_direction(_BACKWARD, batch, features, units[1]),
        }
        if word(configuration, "auxiliary") != "none":
            major = yes(configuration, "time_major")
            shape = (steps, batch, features) if major else (batch, steps, features)
            found[_AUX] = RecurrentTensor("given", shape)
        if word(configuration, "auxiliary") == "weighted":
            for at, count in zip(_AUX_WEIGHTS, units, strict=True):
                found[at] = RecurrentTensor("weights", (count, features))
        return found

    def widths(self, configuration: Configuration) -> tuple[int, ...]:
        """Return the last dimension of each result."""
        units = [whole(configuration, name) for name in ("units", "backward_units")]
        return (sum(units),) if yes(configuration, "merged") else tuple(units)

    def run(
        self,
        configuration: Configuration,
        sequence: Reals,
        read: Mapping[int, Reals],
        rounds: bool,
        tensors: Mapping[int, GraphValue],
    ) -> Sequence[Sequence[BoundedReals]]:
        """Return what each result is at each step."""
        del tensors
        activation, use = (word(configuration, name) for name in ("activation", "auxiliary"))
        steps = list(sequence)
        second = list(read[_AUX]) if use == "weighted" else None
        begun = list(read[_AUX]) if use == "backward" else steps

        def direction(
            first: int, given: Sequence[Reals], other: Sequence[Reals] | None, weights: int
        ) -> list[BoundedReals]:
            auxiliary = None if other is None else (other, read[weights])
            return list(_steps(given, read, first, activation, rounds, auxiliary))

        forward = direction(_FORWARD, steps, second, _AUX_WEIGHTS[0])
        last = None if second is None else second[::-1]
        backward = direction(_BACKWARD, begun[::-1], last, _AUX_WEIGHTS[1])[::-1]
        if yes(configuration, "merged"):
            return [[concatenated(both) for both in zip(forward, backward, strict=True)]]
        return [forward, backward]


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
            OptionOf(Choice("merged", (False, True)), "mergeOutputs", default=False),
            ReadFrom(AUXILIARY, _auxiliary),
        ),
        read_weights=_FORWARD,
        reads=12,
        first_versions=(1, 2, 3),
    ),
)
