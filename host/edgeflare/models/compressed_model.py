"""The compressed model of a pair on the host: under a kernel set, another runtime, or in float.

Runtime versions differ in their kernels, so the model under the runtime of another Python
environment is a member of the twin's ensemble: it predicts devices that run that version.

In float it has its own weights, and no rounding between. What is put out stays within the range
that the quantized tensor has, which often is the activation of a layer. An accelerator that
computes a quantized graph in float without rounding decides as this model does, rather than as
kernels that round behind every operator.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final, Protocol

import numpy as np
from ai_edge_litert import schema_py_generated as schema

from edgeflare.core.task import OutputMaker
from edgeflare.core.tensor import Tensor
from edgeflare.errors import UserError, suggestion
from edgeflare.models.agent_code import link_packages
from edgeflare.models.evaluator import ONCE, HostModel, Invocation
from edgeflare.models.model_file import check_model_file, read_model_file, temporary_model
from edgeflare.models.pair import Pair
from edgeflare.models.runtime_versions import is_version, runtime_python
from edgeflare.models.tflite import ModelRefused, OperatorMissing, TFLiteModel, open_tflite
from edgeflare.models.tflite_graph import Graph, GraphTensor, tensor_indexes
from edgeflare.models.tflite_writer import Writer
from edgeflare_protos.kernel_sets import (
    TFLITE_KERNEL_SETS,
    Kernels,
    TFLiteKernels,
    is_tflite_kernel_set,
)

__all__ = [
    "CompressedModel",
    "ModelRefused",
    "OperatorMissing",
    "compressed_bytes",
    "compressed_makers",
    "open_compressed",
    "open_compressed_for",
    "open_in_other_runtime",
    "open_member",
    "read_ensemble",
]

DEQUANTIZED: Final = "dequantized"
"""The name of this member of an ensemble."""

_CONVERSIONS: Final = ("QUANTIZE", "DEQUANTIZE")


class CompressedModel(HostModel, Protocol):
    """The compressed model on the host."""

    @property
    def runtime(self) -> str:
        """Name and version of the runtime."""


def open_compressed(pair: Pair, kernels: Kernels) -> CompressedModel:
    """Open the compressed model of a pair, called as the pair says.

    Args:
        pair: the pair.
        kernels: the host's kernels that run it.

    Raises:
        UserError: the file is none that the runtime takes.

    """
    return open_tflite(pair.executed, kernels, pair.interface.invocation)


def open_compressed_for(
    pair: Pair, kernels: Kernels, invocation: Invocation, *, input_seconds: float
) -> CompressedModel:
    """Open it to be called in another way than the pair says; see `open_compressed`.

    Args:
        pair: the pair.
        kernels: the host's kernels that run it.
        invocation: how it is called.
        input_seconds: time that one input may take.

    Raises:
        UserError: also if the runtime cannot call it so.

    """
    return open_tflite(pair.executed, kernels, invocation, input_seconds=input_seconds)


@contextmanager
def open_member(pair: Pair, member: str) -> Iterator[CompressedModel]:
    """Open it under another runtime, "KERNELS@PYTHON" or "KERNELS@VERSION", or "dequantized"."""
    opened = (
        open_dequantized(pair.executed, pair.interface.invocation)
        if member == DEQUANTIZED
        else open_in_other_runtime(pair.executed, member, pair.interface.invocation)
    )
    with opened as model:
        yield model


def compressed_bytes(pair: Pair) -> int:
    """Return the size of its file."""
    check_model_file(pair.compressed)
    return pair.compressed.stat().st_size


def compressed_makers(pair: Pair) -> tuple[OutputMaker | None, ...]:
    """Return of each output of the compressed model's first graph the operator that it is from."""
    graph = Graph(read_model_file(pair.compressed), str(pair.compressed))
    return tuple(map(graph.origin, graph.outputs))


def read_ensemble(text: str | None) -> tuple[tuple[TFLiteKernels, ...], tuple[str, ...]]:
    """Return the kernel sets of an ensemble, and its members that are none of the host's.

    Both are empty where the default is wanted.

    Raises:
        UserError: one is unknown, or named twice, or the first is no kernel set.

    """
    if text is None:
        return (), ()
    names = [name.strip() for name in text.split(",")]
    elsewhere = [name for name in names if _SEPARATOR in name or name == DEQUANTIZED]
    here: list[TFLiteKernels] = []
    known = (*TFLITE_KERNEL_SETS, DEQUANTIZED)
    for name in names:
        if is_tflite_kernel_set(name):
            here.append(name)
        elif name not in elsewhere:
            raise UserError(
                f"--ensemble: there is no kernel set {name!r}{suggestion(name, known)}; "
                f"known are {', '.join(known)}"
            )
    if names[0] in elsewhere:
        raise UserError(
            f"--ensemble {text}: the first is the twin's own, on this Python's runtime: put"
            f" {' or '.join(TFLITE_KERNEL_SETS)} before {names[0]}"
        )
    for name in elsewhere:
        if name != DEQUANTIZED:
            _split_member(name)
    if len(set(names)) < len(names):
        raise UserError(f"--ensemble {text}: name each kernel set once")
    return tuple(here), tuple(elsewhere)


