"""An int8 `.tflite` calibrated anew on other inputs, in the file itself, without TensorFlow.

What a converter does with a representative data set: the range of each activation over those
inputs becomes its scale and zero point. The ranges are taken from the int8 model itself, so they
can only become narrower than they were.
"""

from __future__ import annotations

import flatbuffers  # type: ignore[import-untyped]
import numpy as np
from ai_edge_litert import schema_py_generated as schema
from numpy.typing import NDArray

from edgeflare.errors import UserError
from edgeflare.models.tflite_graph import Graph
from tampering import InterpreterProbe
from tflite_weights import write_constant

_MEASURED = ("CONV_2D", "DEPTHWISE_CONV_2D", "FULLY_CONNECTED", "ADD", "MEAN", "RELU")
_WEIGHTED = ("CONV_2D", "DEPTHWISE_CONV_2D", "FULLY_CONNECTED")
_PASSING = ("MAX_POOL_2D", "AVERAGE_POOL_2D", "PAD", "RESHAPE")
_KEPT = ("CONCATENATION", "PACK", "QUANTIZE", "SHAPE", "SOFTMAX", "STRIDED_SLICE")
"""Operators of shapes, and those whose outputs keep their scale."""

Scale = tuple[float, int]


def recalibrated(content: bytes, inputs: NDArray[np.generic]) -> bytes:
    """Return the model with activation scales that fit some inputs.

    Args:
        content: an int8 model.
        inputs: (N, *input shape without its batch dimension), as the model takes them.

    Raises:
        UserError: the model has operators that are not known here, or is not of int8 throughout.

    """
    graph = Graph(content)
    scales = _scales(graph, _ranges(content, graph, inputs))
    model = schema.ModelT.InitFromPackedBuf(content, 0)
    tensors = model.subgraphs[0].tensors
    for tensor, (scale, zero_point) in scales.items():
        tensors[tensor].quantization.scale = np.array([scale], np.float32)
        tensors[tensor].quantization.zeroPoint = np.array([zero_point], np.int64)
    for one in graph.operators:
        if one.name in _WEIGHTED and len(one.inputs) > 2:
            fed, weights, bias = one.inputs[:3]
            before = graph.tensors[bias]
            steps = np.array(graph.tensors[weights].scales) * _scale_of(graph, scales, fed)
            real = before.real(graph.values(bias))
            write_constant(model, bias, np.round(real / steps).astype(np.int32))
            tensors[bias].quantization.scale = steps.astype(np.float32)
    builder = flatbuffers.Builder(1024)
    builder.Finish(model.Pack(builder), file_identifier=b"TFL3")
    return bytes(builder.Output())


def _ranges(
    content: bytes, graph: Graph, inputs: NDArray[np.generic]
) -> dict[int, tuple[float, float]]:
    """Return the least and the greatest value of each activation, 0 among them."""
    probe = InterpreterProbe(content, "builtin", capture=True)
    found: dict[int, tuple[float, float]] = {}
    for one in inputs:
        for tensor, raw in zip(probe.made, probe.run([one[None]]), strict=True):
            known = graph.tensors[tensor]
            if known.dtype == "int8" and known.scales:
                real = known.real(raw)
                low, high = found.get(tensor, (0.0, 0.0))
                found[tensor] = min(low, float(real.min())), max(high, float(real.max()))
    return found


def _scales(graph: Graph, ranges: dict[int, tuple[float, float]]) -> dict[int, Scale]:
    scales: dict[int, Scale] = {}
    for one in graph.operators:
        if one.name in _MEASURED:
            (output,) = one.outputs
            low, high = ranges[output]
            scale = max(high - low, 1e-6) / 255
            scales[output] = (scale, round(-128 - low / scale))
        elif one.name in _PASSING:
            # These kernels do not rescale: what goes in and what comes out have one scale.
            (output,) = one.outputs
            if one.inputs[0] in scales:
                scales[output] = scales[one.inputs[0]]
        elif one.name not in _KEPT:
            raise UserError(f"{one.name} is not known to the calibration: add it")
    return scales


def _scale_of(graph: Graph, scales: dict[int, Scale], tensor: int) -> float:
    return scales[tensor][0] if tensor in scales else graph.tensors[tensor].scales[0]
