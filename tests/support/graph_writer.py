"""Writing graphs of any tensors and operators as `.tflite` files, one call for each part."""

from __future__ import annotations

from pathlib import Path

import flatbuffers  # type: ignore[import-untyped]
import numpy as np
from ai_edge_litert import schema_py_generated as schema
from numpy.typing import NDArray


def write_state_model(path: Path, dtype: str) -> Path:
    """Write a step with a state, "FLOAT32" or "INT8": next = x + state, and y = logistic(next).

    Inputs and outputs are not in the order of a frame and its state. The int8 state has another
    quantization going in than coming out.
    """
    quantized = dtype == "INT8"
    graph = GraphWriter()
    state = graph.tensor("state", (1, 3), dtype, (0.05, -3) if quantized else None)
    x = graph.tensor("x", (1, 3), dtype, (0.02, 7) if quantized else None)
    following = graph.tensor("next", (1, 3), dtype, (0.06, 4) if quantized else None)
    y = graph.tensor("y", (1, 3), dtype, (1 / 256, -128) if quantized else None)
    version = 2 if quantized else 1
    graph.operator("ADD", [x, state], [following], schema.AddOptionsT(), version)
    graph.operator("LOGISTIC", [following], [y], None, version)
    return graph.save(path, [state, x], [following, y])


class GraphWriter:
    """A model under construction: tensors and operators in order, then `save`."""

    def __init__(self) -> None:
        self.model = schema.ModelT()
        self.model.version = 3
        self.model.buffers = [schema.BufferT()]
        self.model.operatorCodes = []
        self.graph = schema.SubGraphT()
        self.graph.tensors, self.graph.operators = [], []
        self.model.subgraphs = [self.graph]

    def tensor(
        self,
        name: str,
        shape: tuple[int, ...],
        dtype: str,
        quantization: tuple[float, int] | None = None,
        data: NDArray[np.generic] | None = None,
    ) -> int:
        tensor = schema.TensorT()
        tensor.name, tensor.shape = name, list(shape)
        tensor.type = getattr(schema.TensorType, dtype)
        if quantization is not None:
            tensor.quantization = schema.QuantizationParametersT()
            tensor.quantization.scale = [quantization[0]]
            tensor.quantization.zeroPoint = [quantization[1]]
        if data is not None:
            buffer = schema.BufferT()
            buffer.data = np.frombuffer(data.tobytes(), np.uint8)
            tensor.buffer = len(self.model.buffers)
            self.model.buffers.append(buffer)
        self.graph.tensors.append(tensor)
        return len(self.graph.tensors) - 1

    def operator(
        self,
        name: str,
        inputs: list[int],
        outputs: list[int],
        options: object | None = None,
        version: int = 1,
    ) -> None:
        code = schema.OperatorCodeT()
        code.builtinCode = getattr(schema.BuiltinOperator, name)
        code.deprecatedBuiltinCode = min(code.builtinCode, 127)
        code.version = version
        operator = schema.OperatorT()
        operator.opcodeIndex = len(self.model.operatorCodes)
        operator.inputs, operator.outputs = inputs, outputs
        if options is not None:
            kind = type(options).__name__.removesuffix("T")
            operator.builtinOptionsType = getattr(schema.BuiltinOptions, kind)
            operator.builtinOptions = options
        self.model.operatorCodes.append(code)
        self.graph.operators.append(operator)

    def second(self) -> None:
        """Go on with a further graph of the same model."""
        self.graph = schema.SubGraphT()
        self.graph.tensors, self.graph.operators = [], []
        self.model.subgraphs.append(self.graph)

    def first(self, inputs: list[int], outputs: list[int]) -> None:
        """End the further graph, and go back to the first."""
        self.graph.inputs, self.graph.outputs = inputs, outputs
        self.graph = self.model.subgraphs[0]

    def signature(
        self, key: str, subgraph: int, inputs: dict[str, int], outputs: dict[str, int]
    ) -> None:
        signature = schema.SignatureDefT()
        signature.signatureKey, signature.subgraphIndex = key, subgraph
        signature.inputs, signature.outputs = _named(inputs), _named(outputs)
        self.model.signatureDefs = [*(self.model.signatureDefs or []), signature]

    def save(self, path: Path, inputs: list[int], outputs: list[int]) -> Path:
        self.graph.inputs, self.graph.outputs = inputs, outputs
        builder = flatbuffers.Builder(1024)
        builder.Finish(self.model.Pack(builder), b"TFL3")
        path.write_bytes(builder.Output())
        return path


def _named(tensors: dict[str, int]) -> list[schema.TensorMapT]:
    maps = []
    for name, tensor in tensors.items():
        one = schema.TensorMapT()
        one.name, one.tensorIndex = name, tensor
        maps.append(one)
    return maps
