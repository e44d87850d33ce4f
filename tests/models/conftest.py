"""Small real models, built in the test: a fully connected classifier, and softmax if asked for."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from ai_edge_litert import schema_py_generated as schema
from numpy.typing import NDArray

EXAMPLE = Path(__file__).parents[2] / "examples" / "fashion_lenet4"

BuildTFLite = Callable[..., Path]
Refusal = Callable[..., str]


@pytest.fixture
def example() -> Path:
    """The pair folder that ships."""
    return EXAMPLE


def weights(classes: int, size: int) -> NDArray[np.float32]:
    """The weights of every model built here: (classes, size)."""
    return np.random.default_rng(5).normal(size=(classes, size)).astype(np.float32)


@pytest.fixture
def build_tflite(tmp_path: Path) -> BuildTFLite:
    return lambda name="tiny.tflite", **wishes: _write(tmp_path / name, **wishes)


def _write(
    path: Path,
    shape: tuple[int, ...] = (1, 4, 4, 1),
    classes: int = 3,
    softmax: bool = False,
    inputs: int = 1,
    outputs: int = 1,
    version: int = 1,
) -> Path:
    size = int(np.prod(shape))
    buffers = [b"", weights(classes, size).tobytes()]
    tensors = [_tensor(f"image{i}", shape) for i in range(inputs)]
    tensors += [_tensor("weights", (classes, size), buffer=1), _tensor("dense", (1, classes))]
    dense = inputs + 1
    operators = [_operator(0, [0, inputs, -1], [dense], _dense_options())]
    last = dense
    if softmax:
        tensors.append(_tensor("softmax", (1, classes)))
        last = dense + 1
        operators.append(_operator(1, [dense], [last], _softmax_options()))
    graph = schema.SubGraphT()
    graph.tensors, graph.operators = tensors, operators
    graph.inputs = list(range(inputs))
    graph.outputs = [last, dense][:outputs]
    path.write_bytes(_pack(graph, buffers, version))
    return path


def _pack(graph: schema.SubGraphT, buffers: list[bytes], version: int) -> bytes:
    model = schema.ModelT()
    model.version = 3
    model.subgraphs = [graph]
    model.operatorCodes = [
        _code(schema.BuiltinOperator.FULLY_CONNECTED, version),
        _code(schema.BuiltinOperator.SOFTMAX, 1),
    ]
    model.buffers = []
    for content in buffers:
        buffer = schema.BufferT()
        buffer.data = np.frombuffer(content, np.uint8) if content else None
        model.buffers.append(buffer)
    builder = schema.flatbuffers.Builder(1024)
    builder.Finish(model.Pack(builder), file_identifier=b"TFL3")
    return bytes(builder.Output())


def _tensor(name: str, shape: tuple[int, ...], buffer: int = 0) -> schema.TensorT:
    tensor = schema.TensorT()
    tensor.name, tensor.shape, tensor.buffer = name, list(shape), buffer
    tensor.type = schema.TensorType.FLOAT32
    return tensor


def _code(builtin: int, version: int) -> schema.OperatorCodeT:
    code = schema.OperatorCodeT()
    code.builtinCode = code.deprecatedBuiltinCode = builtin
    code.version = version
    return code


def _operator(
    code: int, inputs: list[int], outputs: list[int], options: tuple[int, object]
) -> schema.OperatorT:
    operator = schema.OperatorT()
    operator.opcodeIndex, operator.inputs, operator.outputs = code, inputs, outputs
    operator.builtinOptionsType, operator.builtinOptions = options
    return operator


def _dense_options() -> tuple[int, object]:
    return schema.BuiltinOptions.FullyConnectedOptions, schema.FullyConnectedOptionsT()


def _softmax_options() -> tuple[int, object]:
    options = schema.SoftmaxOptionsT()
    options.beta = 1.0
    return schema.BuiltinOptions.SoftmaxOptions, options
