"""A compressed model that is fitted, its original, and the inputs that it is fitted with.

Its layers stand beside those of the original that they were made from.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from edgeflare.core.tensor import without_ones
from edgeflare.diagnose.layer_matching import match_layers
from edgeflare.diagnose.rounding_noise import WEIGHTED
from edgeflare.errors import UserError
from edgeflare.models.run_pair import DEFAULT_TASK
from edgeflare.models.tflite_graph import Graph, GraphOp

Rows = NDArray[np.generic]

FurtherInputs = Callable[[int], tuple[Rows, Rows]]
"""Returns inputs for the compressed model and the same ones for the float model, given how many are
wanted; the same for the same number."""


@dataclass(frozen=True, eq=False)
class QuantizedNetwork:
    """A compressed model as it is now, and what it is fitted to.

    Attributes:
        content: the compressed model's `.tflite` file.
        original: the float model's.
        rows: inputs to fit with, as `pack_rows` makes them for the compressed model: (n, ...).
        original_rows: the same inputs, for the float model.
        task: name of the task that reads the outputs.
        carried: outputs of the compressed model that are its state at the next step.
        further: returns others than these, as many as are wanted where there are so many; None
            where there are no more.

    """

    content: bytes
    original: bytes
    rows: NDArray[np.generic]
    original_rows: NDArray[np.generic]
    task: str = DEFAULT_TASK
    carried: frozenset[int] = frozenset()
    further: FurtherInputs | None = None

    @cached_property
    def graph(self) -> Graph:
        """The compressed model's graph."""
        return Graph(self.content, "the compressed model")

    @cached_property
    def original_graph(self) -> Graph:
        """The float model's graph."""
        return Graph(self.original, "the original")

    @cached_property
    def layers(self) -> tuple[MatchedLayer, ...]:
        """The layers that have a counterpart, in execution order; see `matched_layers`."""
        return matched_layers(self.graph, self.original_graph)

    def with_inputs(self, wanted: int) -> QuantizedNetwork:
        """Return the network with as many inputs as are wanted, where more than now can be made."""
        if self.further is None or wanted <= len(self.rows):
            return self
        rows, original_rows = self.further(wanted)
        if len(rows) <= len(self.rows):
            return self
        return replace(self, rows=rows, original_rows=original_rows)

    def with_content(self, content: bytes) -> QuantizedNetwork:
        """Return the network with another file in the place of the compressed model's."""
        return replace(self, content=content)


@dataclass(frozen=True, slots=True, eq=False)
class MatchedLayer:
    """A layer of a compressed model and the original's that it was made from.

    Attributes:
        operator: position in the compressed graph.
        original: position in the original's.
        name: "CONV_2D".
        inputs: the activations that it reads, in the compressed graph.
        output: the tensor that it writes, the first one where there are several.
        original_inputs: the activations that the original's layer reads, in the same order.
        original_output: the tensor that the original's layer writes.
        weights: the constant with the weights, in the compressed graph; None where it has none.
        bias: the constant with the biases, likewise.
        float_weights: the original's weights, in the shape of the compressed ones; None where
            either layer has none, or theirs do not fit each other.
        float_bias: the original's biases, (channels,), zeros where it has none; None where the
            compressed layer has no biases.

    """

    operator: int
    original: int
    name: str
    inputs: tuple[int, ...]
    output: int
    original_inputs: tuple[int, ...]
    original_output: int
    weights: int | None
    bias: int | None
    float_weights: NDArray[np.float32] | None
    float_bias: NDArray[np.float32] | None


def matched_layers(compressed: Graph, original: Graph) -> tuple[MatchedLayer, ...]:
    """Return the layers of a compressed model that have a counterpart, in execution order.

    Args:
        compressed: graph of the compressed model.
        original: the graph of the float model.

    """
    found = match_layers(compressed, original)
    layers = tuple(
        _matched(compressed, compressed.operators[operator], original, original.operators[there])
        for operator, (there, _) in sorted(found.items())
        if compressed.operators[operator].outputs  # what writes a variable has none
    )
    known = {
        matched_layer.operator
        for matched_layer in layers
        if matched_layer.float_weights is not None
    }
    for layer in compressed.layers:
        if layer.name not in WEIGHTED or layer.index in known:
            continue
        if constant_of(compressed, layer, 0) is not None:
            name = compressed.tensors[layer.outputs[0]].name
            raise UserError(
                f"{compressed.source}: operator {layer.index}, {layer.name} {name!r}, has no"
                f" counterpart in {original.source} with weights of its shape: name the float"
                " model that it was converted from"
            )
    return layers


def _matched(compressed: Graph, one: GraphOp, original: Graph, other: GraphOp) -> MatchedLayer:
    weighted = one.name in WEIGHTED and other.name in WEIGHTED
    weights = constant_of(compressed, one, 0) if weighted else None
    bias = constant_of(compressed, one, 1) if weighted else None
    return MatchedLayer(
        operator=one.index,
        original=other.index,
        name=one.name,
        inputs=compressed.fed(one),
        output=one.outputs[0],
        original_inputs=original.fed(other),
        original_output=other.outputs[0],
        weights=weights,
        bias=bias,
        float_weights=None if weights is None else _weights(compressed, weights, original, other),
        float_bias=None if bias is None else _bias(compressed, bias, original, other),
    )


def _weights(
    compressed: Graph, weights: int, original: Graph, other: GraphOp
) -> NDArray[np.float32] | None:
    there = constant_of(original, other, 0)
    if there is None:
        return None
    shape, tensor = compressed.tensors[weights].shape, original.tensors[there]
    if without_ones(shape) != without_ones(tensor.shape):
        return None
    return tensor.real(original.values(there)).astype(np.float32).reshape(shape)


def _bias(
    compressed: Graph, bias: int, original: Graph, other: GraphOp
) -> NDArray[np.float32] | None:
    there = constant_of(original, other, 1)
    size = compressed.tensors[bias].size
    if there is None:
        return np.zeros(size, np.float32)
    values = original.tensors[there].real(original.values(there)).astype(np.float32).ravel()
    return values if values.size == size else None


def constant_of(graph: Graph, one: GraphOp, place: int) -> int | None:
    """Return the constant with an operator's weights, place 0, or its biases, place 1.

    One that a DEQUANTIZE writes is the constant that it reads.
    """
    constants = list(_constants(graph, one))
    return constants[place] if place < len(constants) else None


def _constants(graph: Graph, one: GraphOp) -> Iterator[int]:
    """Yield the constants of an operator with weights, the output shape of some left out."""
    fed = graph.fed(one)
    for tensor in one.inputs[1 if one.name == "TRANSPOSE_CONV" else 0 :]:
        maker = graph.made_by.get(tensor)
        behind = tensor if maker is None else graph.operators[maker].inputs[0]
        if tensor not in fed and graph.tensors[behind].constant:
            yield behind
