"""The float32 weights of a `.tflite`, changed in the file itself, without TensorFlow."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from ai_edge_litert import schema_py_generated as schema
from numpy.typing import NDArray

from edgeflare.errors import UserError
from edgeflare.models.tflite_graph import Graph
from edgeflare.models.tflite_writer import written

_WEIGHTED = ("CONV_2D", "DEPTHWISE_CONV_2D", "FULLY_CONNECTED")

Values = NDArray[np.float32]


class Weights:
    """The kernels of a model's layers, without their biases.

    Attributes:
        layers: the kernels' tensors, in the order in which the model runs their layers.

    """

    def __init__(self, content: bytes, source: str = "the model") -> None:
        """Read a file.

        Raises:
            UserError: it cannot be read, or has no float32 weights.

        """
        self._content = content
        graph = Graph(content, source)
        kernels = [one.inputs[1] for one in graph.operators if one.name in _WEIGHTED]
        self.layers = tuple(
            tensor
            for tensor in dict.fromkeys(kernels)
            if graph.tensors[tensor].constant and graph.tensors[tensor].dtype == "float32"
        )
        if not self.layers:
            raise UserError(f"{source} has no float32 weights: take a float model")
        self.values: Mapping[int, Values] = {
            tensor: graph.values(tensor).astype(np.float32) for tensor in self.layers
        }

    def with_values(self, values: Mapping[int, Values]) -> bytes:
        """Return the file with other values for some of its tensors."""
        model = schema.ModelT.InitFromPackedBuf(self._content, 0)
        for tensor, changed in values.items():
            write_constant(model, tensor, changed.astype(np.float32))
        return written(model)


def write_constant(model: Any, tensor: int, values: NDArray[np.generic]) -> None:
    """Give a constant of a model's main graph other values, and no other tensor."""
    tensors = [one for graph in model.subgraphs for one in graph.tensors]
    written = model.subgraphs[0].tensors[tensor]
    buffer = schema.BufferT()
    buffer.data = np.frombuffer(values.tobytes(), np.uint8)
    if sum(one.buffer == written.buffer for one in tensors) > 1:
        written.buffer = len(model.buffers)
        model.buffers.append(buffer)
    else:
        model.buffers[written.buffer] = buffer


def mutated(
    weights: Weights, percents: Sequence[int], rng: np.random.Generator, by: float = 0.1
) -> dict[int, bytes]:
    """Change so many percent of all weights by ±10 %, as §5.4.1 of the paper does.

    The sets are nested: what is changed at 10 % is changed in the same way at 20 %. So models of
    one generator differ by how much was changed, and not also by which weights it hit.

    Args:
        weights: of the original.
        percents: how many, for each model that is returned.
        rng: draws the order in which weights are changed, and up or down for each.
        by: how much of its value a weight is changed by.

    """
    sizes = [weights.values[tensor].size for tensor in weights.layers]
    flat = np.concatenate([weights.values[tensor].ravel() for tensor in weights.layers])
    order = rng.permutation(flat.size)
    factors = 1.0 + by * rng.choice((-1.0, 1.0), flat.size)
    models = {}
    for percent in percents:
        chosen = order[: round(flat.size * percent / 100)]
        changed = flat.copy()
        changed[chosen] = flat[chosen] * factors[chosen]
        parts = np.split(changed, np.cumsum(sizes)[:-1])
        models[percent] = weights.with_values(
            {
                tensor: part.reshape(weights.values[tensor].shape)
                for tensor, part in zip(weights.layers, parts, strict=True)
            }
        )
    return models


def pruned(weights: Weights, layer: int, share: float) -> bytes:
    """Set the smallest weights of one layer to 0, as §5.4.2 of the paper does.

    Args:
        weights: of the original.
        layer: position among the layers, from 0.
        share: how many of the layer's weights, from 0 to 1.

    """
    tensor = weights.layers[layer]
    values = weights.values[tensor].copy()
    smallest = np.argsort(np.abs(values), axis=None, kind="stable")[: round(values.size * share)]
    values.ravel()[smallest] = 0.0
    return weights.with_values({tensor: values})
