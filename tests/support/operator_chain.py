"""Writing a chain of operators as a `.tflite` file, float or quantized to int8."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
from ai_edge_litert import schema_py_generated as schema
from numpy.typing import NDArray

Floats = NDArray[np.float32]

# Each with the first version that takes int8, which is also the first of the float one's age.
_VERSIONS = {"CONV_2D": 3, "DEPTHWISE_CONV_2D": 3, "FULLY_CONNECTED": 4}
_OPTIONS = {
    "CONV_2D": "Conv2D",
    "DEPTHWISE_CONV_2D": "DepthwiseConv2D",
    "ADD": "Add",
    "MEAN": "Reducer",
    "FULLY_CONNECTED": "FullyConnected",
    "SOFTMAX": "Softmax",
    "L2_NORMALIZATION": "L2Norm",
}


@dataclass(frozen=True)
class Step:
    """An operator and the tensor of its name that it puts out.

    Attributes:
        name: of both.
        operator: "CONV_2D".
        sources: names of the tensors that it reads; "image" is the network's input.
        shape: of what it puts out, (1, …).
        weights: as TFLite lays them out; None for operators without.
        bias: likewise.
        activation: that is fused into it.
        stride: of convolutions, both ways.

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
    steps: Sequence[Step],
    shape: tuple[int, ...],
    ranges: Mapping[str, tuple[float, float]] | None = None,
) -> bytes:
    """Return a file.

    Args:
        steps: its operators, in execution order; the last one puts out the model's output.
        shape: of its input, which is named "image".
        ranges: the least and the largest value of each tensor, for int8; None for float.

    """
    return _File(ranges).written(steps, shape)


class _File:
    """A `.tflite` file as it is put together: int8 where ranges are known, else float."""

    def __init__(self, ranges: Mapping[str, tuple[float, float]] | None) -> None:
        self._ranges = ranges
        self._graph = schema.SubGraphT()
        self._graph.tensors, self._graph.operators = [], []
        self._model = schema.ModelT()
        self._model.version = 3
        self._model.buffers = [schema.BufferT()]
        self._model.operatorCodes = []
        self._model.subgraphs = [self._graph]
        self._codes: dict[str, int] = {}
        self._named: dict[str, int] = {}

    def written(self, steps: Sequence[Step], shape: tuple[int, ...]) -> bytes:
        self._activation("image", shape)
        for step in steps:
            self._add(step)
        self._graph.inputs = [self._named["image"]]
        self._graph.outputs = [self._named[steps[-1].name]]
        builder = schema.flatbuffers.Builder(1024)
        builder.Finish(self._model.Pack(builder), file_identifier=b"TFL3")
        return bytes(builder.Output())

    def _add(self, step: Step) -> None:
        inputs = [self._named[source] for source in step.sources]
        if step.operator == "MEAN":
            axes = np.array([1, 2], np.int32)
            inputs.append(self._constant(f"{step.name}/axes", axes, "INT32"))
        if step.weights is not None and step.bias is not None:
            inputs += self._weights(step, step.weights, step.bias)
        operator = schema.OperatorT()
        operator.opcodeIndex = self._code(step.operator)
        operator.inputs = inputs
        operator.outputs = [self._activation(step.name, step.shape)]
        name = _OPTIONS[step.operator] + "Options"
        operator.builtinOptionsType = getattr(schema.BuiltinOptions, name)
        operator.builtinOptions = _options(name, step)
        self._graph.operators.append(operator)

    def _code(self, operator: str) -> int:
        if operator not in self._codes:
            code = schema.OperatorCodeT()
            code.builtinCode = code.deprecatedBuiltinCode = getattr(
                schema.BuiltinOperator, operator
            )
            code.version = 1 if self._ranges is None else _VERSIONS.get(operator, 2)
            self._codes[operator] = len(self._model.operatorCodes)
            self._model.operatorCodes.append(code)
        return self._codes[operator]

    def _activation(self, name: str, shape: tuple[int, ...]) -> int:
        if self._ranges is None:
            return self._tensor(name, shape, "FLOAT32")
        scale, zero_point = self._quantization(name)
        return self._tensor(name, shape, "INT8", scales=[scale], zero_point=zero_point)

    def _quantization(self, name: str) -> tuple[float, int]:
        assert self._ranges is not None
        least, largest = self._ranges[name]
        scale = float(np.float32((largest - least) / 255))
        return scale, round(-128 - least / scale)

    def _weights(self, step: Step, weights: Floats, bias: Floats) -> list[int]:
        if self._ranges is None:
            return [
                self._constant(f"{step.name}/weights", weights, "FLOAT32"),
                self._constant(f"{step.name}/bias", bias, "FLOAT32"),
            ]
        axis = {"CONV_2D": 0, "DEPTHWISE_CONV_2D": 3}.get(step.operator)
        others = tuple(at for at in range(weights.ndim) if at != axis)
        scales = (np.abs(weights).max(axis=others, keepdims=True) / 127).astype(np.float32)
        flat = scales.ravel()
        rounded = np.round(weights / scales).astype(np.int8)
        steps = flat.astype(np.float64) * self._quantization(step.sources[0])[0]
        whole = np.round(bias / steps).astype(np.int32)
        more = {"scales": flat, "axis": axis or 0}
        return [
            self._constant(f"{step.name}/weights", rounded, "INT8", **more),
            self._constant(f"{step.name}/bias", whole, "INT32", scales=steps.astype(np.float32)),
        ]

    def _constant(self, name: str, values: NDArray[Any], dtype: str, **more: Any) -> int:
        buffer = schema.BufferT()
        buffer.data = np.frombuffer(np.ascontiguousarray(values).tobytes(), np.uint8)
        self._model.buffers.append(buffer)
        at = len(self._model.buffers) - 1
        return self._tensor(name, values.shape, dtype, buffer=at, **more)

    def _tensor(
        self,
        name: str,
        shape: tuple[int, ...],
        dtype: str,
        *,
        buffer: int = 0,
        scales: Sequence[float] | Floats = (),
        zero_point: int = 0,
        axis: int = 0,
    ) -> int:
        assert prod(shape) > 0
        tensor = schema.TensorT()
        tensor.name, tensor.shape, tensor.buffer = name, list(shape), buffer
        tensor.type = getattr(schema.TensorType, dtype)
        if len(scales):
            tensor.quantization = schema.QuantizationParametersT()
            tensor.quantization.scale = np.asarray(scales, np.float32)
            tensor.quantization.zeroPoint = np.full(len(scales), zero_point, np.int64)
            tensor.quantization.quantizedDimension = axis
        self._named[name] = len(self._graph.tensors)
        self._graph.tensors.append(tensor)
        return self._named[name]


def _options(name: str, step: Step) -> Any:
    options = getattr(schema, f"{name}T")()
    if hasattr(options, "fusedActivationFunction"):
        known = schema.ActivationFunctionType
        options.fusedActivationFunction = getattr(known, step.activation)
    if hasattr(options, "strideW"):
        options.padding = schema.Padding.SAME
        options.strideW = options.strideH = step.stride
        options.dilationWFactor = options.dilationHFactor = 1
    if hasattr(options, "depthMultiplier"):
        options.depthMultiplier = 1
    if hasattr(options, "beta"):
        options.beta = 1.0
    return options
