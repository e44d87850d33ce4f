"""What the units of a pair do on one input: activations, errors, and what these do to the margin.

A unit is a channel of a layer that both models have. Of each behaviour it has one number for each
input, whatever the size of the layer.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray

from edgeflare.diagnose.activations_apart import ActivationApart, activation_apart
from edgeflare.diagnose.inspect.behaviour_block import ERROR_GRADIENT, UnitLayer
from edgeflare.diagnose.layer_matching import match_layers
from edgeflare.errors import UserError
from edgeflare.models.tflite_graph import GraphTensor

if TYPE_CHECKING:  # it needs an extra
    from edgeflare.whitebox.differentiable_network import DifferentiableNetwork

ACTIVATION: Final = "activation"
"""The mean of a channel in the compressed model, in real values."""

ERROR: Final = "error"
"""The mean of a channel's error: the original's real values less those of the compressed model."""

BEHAVIOURS: Final = (ACTIVATION, ERROR, ERROR_GRADIENT)

Real = NDArray[np.float64]
Row = NDArray[np.generic]

CompressedTensors = Callable[[Row], Mapping[int, Row]]
"""Returns the raw values of the compressed model's tensors for a row, by tensor."""


@dataclass(frozen=True, slots=True)
class InputBehaviours:
    """What all units do on one input.

    Attributes:
        values: (units,) float32, by behaviour.
        margin_error: the original's margin less the compressed model's, in scores.

    """

    values: Mapping[str, NDArray[np.float32]]
    margin_error: float


@dataclass(frozen=True, slots=True)
class _MatchedLayer:
    """The output of one layer in both models."""

    compressed: GraphTensor
    original: GraphTensor
    apart: ActivationApart


class UnitBehaviours:
    """The behaviours of a pair's units.

    Attributes:
        layers: layers whose channels are the units, in execution order: those that both models have
            and that compute something, without the layer of the scores and what follows it.

    """

    def __init__(
        self,
        original: DifferentiableNetwork,
        compressed: DifferentiableNetwork,
        behaviours: Sequence[str],
        tensors_of: CompressedTensors,
    ) -> None:
        """Match the layers of two networks.

        Args:
            original: translation of the original.
            compressed: translation of the compressed model.
            behaviours: names of those that are wanted.
            tensors_of: computes the compressed model's tensors, on the host or on a device.

        Raises:
            UserError: no layer is in both.

        """
        self._original, self._compressed = original, compressed
        self._behaviours = tuple(behaviours)
        self._tensors_of = tensors_of
        ends = {compressed.scores, compressed.graph.outputs[0]}
        matched = match_layers(compressed.graph, original.graph)
        self._matched: list[_MatchedLayer] = []
        layers: list[UnitLayer] = []
        for op, (original_op, _) in matched.items():
            tensor = compressed.graph.operators[op].outputs[0]
            if op not in compressed.neurons or original_op not in original.neurons:
                continue
            if tensor in ends:
                continue
            theirs = original.graph.operators[original_op].outputs[0]
            self._matched.append(
                _MatchedLayer(
                    compressed.graph.tensors[tensor],
                    original.graph.tensors[theirs],
                    activation_apart(compressed.graph, op, original.graph, original_op),
                )
            )
            name = compressed.graph.operators[op].name
            layers.append(UnitLayer(name, op, compressed.neurons[op]))
        if not layers:
            raise UserError(
                "no layer but that of the scores is in both models: there are no units to inspect"
            )
        self.layers = tuple(layers)

    def of(self, original_row: Row, compressed_row: Row) -> InputBehaviours:
        """Return what the units do on one input.

        Args:
            original_row: the input as the original takes it.
            compressed_row: as the compressed model does.

        """
        exact = self._original.tensors(original_row)
        got = self._tensors_of(compressed_row)
        weights, error = self._margin(exact, got)
        gradients: Mapping[int, Real] = {}
        if ERROR_GRADIENT in self._behaviours:
            gradients = self._original.tensor_gradients(original_row, weights)
        found: dict[str, list[Real]] = {name: [] for name in self._behaviours}
        for layer in self._matched:
            apart = layer.apart
            activation = apart.of_compressed(layer.compressed.real(got[layer.compressed.index]))
            wanted = apart.of_original(layer.original.real(exact[layer.original.index]))
            wrong = wanted - activation
            for name, values in found.items():
                values.append(self._of_layer(name, layer, activation, wrong, gradients))
        return InputBehaviours(
            {name: np.concatenate(values).astype(np.float32) for name, values in found.items()},
            error,
        )

    @staticmethod
    def _of_layer(
        name: str,
        layer: _MatchedLayer,
        activation: Real,
        wrong: Real,
        gradients: Mapping[int, Real],
    ) -> Real:
        """Return one behaviour of a layer's channels: (channels,)."""
        if name == ERROR_GRADIENT:
            effect = wrong * gradients[layer.original.index]
            return np.asarray(effect.reshape(-1, wrong.shape[-1]).sum(0))
        values = activation if name == ACTIVATION else wrong
        return np.asarray(values.reshape(-1, values.shape[-1]).mean(0))

    def _margin(self, exact: Mapping[int, Row], got: Mapping[int, Row]) -> tuple[Real, float]:
        """Return the weights of the scores that make the margin, and the margin's error.

        The margin is the score of the original's label less that of the compressed model's, or of
        its second best class where both labels are equal.
        """
        wanted, other = (
            network.graph.tensors[network.scores].real(values[network.scores]).ravel()
            for network, values in ((self._original, exact), (self._compressed, got))
        )
        right, wrong = int(wanted.argmax()), int(other.argmax())
        if right == wrong:
            beside = other.copy()
            beside[right] = -np.inf
            wrong = int(beside.argmax())
        weights = np.zeros(wanted.size)
        weights[[right, wrong]] = 1.0, -1.0
        return weights, float((wanted - other) @ weights)
