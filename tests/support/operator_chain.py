"""Writing a chain of operators as a `.tflite` file, float or quantized to int8."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from ai_edge_litert import schema_py_generated as schema
from numpy.typing import NDArray

from graph_writer import GraphWriter

Floats = NDArray[np.float32]

# Each with the first version that takes int8, which is also the first of the float one's age.
_VERSIONS = {"CONV_2D": 3, "DEPTHWISE_CONV_2D": 3, "FULLY_CONNECTED": 4}
_OPTIONS = {
    "CONV_2D": "Conv2D",
    "DEPTHWISE_CONV_2D": "DepthwiseConv2D",
    "ADD": "Add",
    "MEAN": "Reducer",
    "AVERAGE_POOL_2D": "Pool2D",
    "CONCATENATION": "Concatenation",
    "FULLY_CONNECTED": "FullyConnected",
    "SOFTMAX": "Softmax",
    "L2_NORMALIZATION": "L2Norm",
}


@dataclass(frozen=True)
class ChainStep:
    """An operator and the tensor of its name that it puts out.

    Attributes:
        name: of both.
        operator: "CONV_2D".
        sources: names of the tensors that it reads; "image" is the network's input.
        shape: of what it puts out, (1, …).
        weights: as TFLite lays them out; None for operators without.
        bias: likewise.
        activation: that is fused into it.
        stride: of convolutions, both ways; of a pool its size, too.

    """

    name: str
    operator: str
    sources: tuple[str, ...]
    shape: tuple[int, ...]
    weights: Floats | None = None
    bias: Floats | None = None
    activation: str = "NONE"
    stride: int = 1


def write_tflite(
    steps: Sequence[ChainStep],
    shape: tuple[int, ...],
    ranges: Mapping[str, tuple[float, float]] | None = None,
) -> bytes:
    """Return a file.

    Args:
        steps: its operators, in execution order; the last one puts out the model's output.
        shape: of its input, which is named "image".
        ranges: the least and the largest value of each tensor, for int8; None for float.

    """
    chain = _ChainWriter(ranges)
    given = chain.activation("image", shape)
    for step in steps:
        chain.add(step)
    return chain.content([given], [chain.named[steps[-1].name]])


class _ChainWriter(GraphWriter):
    """A chain as it is put together: int8 where ranges are known, else float."""

    def __init__(self, ranges: Mapping[str, tuple[float, float]] | None) -> None:
        super().__init__()
        self._ranges = ranges
        self.named: dict[str, int] = {}

    def activation(self, name: str, shape: tuple[int, ...]) -> int:
        dtype = "FLOAT32" if self._ranges is None else "INT8"
        self.named[name] = self.tensor(name, shape, dtype, self._quantization(name))
        return self.named[name]

    def add(self, step: ChainStep) -> None:
        inputs = [self.named[source] for source in step.sources]
        if step.operator == "MEAN":
            inputs.append(self.constant(f"{step.name}/axes", np.array([1, 2], np.int32)))
        if step.weights is not None and step.bias is not None:
            inputs += self._weights(step, step.weights, step.bias)
        version = 1 if self._ranges is None else _VERSIONS.get(step.operator, 2)
        made = self.activation(step.name, step.shape)
        self.operator(step.operator, inputs, [made], _options(step), version)

    def _quantization(self, name: str) -> tuple[float, int] | None:
        if self._ranges is None:
            return None
        least, largest = self._ranges[name]
        scale = float(np.float32((largest - least) / 255))
        return scale, round(-128 - least / scale)

    def _weights(self, step: ChainStep, weights: Floats, bias: Floats) -> list[int]:
        names = f"{step.name}/weights", f"{step.name}/bias"
        given = self._quantization(step.sources[0])
        if given is None:
            return [self.constant(*both) for both in zip(names, (weights, bias), strict=True)]
        axis = {"CONV_2D": 0, "DEPTHWISE_CONV_2D": 3}.get(step.operator)
        others = tuple(at for at in range(weights.ndim) if at != axis)
        scales = (np.abs(weights).max(axis=others, keepdims=True) / 127).astype(np.float32)
        flat = scales.ravel()
        steps = flat.astype(np.float64) * given[0]
        rounded = self.constant(names[0], np.round(weights / scales).astype(np.int8))
        whole = self.constant(names[1], np.round(bias / steps).astype(np.int32))
        for tensor, known, along in ((rounded, flat, axis or 0), (whole, steps, 0)):
            self.graph.tensors[tensor].quantization = schema.QuantizationParametersT(
                scale=known.astype(np.float32),
                zeroPoint=np.zeros(known.size, np.int64),
                quantizedDimension=along,
            )
        return [rounded, whole]


def _options(step: ChainStep) -> Any:
    options = getattr(schema, f"{_OPTIONS[step.operator]}OptionsT")()
    if hasattr(options, "fusedActivationFunction"):
        known = schema.ActivationFunctionType
        options.fusedActivationFunction = getattr(known, step.activation)
    if hasattr(options, "strideW"):
        options.padding = schema.Padding.SAME
        options.strideW = options.strideH = step.stride
        options.dilationWFactor = options.dilationHFactor = 1
    if hasattr(options, "filterWidth"):
        options.padding = schema.Padding.VALID
        options.filterWidth = options.filterHeight = step.stride
    if step.operator == "CONCATENATION":
        options.axis = len(step.shape) - 1
    if hasattr(options, "depthMultiplier"):
        options.depthMultiplier = 1
    if hasattr(options, "beta"):
        options.beta = 1.0
    return options
