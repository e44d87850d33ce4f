"""The compressed model computed in float on the host: its own weights, and no rounding between.

What is put out stays within the range that the quantized tensor has, which often is the activation
of a layer. An accelerator that computes a quantized graph in float without rounding decides as this
model does, rather than as kernels that round behind every operator.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, Final

import numpy as np
from ai_edge_litert import schema_py_generated as schema

from edgeflare.core.tensor import Tensor
from edgeflare.errors import UserError
from edgeflare.models.evaluator import ONCE, Invocation
from edgeflare.models.model_file import read_model_file, temporary_model
from edgeflare.models.tflite import TFLiteModel, open_tflite
from edgeflare.models.tflite_graph import Graph, GraphTensor, tensor_indexes
from edgeflare.models.tflite_writer import Writer

DEQUANTIZED: Final = "dequantized"
"""The name of this member of an ensemble."""

_CONVERSIONS: Final = ("QUANTIZE", "DEQUANTIZE")


@contextmanager
def open_dequantized(path: Path, invocation: Invocation = ONCE) -> Iterator[TFLiteModel]:
    """Open a model's dequantized form; it takes and gives what the model itself does.

    Args:
        path: the `.tflite` file.
        invocation: see `open_tflite`.

    Raises:
        UserError: the file has nothing to dequantize, or its form cannot be run.
        InfrastructureError: no worker process can be started.

    """
    try:
        content = read_model_file(path)
    except OSError as error:
        raise UserError(f"{path}: cannot be read: {error.strerror}") from None
    made, stem = dequantized(content, str(path)), f"{path.stem}-{DEQUANTIZED}"
    with (
        temporary_model(made, stem, f"the {DEQUANTIZED} form of {path}") as file,
        closing(open_tflite(file, invocation=invocation)) as model,
    ):
        yield model


def dequantized(content: bytes, source: str = "the model") -> bytes:
    """Return the file with quantized tensors of its main graph in float32.

    Inputs and outputs stay as they are: quantized ones are converted behind the one and before
    the other.

    Args:
        content: a `.tflite` file.
        source: what the user calls it, for messages.

    Raises:
        UserError: nothing in it is quantized, or it cannot be read.

    """
    graph = Graph(content, source)
    quantized = {one.index for one in graph.tensors if one.scales and one.dtype.startswith(_INTS)}
    if not quantized:
        raise UserError(f"{source} has no quantized tensors: leave {DEQUANTIZED} out of --ensemble")
    return _Dequantization(content, graph, quantized).content()


_INTS: Final = ("int", "uint")


class _Dequantization:
    """A file on its way: tensors, then operators, then what stands at both ends."""

    def __init__(self, content: bytes, graph: Graph, quantized: set[int]) -> None:
        self._graph, self._quantized = graph, quantized
        self._writer = Writer(content)
        self._main = self._writer.graph
        self._ends = quantized & {*graph.inputs, *graph.outputs}
        for index in quantized - self._ends:
            tensor, raw = graph.tensors[index], self._main.tensors[index]
            raw.type, raw.quantization = schema.TensorType.FLOAT32, None
            if tensor.constant:
                values = tensor.real(graph.values(index)).astype(np.float32)
                raw.buffer = self._writer.buffer(values.tobytes())
        # What operators read and write in place of a tensor.
        self._instead = {
            end.index: self._writer.tensor(
                Tensor(f"{end.name}/{DEQUANTIZED}", end.shape, "float32")
            )
            for end in (graph.tensors[index] for index in self._ends)
        }

    def content(self) -> bytes:
        """Return the finished file."""
        self._join_conversions()
        operators = [one for one in self._main.operators if not self._converts_nothing(one)]
        for one in operators:
            one.inputs = self._all_now(one.inputs)
            one.outputs = self._all_now(one.outputs)
        kept = self._with_ranges(operators)
        self._main.operators = []
        for given in self._graph.inputs:
            if given in self._ends:
                self._writer.operator("DEQUANTIZE", [given], self._now(given), version=2)
        self._main.operators += kept
        for made in self._graph.outputs:
            if made in self._ends:
                self._writer.operator("QUANTIZE", [self._now(made)], made)
        return self._writer.content()

    def _with_ranges(self, operators: list[Any]) -> list[Any]:
        """Return the operators, each with two behind it that keep its outputs in their ranges."""
        limits = {self._now(one): _range(self._graph.tensors[one]) for one in self._quantized}
        kept: list[Any] = []
        for one in operators:
            made = [int(tensor) for tensor in one.outputs]
            bounded = {tensor: limits[tensor] for tensor in made if tensor in limits}
            wide = {tensor: self._another(tensor) for tensor in bounded}
            one.outputs = [wide.get(tensor, tensor) for tensor in made]
            self._main.operators = []
            for tensor, (low, high) in bounded.items():
                below = self._another(tensor)
                least = self._writer.constant("", np.asarray(low, np.float32))
                most = self._writer.constant("", np.asarray(high, np.float32))
                self._writer.operator("MINIMUM", [wide[tensor], most], below)
                self._writer.operator("MAXIMUM", [below, least], tensor)
            kept += [one, *self._main.operators]
        return kept

    def _another(self, index: int) -> int:
        shape = tuple(int(size) for size in self._main.tensors[index].shape)
        return self._writer.tensor(Tensor("", shape, "float32"))

    def _join_conversions(self) -> None:
        """Let both sides of a conversion between floats be one tensor."""
        for one in self._graph.operators:
            if one.name not in _CONVERSIONS or one.index in self._graph.preparing:
                continue
            (given,), (made,) = one.inputs, one.outputs
            if not (self._is_float(given) and self._is_float(made)):
                continue
            if made in self._graph.outputs and made not in self._ends:
                self._instead[self._now(given)] = made
            else:
                self._instead[self._now(made)] = self._now(given)

    def _is_float(self, index: int) -> bool:
        return index in self._quantized or self._graph.tensors[index].dtype == "float32"

    def _now(self, index: int) -> int:
        while index in self._instead:
            index = self._instead[index]
        return index

    def _all_now(self, tensors: Any) -> list[int]:
        # An operator without inputs or outputs may have None in the place of a list.
        return [] if tensors is None else [self._now(int(tensor)) for tensor in tensors]

    def _converts_nothing(self, operator: Any) -> bool:
        given, made = tensor_indexes(operator.inputs), tensor_indexes(operator.outputs)
        # What handles variables may lack one of them.
        return bool(given and made) and self._now(given[0]) == self._now(made[0])


def _range(tensor: GraphTensor) -> tuple[float, float]:
    """Return the least and the largest real value that a quantized tensor holds."""
    limits = np.iinfo(tensor.dtype)
    low, high = (
        tensor.real(np.full(tensor.shape, end, tensor.dtype)).ravel() if tensor.size else [0.0]
        for end in (limits.min, limits.max)
    )
    return float(low[0]), float(high[0])
