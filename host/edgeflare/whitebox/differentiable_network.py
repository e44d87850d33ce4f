"""A `.tflite` network as a function that can be differentiated, computed by jax.

Values are what XNNPACK computes: those of quantized tensors are equal, those of float ones within
float32's rounding. Gradients pass straight through what rounds. `translation_check` compares the
two before anything relies on it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property, partial
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from edgeflare.errors import UserError
from edgeflare.models.graph_scores import scores_of
from edgeflare.models.tflite_graph import Graph, GraphOp, GraphTensor
from edgeflare.python_callable import reason
from edgeflare.whitebox.array_library import jax, jnp
from edgeflare.whitebox.baselines.neuron_coverage import WITHOUT_NEURONS, covered_neurons
from edgeflare.whitebox.operator_translation import Array, TranslatedOperator
from edgeflare.whitebox.operator_translations import TRANSLATIONS

Real = NDArray[np.float64]


class DifferentiableNetwork:
    """A network with one input, which is asked about one input at a time.

    Its *neurons* are the channels of its layers, in execution order; what a neuron has is the mean
    of its channel. Layers that have no values of their own have none, nor those without channels.

    Attributes:
        graph: the network.
        scores: the tensor whose values are its scores: the output, before a last softmax.
        layers: the operators that are translated, in execution order.
        neurons: how many neurons each layer has, by the operator's index.

    """

    def __init__(self, graph: Graph) -> None:
        """Translate a network.

        Raises:
            UserError: it has several inputs, an operator or a type without a translation, or an
                output that no operator makes.

        """
        if len(graph.inputs) != 1:
            raise UserError(
                f"{graph.source} has {len(graph.inputs)} inputs, and a network that is"
                " differentiated here has one"
            )
        if not {*graph.outputs[:1]} & graph.made_by.keys():
            raise UserError(f"{graph.source}: no operator makes its output: convert it again")
        self.graph = graph
        self.scores = scores_of(graph)
        self.layers = needed_layers(graph, graph.outputs[:1])
        self._constants = folded_constants(graph)
        self._made = [
            (layer, at, tensor) for layer in self.layers for at, tensor in enumerate(layer.outputs)
        ]
        self.neurons: Mapping[int, int] = {
            layer.index: graph.tensors[layer.outputs[0]].shape[-1]
            for layer in self.layers
            if layer.name not in WITHOUT_NEURONS and graph.tensors[layer.outputs[0]].shape
        }
        row = np.zeros(graph.tensors[graph.inputs[0]].shape, np.float32)
        jax.eval_shape(partial(self._values, shifts={}), row)  # refuses what has no translation

    @property
    def hybrid(self) -> bool:
        """Whether it has operators that take float values and have 8-bit weights."""
        tensors = self.graph.tensors
        return any(
            not tensors[layer.outputs[0]].scales
            and any(tensors[at].scales for at in layer.inputs[1:2])
            for layer in self.layers
            if layer.name != "DEQUANTIZE"
        )

    def tensors(self, row: NDArray[np.generic]) -> dict[int, NDArray[np.float32]]:
        """Return the raw outputs of all layers, by tensor of the graph.

        Args:
            row: as the model takes it, (1, *shape) or without its first dimension.

        """
        made = self._compiled_values(self._given(row))
        return {tensor: np.asarray(values) for tensor, values in made.items()}

    def evaluate(self, row: NDArray[np.generic]) -> tuple[NDArray[np.generic], Real]:
        """Return the network's first output as the runtime gives it, and its scores.

        Args:
            row: as for `tensors`.

        Returns:
            The raw output in its shape and dtype, and the real scores, (choices,).

        """
        output, scores = self._compiled_answer(self._given(row))
        dtype = self.graph.tensors[self.graph.outputs[0]].dtype
        return np.asarray(output).astype(dtype), np.asarray(scores, np.float64)

    def gradient(
        self,
        row: NDArray[np.generic],
        weights: Real,
        neurons: Mapping[int, float] = MappingProxyType({}),
    ) -> Real:
        """Return the gradient of a weighted sum of scores and neurons.

        Args:
            row: as for `tensors`.
            weights: weights of the scores, (choices,).
            neurons: weights of single neurons, by their numbers among all of them.

        Returns:
            By the real values of the network's input, in the input's shape.

        Raises:
            UserError: there is no neuron of such a number.

        """
        given, scores = self._given(row), jnp.asarray(weights, jnp.float32)
        if neurons:
            count = sum(self.neurons.values())
            if beyond := sorted(set(neurons) - set(range(count))):
                raise UserError(
                    f"a gradient is asked for by the neuron {beyond[0]}, and the network has"
                    f" {count}, numbered from 0"
                )
            wanted = np.zeros(count, np.float32)
            wanted[list(neurons)] = list(neurons.values())
            found = self._compiled_neuron_gradient(given, scores, wanted)
        else:
            found = self._compiled_gradient(given, scores)
        return np.asarray(found, np.float64) / self._unit(self.graph.inputs[0])

    def covered(self, row: NDArray[np.generic], threshold: float) -> NDArray[np.bool_]:
        """Return which neurons an input covers: (neurons,); see `covered_neurons`."""
        made = self.tensors(row)
        outputs = (made[layer.outputs[0]] for layer in self.layers if layer.index in self.neurons)
        return covered_neurons(outputs, threshold)

    def tensor_gradients(self, row: NDArray[np.generic], weights: Real) -> dict[int, Real]:
        """Return the gradient of a weighted sum of scores by the real outputs of all layers.

        Args:
            row: as for `tensors`.
            weights: (choices,).

        Returns:
            By tensor of the graph, in its shape.

        """
        shifts = {
            tensor: np.zeros(self.graph.tensors[tensor].shape, np.float32)
            for _, _, tensor in self._made
        }
        found = self._compiled_tensor_gradients(
            shifts, self._given(row), jnp.asarray(weights, jnp.float32)
        )
        return {
            tensor: np.asarray(values, np.float64) / self._unit(tensor)
            for tensor, values in found.items()
        }

    def _given(self, row: NDArray[np.generic]) -> Array:
        return jnp.asarray(row.reshape(self.graph.tensors[self.graph.inputs[0]].shape), jnp.float32)

    def _unit(self, tensor: int) -> float:
        """Return how much one raw step of a tensor is."""
        scales = self.graph.tensors[tensor].scales
        return scales[0] if scales else 1.0

    def _values(self, row: Array, shifts: Mapping[int, Array]) -> dict[int, Array]:
        """Return the raw outputs of all layers, and what a last softmax reads, be it the input.

        `shifts` are added to outputs, by tensor.
        """
        known: dict[int, Array] = {**self._constants, self.graph.inputs[0]: row}
        for layer, at, tensor in self._made:
            made = translated(described(self.graph, layer, at), layer, known)
            known[tensor] = made + shifts[tensor] if tensor in shifts else made
        wanted = (*(tensor for _, _, tensor in self._made), self.scores)
        return {tensor: known[tensor] for tensor in wanted}

    def _real_scores(self, values: Mapping[int, Array]) -> Array:
        return self._real(self.scores, values[self.scores]).reshape(-1)

    def _real(self, tensor: int, raw: Array) -> Array:
        known = self.graph.tensors[tensor]
        if not known.scales:
            return raw
        return (raw - np.float32(known.zero_points[0])) * np.float32(known.scales[0])

    def _neuron_values(self, values: Mapping[int, Array]) -> Array:
        means = [
            self._real(layer.outputs[0], values[layer.outputs[0]])
            .reshape(-1, self.neurons[layer.index])
            .mean(0)
            for layer in self.layers
            if layer.index in self.neurons
        ]
        return jnp.concatenate(means)

    @cached_property
    def _compiled_values(self) -> Array:
        return jax.jit(lambda row: self._values(row, {}))

    @cached_property
    def _compiled_answer(self) -> Array:
        def answer(row: Array) -> tuple[Array, Array]:
            values = self._values(row, {})
            return values[self.graph.outputs[0]], self._real_scores(values)

        return jax.jit(answer)

    @cached_property
    def _compiled_gradient(self) -> Array:
        def weighted(row: Array, weights: Array) -> Array:
            return (self._real_scores(self._values(row, {})) * weights).sum()

        return jax.jit(jax.grad(weighted))

    @cached_property
    def _compiled_neuron_gradient(self) -> Array:
        def weighted(row: Array, weights: Array, neurons: Array) -> Array:
            values = self._values(row, {})
            scores = (self._real_scores(values) * weights).sum()
            return scores + (self._neuron_values(values) * neurons).sum()

        return jax.jit(jax.grad(weighted))

    @cached_property
    def _compiled_tensor_gradients(self) -> Array:
        def weighted(shifts: Mapping[int, Array], row: Array, weights: Array) -> Array:
            return (self._real_scores(self._values(row, shifts)) * weights).sum()

        return jax.jit(jax.grad(weighted))


def needed_layers(graph: Graph, outputs: Sequence[int]) -> tuple[GraphOp, ...]:
    """Return the layers that tensors are made by, in execution order.

    Args:
        graph: the network.
        outputs: the tensors.

    Raises:
        UserError: one of the layers has no translation.

    """
    wanted, needed = set(outputs), []
    for layer in reversed(graph.layers):
        if wanted.intersection(layer.outputs):
            _require_translation(graph, layer)
            needed.append(layer)
            wanted.update(_read(layer))
    return tuple(reversed(needed))


def folded_constants(graph: Graph) -> dict[int, NDArray[np.generic]]:
    """Return the constants of a graph, and what operators make of constants, by tensor.

    Those of 8 bits are float32, since differences of them do not fit 8 bits.

    Raises:
        UserError: what makes one has no translation.

    """
    constants = {
        tensor.index: _constant(graph, tensor) for tensor in graph.tensors if tensor.constant
    }
    for operator in graph.operators:
        if operator.index in graph.preparing:
            _require_translation(graph, operator)
            constants[operator.outputs[0]] = np.asarray(
                translated(described(graph, operator), operator, constants)
            )
    return constants


def described(graph: Graph, operator: GraphOp, at: int = 0) -> TranslatedOperator:
    """Return what the translation of an operator is told of it.

    Args:
        graph: the network.
        operator: the operator.
        at: position of the tensor that is wanted among those that it writes.

    """
    return TranslatedOperator(
        operator.name,
        f"{graph.source}: operator {operator.index}, {operator.name}",
        graph.options(operator.index),
        [graph.tensors[tensor] for tensor in operator.inputs],
        graph.tensors[operator.outputs[at]],
        at,
    )


def translated(told: TranslatedOperator, operator: GraphOp, known: Mapping[int, Array]) -> Array:
    """Return the output of an operator.

    Args:
        told: what its translation is told of it.
        operator: the operator.
        known: the values of all tensors that it reads, by tensor.

    Raises:
        UserError: it cannot be differentiated as it is.

    """
    try:
        made = TRANSLATIONS[operator.name](told, [known[tensor] for tensor in _read(operator)])
    except UserError:
        raise
    except Exception as error:  # whatever jax raises of shapes, types or options unlike all known
        told.refuse(reason(error))
    if made.shape != told.output.shape:
        told.refuse(f"it makes {made.shape}, and its output is {told.output.shape}")
    return made


def _constant(graph: Graph, tensor: GraphTensor) -> NDArray[np.generic]:
    values = graph.values(tensor.index)
    return values.astype(np.float32) if tensor.scales and values.dtype.itemsize == 1 else values


def _read(operator: GraphOp) -> tuple[int, ...]:
    """Return the tensors whose values an operator needs: RESHAPE knows its shape from the file."""
    return operator.inputs[:1] if operator.name == "RESHAPE" else operator.inputs


def _require_translation(graph: Graph, operator: GraphOp) -> None:
    told = described(graph, operator)
    if operator.name not in TRANSLATIONS:
        raise UserError(
            f"{told.place}, has no translation to take a gradient of; those with one are"
            f" {', '.join(TRANSLATIONS)}"
        )
    if told.output.dtype not in ("float32", "int8", "uint8"):
        told.refuse(f"it writes {told.output.dtype or 'values of an unknown type'}")
