"""Int8 files quantized anew from their originals, as different converters would do it.

Nothing is wrong with what comes out: each weight and bias is the original's, rounded to the
nearest step. What differs between converters is how they choose the steps, and in what precision
and which way they round.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from edgeflare.diagnose.layer_matching import match_layers
from edgeflare.models.tflite_graph import Graph, GraphOp
from tampering import edited
from tflite_weights import write_constant

_WEIGHTED = ("CONV_2D", "DEPTHWISE_CONV_2D", "FULLY_CONNECTED")
_FIXED = ("SOFTMAX", "LOGISTIC")
"""Operators whose output has the scale that the format prescribes."""


@dataclass(frozen=True)
class Converter:
    """A way of quantizing.

    Attributes:
        per_tensor: one scale for all weights of a layer, not one for each of its channels.
        ranges: how wide activations' ranges are, compared with the file's.
        single: biases are divided and rounded in float32, not in float64.
        half_away: halves are rounded away from zero, not to even.

    """

    per_tensor: bool = False
    ranges: float = 1.0
    single: bool = False
    half_away: bool = False


CONVERTERS = {
    "biases in float32": Converter(single=True),
    "halves away from zero": Converter(single=True, half_away=True),
    "biases in float64": Converter(),
    "one scale for a layer": Converter(per_tensor=True, single=True),
    "ranges half as wide again": Converter(ranges=1.5),
    "ranges cut by a fifth": Converter(ranges=0.8, single=True),
}


def requantized(original: bytes, compressed: bytes, converter: Converter) -> bytes:
    """Return an int8 model with the original's weights and biases, quantized anew."""
    graph, source = Graph(compressed), Graph(original)
    matched = match_layers(graph, source)
    scales = _activation_scales(graph, converter)

    def change(model: Any) -> None:
        tensors = model.subgraphs[0].tensors
        for tensor, scale in scales.items():
            tensors[tensor].quantization.scale = np.array([scale], np.float32)
        for mine, (yours, _) in matched.items():
            if graph.operators[mine].name in _WEIGHTED:
                given = scales[graph.operators[mine].inputs[0]]
                _quantize(model, graph, graph.operators[mine], given, converter)(
                    [source.values(one) for one in source.operators[yours].inputs[1:3]]
                )

    return edited(compressed, change)


def _activation_scales(graph: Graph, converter: Converter) -> dict[int, np.float32]:
    fixed = {tensor for one in graph.layers if one.name in _FIXED for tensor in one.outputs}
    fixed |= set(graph.inputs)
    return {
        tensor.index: np.float32(
            tensor.scales[0] * (1.0 if tensor.index in fixed else converter.ranges)
        )
        for tensor in graph.tensors
        if tensor.scales and not tensor.constant
    }


def _quantize(model: Any, graph: Graph, one: GraphOp, given: np.float32, how: Converter) -> Any:
    """Return what writes an operator's weights and bias, and their scales."""
    weights = graph.tensors[one.inputs[1]]
    tensors = model.subgraphs[0].tensors

    def write(values: list[NDArray[Any]]) -> None:
        axis = tuple(at for at in range(values[0].ndim) if at != weights.axis)
        largest = np.abs(values[0]).max(axis=None if how.per_tensor else axis, keepdims=True)
        steps = (np.maximum(largest, np.float32(1e-30)) / np.float32(127)).astype(np.float32)
        raw = np.clip(_rounded(values[0] / steps, how), -127, 127)
        write_constant(model, weights.index, raw.astype(np.int8))
        quantization = tensors[weights.index].quantization
        quantization.scale = steps.ravel()
        quantization.zeroPoint = np.zeros(steps.size, np.int64)
        bias = tensors[one.inputs[2]].quantization
        bias.scale = (given * steps.ravel()).astype(np.float32)
        bias.zeroPoint = np.zeros(steps.size, np.int64)
        real = values[1] if how.single else values[1].astype(np.float64)
        exact = bias.scale if how.single else float(given) * steps.ravel().astype(np.float64)
        raw = _rounded(real / exact, how)
        write_constant(model, one.inputs[2], np.clip(raw, -(2**31), 2**31 - 1).astype(np.int32))

    return write


def _rounded(values: NDArray[Any], how: Converter) -> NDArray[Any]:
    if not how.half_away:
        return np.asarray(np.round(values))
    return np.asarray(np.trunc(values + np.copysign(values.dtype.type(0.5), values)))
