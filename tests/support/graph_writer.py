"""Writing graphs of any tensors and operators as `.tflite` files, one call for each part."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from ai_edge_litert import schema_py_generated as schema
from numpy.typing import NDArray

from edgeflare.models.tflite_writer import written


def write_state_model(path: Path, dtype: str) -> Path:
    """Write a step with a state, "FLOAT32" or "INT8": next = x + state, and y = logistic(next).

    Inputs and outputs are not in the order of a frame and its state. The int8 state has another
    quantization going in than coming out.
    """
    steps = {"state": (0.05, -3), "x": (0.02, 7), "next": (0.06, 4), "y": (1 / 256, -128)}
    quantized = dtype == "INT8"
    graph = GraphWriter()
    state, x, following, y = (
        graph.tensor(name, (1, 3), dtype, known if quantized else None)
        for name, known in steps.items()
    )
    version = 2 if quantized else 1
    graph.operator("ADD", [x, state], [following], schema.AddOptionsT(), version)
    graph.operator("LOGISTIC", [following], [y], None, version)
    return graph.save(path, [state, x], [following, y])


class GraphWriter:
    """A model under construction: tensors and operators in order, then `save` or `content`."""

    def __init__(self, model: Any = None) -> None:
        """Begin a model, or go on with the first graph of one."""
        self.model = model or schema.ModelT(
            version=3,
            buffers=[schema.BufferT()],
            operatorCodes=[],
            subgraphs=[schema.SubGraphT(tensors=[], operators=[])],
        )
        self.graph = self.model.subgraphs[0]

    def tensor(
        self,
        name: str,
        shape: tuple[int, ...],
        dtype: str,
        quantization: tuple[float, int] | None = None,
        data: NDArray[np.generic] | None = None,
    ) -> int:
        kind = getattr(schema.TensorType, dtype)
        tensor = schema.TensorT(name=name, shape=list(shape), type=kind)
        if quantization is not None:
            scale, point = quantization
            tensor.quantization = schema.QuantizationParametersT(scale=[scale], zeroPoint=[point])
        if data is not None:
            tensor.buffer = len(self.model.buffers)
            raw = np.frombuffer(data.tobytes(), np.uint8)
            self.model.buffers.append(schema.BufferT(data=raw))
        self.graph.tensors.append(tensor)
        return len(self.graph.tensors) - 1

    def constant(
        self, name: str, values: NDArray[np.generic], quantization: tuple[float, int] | None = None
    ) -> int:
        """Add a tensor that holds values, of their shape and type."""
        return self.tensor(name, values.shape, values.dtype.name.upper(), quantization, values)

    def operator(
        self,
        name: str,
        inputs: list[int],
        outputs: list[int],
        options: object | None = None,
        version: int = 1,
    ) -> None:
        self.graph.operators.append(self.detached(name, inputs, outputs, options, version))

    def detached(
        self,
        name: str,
        inputs: list[int],
        outputs: list[int],
        options: object | None = None,
        version: int = 1,
    ) -> Any:
        """Return an operator that is not yet in the graph."""
        operator = schema.OperatorT(self.code(name, version), inputs, outputs)
        if options is not None:
            kind = type(options).__name__.removesuffix("T")
            operator.builtinOptionsType = getattr(schema.BuiltinOptions, kind)
            operator.builtinOptions = options
        return operator

    def code(self, name: str, version: int = 1) -> int:
        """Add an operator to the model's table, and return its place."""
        number = getattr(schema.BuiltinOperator, name)
        self.model.operatorCodes.append(
            schema.OperatorCodeT(min(number, 127), None, version, number)
        )
        return len(self.model.operatorCodes) - 1

    def second(self) -> None:
        """Go on with a further graph of the same model."""
        self.graph = schema.SubGraphT(tensors=[], operators=[])
        self.model.subgraphs.append(self.graph)

    def first(self, inputs: list[int], outputs: list[int]) -> None:
        """End the further graph, and go back to the first."""
        self.graph.inputs, self.graph.outputs = inputs, outputs
        self.graph = self.model.subgraphs[0]

    def signature(
        self, key: str, subgraph: int, inputs: dict[str, int], outputs: dict[str, int]
    ) -> None:
        given, made = (
            [schema.TensorMapT(name, tensor) for name, tensor in tensors.items()]
            for tensors in (inputs, outputs)
        )
        known = self.model.signatureDefs or []
        self.model.signatureDefs = [*known, schema.SignatureDefT(given, made, key, subgraph)]

    def content(self, inputs: list[int], outputs: list[int]) -> bytes:
        """Return the file with these inputs and outputs."""
        self.graph.inputs, self.graph.outputs = inputs, outputs
        return written(self.model)

    def save(self, path: Path, inputs: list[int], outputs: list[int]) -> Path:
        path.write_bytes(self.content(inputs, outputs))
        return path


def write_logistic_models(folder: Path, width: int, step: tuple[float, int]) -> None:
    """Write logistic functions of (1, width): `original.tflite`, and `compressed.tflite` in int8.

    Args:
        folder: to write to, which is there.
        width: how many values there are.
        step: scale and zero point of the compressed model's input.

    """
    for name, dtype in (("original", "FLOAT32"), ("compressed", "INT8")):
        quantized = dtype == "INT8"
        graph = GraphWriter()
        x = graph.tensor("x", (1, width), dtype, step if quantized else None)
        y = graph.tensor("y", (1, width), dtype, (1 / 256, -128) if quantized else None)
        graph.operator("LOGISTIC", [x], [y], None, 2 if quantized else 1)
        graph.save(folder / f"{name}.tflite", [x], [y])