_SEPARATOR = "@"
"""Separates kernel set and interpreter: "builtin@/opt/old-board/bin/python"."""


def _split_member(member: str) -> tuple[Kernels, str]:
    """Return the kernel set and the interpreter or the version behind it."""
    kernels, _, python = member.partition(_SEPARATOR)
    if not is_tflite_kernel_set(kernels):
        raise UserError(
            f"{member}: there is no kernel set {kernels!r}; known are"
            f" {', '.join(TFLITE_KERNEL_SETS)}"
        )
    if not is_version(python) and shutil.which(python) is None:
        raise UserError(
            f"{member}: there is no program {python!r}: name a version such as 2.2.0, or the Python"
            " of an environment that has another TFLite runtime, with its path"
        )
    return kernels, python


@contextmanager
def open_in_other_runtime(
    path: Path, member: str, invocation: Invocation = ONCE
) -> Iterator[TFLiteModel]:
    """Load a `.tflite` file into a worker process of another interpreter.

    Args:
        path: the file.
        member: "KERNELS@PYTHON"; that Python needs numpy and a TFLite runtime, nothing of ours.
            "KERNELS@VERSION" is under a released version, which pip installs once.
        invocation: see `open_tflite`.

    Raises:
        UserError: see `open_tflite`; or there is no such kernel set, or no such interpreter.

    """
    kernels, python = _split_member(member)
    if is_version(python):
        python = str(runtime_python(python))
    with TemporaryDirectory(prefix="edgeflare-") as folder:
        packages = Path(folder) / "packages"
        link_packages(packages)
        launcher = ("env", "-u", "PYTHONHOME", f"PYTHONPATH={packages}", python)
        with closing(open_tflite(path, kernels, invocation, launcher=launcher)) as model:
            yield model


@contextmanager
def open_dequantized(path: Path, invocation: Invocation = ONCE) -> Iterator[TFLiteModel]:
    """Open a model's dequantized form; it takes and gives what the model itself does.

    Args:
        path: the `.tflite` file.
        invocation: see `open_tflite`.

    Raises:
        UserError: the file has nothing to dequantize, or its form cannot be run.

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
    quantized = {
        tensor.index for tensor in graph.tensors if tensor.scales and tensor.dtype.startswith(_INTS)
    }
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
        operators = [
            operator for operator in self._main.operators if not self._converts_nothing(operator)
        ]
        for operator in operators:
            operator.inputs = self._all_now(operator.inputs)
            operator.outputs = self._all_now(operator.outputs)
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
        limits = {
            self._now(quantized): _range(self._graph.tensors[quantized])
            for quantized in self._quantized
        }
        kept: list[Any] = []
        for operator in operators:
            made = [int(tensor) for tensor in operator.outputs]
            bounded = {tensor: limits[tensor] for tensor in made if tensor in limits}
            wide = {tensor: self._another(tensor) for tensor in bounded}
            operator.outputs = [wide.get(tensor, tensor) for tensor in made]
            self._main.operators = []
            for tensor, (low, high) in bounded.items():
                below = self._another(tensor)
                least = self._writer.constant("", np.asarray(low, np.float32))
                most = self._writer.constant("", np.asarray(high, np.float32))
                self._writer.operator("MINIMUM", [wide[tensor], most], below)
                self._writer.operator("MAXIMUM", [below, least], tensor)
            kept += [operator, *self._main.operators]
        return kept

    def _another(self, index: int) -> int:
        shape = tuple(int(size) for size in self._main.tensors[index].shape)
        return self._writer.tensor(Tensor("", shape, "float32"))

    def _join_conversions(self) -> None:
        """Let both sides of a conversion between floats be one tensor."""
        for operator in self._graph.operators:
            if operator.name not in _CONVERSIONS or operator.index in self._graph.preparing:
                continue
            (given,), (made,) = operator.inputs, operator.outputs
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
