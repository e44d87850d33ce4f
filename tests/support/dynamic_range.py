"""Dynamic-range models: weights of eight bits, everything else as in the float model."""

from __future__ import annotations

import numpy as np
from ai_edge_litert import schema_py_generated as schema

from edgeflare.models.tflite_writer import written

# The first versions of the operators that take such weights.
_VERSIONS = {schema.BuiltinOperator.CONV_2D: 5, schema.BuiltinOperator.FULLY_CONNECTED: 3}


def quantize_weights(content: bytes) -> bytes:
    """Return a float .tflite with the weights of its layers as int8, one scale for each channel."""
    model = schema.ModelT.InitFromPackedBuf(content, 0)
    graph = model.subgraphs[0]
    for operator in graph.operators:
        code = model.operatorCodes[operator.opcodeIndex]
        if code.builtinCode in _VERSIONS:
            weights = graph.tensors[operator.inputs[1]]
            per_channel = code.builtinCode == schema.BuiltinOperator.CONV_2D
            _quantize(weights, model.buffers[weights.buffer], per_channel=per_channel)
    for code in model.operatorCodes:
        code.version = _VERSIONS.get(code.builtinCode, code.version)
    return written(model)


def _quantize(tensor: schema.TensorT, buffer: schema.BufferT, *, per_channel: bool) -> None:
    values = np.frombuffer(bytes(buffer.data), np.float32).reshape(tensor.shape)
    axes = tuple(range(1, values.ndim)) if per_channel else None
    scales = np.abs(values).max(axis=axes, keepdims=True) / 127
    buffer.data = np.frombuffer(np.round(values / scales).astype(np.int8).tobytes(), np.uint8)
    tensor.type = schema.TensorType.INT8
    tensor.quantization = schema.QuantizationParametersT()
    tensor.quantization.scale = scales.ravel().astype(np.float32)
    tensor.quantization.zeroPoint = np.zeros(scales.size, np.int64)
    tensor.quantization.quantizedDimension = 0
