"""A network as a function of its parameters, which rounds what is quantized while it computes.

Each operator is computed in float32 by its translation, and what it puts out is rounded to the
steps of its tensor and clipped to their range (Jacob et al., "Quantization and Training of Neural
Networks for Efficient Integer-Arithmetic-Only Inference", CVPR 2018, §3). Kernels add whole
numbers, so that a value halfway between two steps may be rounded the other way than here: labels
agree on nearly all inputs, and what is fitted is judged by the runtime. Gradients pass straight
through what rounds, and so reach weights, biases and the ends of ranges (Esser et al., "Learned
Step Size Quantization", arXiv 1902.08153, §2.1).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from edgeflare.diagnose.rounding_noise import WEIGHTED
from edgeflare.diagnose.tensor_ties import tied_tensors
from edgeflare.errors import UserError
from edgeflare.models.in_place_edit import InPlaceEdit
from edgeflare.models.quantized_range import QuantizedRange, range_of
from edgeflare.models.tflite_graph import Graph, GraphOp, GraphTensor
from edgeflare.repair.fitting.biases import write_in_steps
from edgeflare.repair.fitting.tensor_capture import network_inputs
from edgeflare.whitebox.array_library import jax, jnp
from edgeflare.whitebox.differentiable_network import (
    described,
    folded_constants,
    needed_layers,
    translated,
)
from edgeflare.whitebox.operator_translation import Array, TranslatedOperator, rounded

_KEEPING_VALUES = frozenset({"DEQUANTIZE", "QUANTIZE"})
"""Operators that give what they read, but for the rounding."""


_AT_ONCE = 64
"""Inputs that are evaluated together."""


class Parameters(NamedTuple):
    """What may be fitted of a network, by tensor; jax takes it as one argument.

    Attributes:
        weights: numbers of steps, whole or not, of constant weights that are quantized, and real
            values of others, in their shape.
        biases: their real biases, in their shape.
        ranges: the least and the largest value of activations that may be quantized otherwise,
            (2,), by the first tensor of those that have to be quantized alike.

    """

    weights: Mapping[int, Array]
    biases: Mapping[int, Array]
    ranges: Mapping[int, Array]


class FakeQuantizedNetwork:
    """A network whose values are computed from given parameters.

    A range that begins at zero keeps doing so: a fused activation cuts off what lies below.

    Attributes:
        graph: the network.
        outputs: the tensors whose values are computed.
        layers: the operators that they need, in execution order.
        parameters: those that the file has.

    """

    def __init__(self, graph: Graph, outputs: Sequence[int]) -> None:
        """Translate a network as far as some tensors need it.

        Args:
            graph: the network.
            outputs: tensors that operators write.

        Raises:
            UserError: it has an operator without a translation, or an activation of a type that is
                not rounded here.

        """
        self.graph, self.outputs = graph, tuple(outputs)
        self.layers = needed_layers(graph, outputs)
        self._constants = {
            tensor: _real(graph.tensors[tensor], values)
            for tensor, values in folded_constants(graph).items()
        }
        weighted = [layer for layer in self.layers if layer.name in WEIGHTED]
        made = {tensor for layer in self.layers for tensor in layer.outputs}
        tied = [
            tied_tensor.tensors
            for tied_tensor in tied_tensors(graph)
            if made.issuperset(tied_tensor.tensors)
        ]
        self._group = {tensor: group[0] for group in tied for tensor in group}
        self.parameters = Parameters(
            {constant: _in_steps(graph, constant) for constant in _constants(graph, weighted, 1)},
            {constant: self._constants[constant] for constant in _constants(graph, weighted, 2)},
            {group[0]: _ends(graph.tensors[group[0]]) for group in tied},
        )
        given = [np.zeros((1, *graph.tensors[at].shape), np.float32) for at in graph.inputs]
        jax.eval_shape(self.values, self.parameters, *given)  # refuses what has no translation

    def inputs(self, rows: NDArray[np.generic]) -> list[NDArray[np.generic]]:
        """Return what rows give each input, (n, *its shape), as `values` takes it.

        Args:
            rows: inputs as `pack_rows` makes them for the network, (n, ...).

        """
        return list(network_inputs(self.graph, rows).values())

    def values(self, parameters: Parameters, *given: NDArray[np.generic]) -> tuple[Array, ...]:
        """Return the real values of the outputs, each (n, *its shape).

        Args:
            parameters: what is computed with.
            *given: of each input what the model takes, (n, ...).

        """
        read = [
            _read(self.graph.tensors[tensor], raw)
            for tensor, raw in zip(self.graph.inputs, given, strict=True)
        ]
        constants = self._constants | dict(parameters.biases)
        for tensor, steps in parameters.weights.items():
            constants[tensor] = _of_steps(self.graph.tensors[tensor], steps)
        made: tuple[Array, ...] = jax.vmap(
            lambda *row: self._made(
                constants | dict(zip(self.graph.inputs, row, strict=True)), parameters
            )
        )(*read)
        return made

    def evaluate(self, rows: NDArray[np.generic]) -> list[NDArray[np.float32]]:
        """Return the values of the outputs with the parameters that the file has; see `values`.

        Args:
            rows: as for `inputs`.

        """
        batches = [list(batch) for batch in self.each_batch(rows)]
        return [np.concatenate(parts) for parts in zip(*batches, strict=True)]

    def each_batch(self, rows: NDArray[np.generic]) -> Iterator[tuple[NDArray[np.float32], ...]]:
        """Yield what `evaluate` returns of some inputs after the other."""
        given = self.inputs(rows)
        for begin in range(0, len(rows), _AT_ONCE):
            some = [values[begin : begin + _AT_ONCE] for values in given]
            # Of one shape, so that it is compiled once.
            filled = [np.resize(values, (_AT_ONCE, *values.shape[1:])) for values in some]
            made = self._compiled_values(self.parameters, *filled)
            yield tuple(np.asarray(value)[: len(some[0])] for value in made)

    def written(self, content: bytes, parameters: Parameters) -> bytes:
        """Return the network's file with other parameters, as long as it was.

        Args:
            content: the file.
            parameters: those that are written, rounded to their steps.

        """
        graph, edit = self.graph, InPlaceEdit(content, self.graph.source)
        steps = {}
        for tensor, first in self._group.items():
            low, high = np.asarray(parameters.ranges[first], np.float64)
            found = QuantizedRange(0.0 if first in self._from_zero else low, high)
            steps[tensor], zero_point = found.quantization
            edit.set_quantization(tensor, [steps[tensor]], [zero_point])
        for tensor, values in parameters.weights.items():
            known, raw = graph.tensors[tensor], np.asarray(values)
            if known.scales:
                raw = np.clip(np.rint(raw), -known.limits[1], known.limits[1])
            edit.set_values(tensor, raw.astype(known.dtype).reshape(known.shape))
        for layer in self.layers:
            for tensor in parameters.biases.keys() & set(layer.inputs[2:]):
                given = graph.tensors[layer.inputs[0]]
                step = steps.get(given.index, *given.scales)
                _write_bias(edit, graph, layer, np.asarray(parameters.biases[tensor]), step)
        return edit.content()

    @cached_property
    def _compiled_values(self) -> Array:
        return jax.jit(self.values)

    @cached_property
    def _from_zero(self) -> frozenset[int]:
        return frozenset(at for at, ends in self.parameters.ranges.items() if not ends[0])

    def _made(self, known: dict[int, Array], parameters: Parameters) -> tuple[Array, ...]:
        for layer in self.layers:
            for at, tensor in enumerate(layer.outputs):
                if layer.name in _KEEPING_VALUES:
                    made = known[layer.inputs[0]]
                else:
                    made = translated(_in_float(self.graph, layer, at), layer, known)
                known[tensor] = self._quantized(tensor, made, parameters)
        return tuple(known[tensor] for tensor in self.outputs)

    def _quantized(self, tensor: int, real: Array, parameters: Parameters) -> Array:
        """Return real values rounded to the steps of a tensor, and clipped to its range."""
        known = self.graph.tensors[tensor]
        if not known.scales:
            return real
        first = self._group.get(tensor)
        if first is None:
            return _nearest(known, real, *_ends(known))
        low, high = parameters.ranges[first]
        return _nearest(known, real, 0.0 if first in self._from_zero else low, high)


def _nearest(known: GraphTensor, real: Array, low: Array, high: Array) -> Array:
    """Return the nearest values that a tensor can have, given the ends of its range."""
    least, largest = map(float, known.limits)
    step = (high - low) / (largest - least)
    zero_point = jnp.clip(rounded(least - low / step), least, largest)
    return in_whole_steps(real, step, least - zero_point, largest - zero_point)


@jax.custom_vjp  # type: ignore[untyped-decorator]
def in_whole_steps(real: Array, step: Array, fewest: Array, most: Array) -> Array:
    """Return the nearest multiples of a step, from so many steps to so many."""
    return jnp.clip(jnp.round(real / step), fewest, most) * step


def _steps_taken(
    real: Array, step: Array, fewest: Array, most: Array
) -> tuple[Array, tuple[Array, ...]]:
    return in_whole_steps(real, step, fewest, most), (real, step, fewest, most)


def _straight_through(known: tuple[Array, ...], falls: Array) -> tuple[Array, ...]:
    """Return the gradient of `in_whole_steps`, as if it clipped and did not round.

    It is what jax would derive, in few passes over the values: these take most of a step's time.
    """
    real, step, fewest, most = known
    steps = real / step
    below, above = steps < fewest, steps > most
    passed = jnp.where(below | above, 0.0, falls)
    off = jnp.clip(jnp.round(steps), fewest, most) - jnp.where(below | above, 0.0, steps)
    of_fewest, of_most = (step * jnp.where(side, falls, 0.0).sum() for side in (below, above))
    return passed, (falls * off).sum(), of_fewest, of_most


in_whole_steps.defvjp(_steps_taken, _straight_through)


def _read(tensor: GraphTensor, raw: NDArray[np.generic]) -> Array:
    """Return the real values of an input, (n, *its shape)."""
    shaped = jnp.asarray(raw, jnp.float32).reshape(-1, *tensor.shape)
    if not tensor.scales:
        return shaped
    return (shaped - tensor.zero_points[0]) * np.float32(tensor.scales[0])


def _in_float(graph: Graph, one: GraphOp, at: int) -> TranslatedOperator:
    """Return an operator and one of its outputs as if nothing of it were quantized."""
    told = described(graph, one, at)
    return replace(
        told,
        inputs=[_without_steps(tensor) for tensor in told.inputs],
        output=_without_steps(told.output),
    )


def _without_steps(tensor: GraphTensor) -> GraphTensor:
    if not tensor.scales:
        return tensor
    return replace(tensor, scales=(), zero_points=(), dtype="float32")


def _constants(graph: Graph, layers: Sequence[GraphOp], place: int) -> Iterator[int]:
    """Yield the constants that layers read at a place, 1 of their weights and 2 of their biases."""
    for layer in layers:
        for tensor in layer.inputs[place : place + 1]:
            if graph.tensors[tensor].constant:
                yield tensor


def _real(tensor: GraphTensor, raw: NDArray[np.generic]) -> NDArray[np.generic]:
    return tensor.real(raw).astype(np.float32) if tensor.scales else raw


def _in_steps(graph: Graph, tensor: int) -> NDArray[np.float32]:
    known, raw = graph.tensors[tensor], graph.values(tensor).astype(np.float32)
    if known.scales and not known.holds_int8_steps:
        raise UserError(
            f"{graph.source}: {graph.describe(tensor)} has weights that are no int8 numbers of"
            " steps from zero, which are not fitted here: convert the model with another converter"
        )
    return raw


def _of_steps(tensor: GraphTensor, steps: Array) -> Array:
    """Return the real weights of numbers of steps, rounded."""
    if not tensor.scales:
        return steps
    largest = tensor.limits[1]
    along = [1] * len(tensor.shape)
    if len(tensor.scales) > 1:
        along[tensor.axis] = -1
    scales = np.asarray(tensor.scales, np.float32).reshape(along)
    return rounded(jnp.clip(steps, -largest, largest)) * scales


def _ends(tensor: GraphTensor) -> NDArray[np.float32]:
    found = range_of(tensor)
    assert found is not None  # noqa: S101 - activations of 8 bits have one scale
    return np.array([found.low, found.high], np.float32)


def _write_bias(
    edit: InPlaceEdit, graph: Graph, one: GraphOp, real: NDArray[np.generic], step: float = 0.0
) -> None:
    """Write real biases, in the steps that follow from input and weights where these have some."""
    weights, bias = (graph.tensors[tensor] for tensor in one.inputs[1:3])
    if bias.scales:
        steps = np.asarray(weights.scales, np.float64) * step
        write_in_steps(edit, bias, real.astype(np.float64).ravel(), steps)
    else:
        edit.set_values(bias.index, real.astype(bias.dtype).reshape(bias.shape))
