"""Models that run within the host's own process: ONNX models and Python callables."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from itertools import chain
from math import prod
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray

from edgeflare.core.task import OutputMaker
from edgeflare.core.tensor import RawBatch, Tensor, pack_rows, row_layout, unpack_rows
from edgeflare.errors import UserError
from edgeflare.models.evaluator import ONCE, Signature
from edgeflare.models.model_file import check_model_file
from edgeflare.python_callable import USER_ERRORS, load_callable, reason

if TYPE_CHECKING:
    import onnxruntime

Invoke = Callable[[NDArray[np.generic]], NDArray[np.generic]]
"""Runs a model on the row of one input, (1, *row), and returns that of its outputs; see
`row_layout`."""


class InProcessModel:
    """Runs a model input by input, on a thread of its own.

    Inputs go in one by one because floating-point results may depend on the batch size, and
    results must not depend on how inputs were gathered into batches. An input on which the model
    raises an exception or answers in another shape has failed with "error".
    """

    operators: tuple[str, ...] = ()
    invocation = ONCE

    def __init__(self, signature: Signature, invoke: Invoke) -> None:
        self.signature = signature
        self._invoke = invoke
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="edgeflare-model")

    def submit(self, inputs: NDArray[np.generic]) -> Future[RawBatch]:
        """Begin to run a batch; see `Evaluator`."""
        return self._thread.submit(self._run, inputs)

    @staticmethod
    def makers() -> tuple[OutputMaker | None, ...]:
        """Return nothing: the graph is not known."""
        return ()

    def close(self) -> None:
        """End the thread; batches that it has not begun are given up."""
        self._thread.shutdown(cancel_futures=True)

    def _run(self, inputs: NDArray[np.generic]) -> RawBatch:
        begin = time.perf_counter()
        shape, dtype = row_layout(self.signature.outputs)
        outputs = np.zeros((len(inputs), prod(shape)), dtype)
        failures: dict[int, str] = {}
        for index in range(len(inputs)):
            try:
                made = self._invoke(inputs[index : index + 1]).reshape(-1)
                if made.size != outputs.shape[1]:  # a single number would be taken for all
                    raise ValueError(f"{made.size} numbers in place of {outputs.shape[1]}")
                outputs[index] = made
            except USER_ERRORS:  # whatever a model raises on an input is that input's failure
                failures[index] = "error"
                outputs[index] = 0
        return RawBatch(outputs, failures, time.perf_counter() - begin)


def open_callable(source: str, shape: tuple[int, ...]) -> InProcessModel:
    """Import a function that is the original model, and call it on zeros to check its output.

    The function takes a float32 array, preprocessed but not quantized, such as (1, H, W, C) of an
    image, and returns one output, such as (1, classes) or (classes,), as anything that numpy can
    read. It is always called on one input.

    Args:
        source: `module:function`, importable from the working directory too, or
            `path/to/file.py:function`.
        shape: shape of the array, whose first dimension is 1.

    Raises:
        UserError: the function cannot be imported, or its answer is no array of numbers.

    """
    function = load_callable(source, "inputs")

    def invoke(array: NDArray[np.generic]) -> NDArray[np.generic]:
        output = np.asarray(function(array.copy()))  # which the user's code may overwrite
        if not np.issubdtype(output.dtype, np.floating):
            raise TypeError(f"it returned {output.dtype}, but scores are floating-point numbers")
        return np.atleast_2d(output).astype(np.float32)

    try:
        answer = invoke(np.zeros(shape, np.float32))
    except USER_ERRORS as error:
        raise UserError(
            f"{source}: calling it on a float32 array of zeros {shape} failed: {reason(error)}"
        ) from error
    given, made = Tensor("input", shape, "float32"), Tensor("output", answer.shape, "float32")
    return InProcessModel(Signature((given,), (made,)), invoke)


_DTYPES = {
    "tensor(float)": "float32",
    "tensor(float16)": "float16",
    "tensor(double)": "float64",
    **{
        f"tensor({name})": name
        for bits in (8, 16, 32, 64)
        for name in (f"int{bits}", f"uint{bits}")
    },
    "tensor(bool)": "bool",
}
"""Numpy's names of the types, by onnxruntime's."""

_QUIET = 4

_NO_SHAPES: Final[Mapping[str, Sequence[int]]] = MappingProxyType({})


def open_onnx(path: Path, compressed: Mapping[str, Sequence[int]] = _NO_SHAPES) -> InProcessModel:
    """Load an ONNX model.

    Symbolic dimensions of an input have the sizes of the compressed model's input of that name, or
    else of the first that fits, its channels first or last, and count as 1 where none fits; so a
    model with a dynamic batch is invoked on one input at a time. Threads: one.

    Args:
        path: the file.
        compressed: the shapes of the compressed model's inputs, by name.

    Raises:
        UserError: onnxruntime is not installed, the file is missing or refused, an input or output
            is not of numbers, or it does not run in these shapes.

    """
    check_model_file(path)
    session = _session(path)
    inputs = tuple(
        Tensor(node.name, _sized(node.shape, _likeliest(node.name, compressed)), _dtype(node))
        for node in session.get_inputs()
    )
    outputs = tuple(Tensor(node.name, (), _dtype(node)) for node in session.get_outputs())
    for role, tensors in (("input", inputs), ("output", outputs)):
        for tensor in tensors:
            if tensor.dtype not in _DTYPES.values():
                raise UserError(
                    f"{path}: {role} {tensor.name!r} is {tensor.dtype}, but of an ONNX model"
                    f" {', '.join(_DTYPES.values())} are supported: convert the model so"
                )
    shapes = _declared_shapes(session) or _shapes_of_run(session, inputs, path)
    outputs = tuple(
        replace(tensor, shape=shape) for tensor, shape in zip(outputs, shapes, strict=True)
    )

    def invoke(row: NDArray[np.generic]) -> NDArray[np.generic]:
        arrays = unpack_rows(inputs, row)
        given = {tensor.name: array[0] for tensor, array in zip(inputs, arrays, strict=True)}
        made = [output[np.newaxis] for output in session.run(None, given)]
        return pack_rows(outputs, made)

    return InProcessModel(Signature(inputs, outputs), invoke)


def _session(path: Path) -> onnxruntime.InferenceSession:
    try:
        import onnxruntime  # noqa: PLC0415  # an extra: absent unless asked for
    except ImportError as missing:
        raise UserError(
            f'{path}: ONNX models need onnxruntime: pip install "edgeflare[onnx]"'
        ) from missing
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.inter_op_num_threads = 1
    options.log_severity_level = _QUIET
    try:
        return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    except Exception as refused:  # onnxruntime's errors share no base class
        raise UserError(
            f"{path}: onnxruntime {onnxruntime.__version__} refuses the file: {reason(refused)}"
        ) from refused


def _dtype(node: onnxruntime.NodeArg) -> str:
    told = str(node.type)
    return _DTYPES.get(told, told)


def _likeliest(name: str, shapes: Mapping[str, Sequence[int]]) -> list[Sequence[int]]:
    """Return shapes by names, that of a name first."""
    return [shapes[known] for known in sorted(shapes, key=lambda known: known != name)]


def _sized(shape: Sequence[int | str | None], likely: Sequence[Sequence[int]]) -> tuple[int, ...]:
    """Return a shape without symbolic dimensions: they are those of the first one that fits."""
    for order in chain.from_iterable(map(_orders, likely)):
        pairs = zip(shape, order, strict=False)
        if len(order) == len(shape) and all(s == o or not isinstance(s, int) for s, o in pairs):
            return order
    return tuple(size if isinstance(size, int) else 1 for size in shape)


def _orders(shape: Sequence[int]) -> Iterator[tuple[int, ...]]:
    """Yield a shape, and of a picture those with its channels first and last."""
    yield tuple(shape)
    if len(shape) == 4:
        yield (shape[0], shape[3], *shape[1:3])
        yield (shape[0], *shape[2:], shape[1])


def _declared_shapes(session: onnxruntime.InferenceSession) -> list[tuple[int, ...]]:
    """Return the shapes of the outputs, a batch of one; none where a size is open."""
    shapes = [node.shape for node in session.get_outputs()]
    if any(not isinstance(size, int) for shape in shapes for size in shape[1:]):
        return []
    return [tuple(size if isinstance(size, int) else 1 for size in shape) for shape in shapes]


def _shapes_of_run(
    session: onnxruntime.InferenceSession, inputs: Sequence[Tensor], path: Path
) -> list[tuple[int, ...]]:
    """Return the shapes that the outputs have for inputs in their shapes."""
    given = {tensor.name: np.zeros(tensor.shape, tensor.dtype) for tensor in inputs}
    try:
        made = session.run(None, given)
    except Exception as refused:  # onnxruntime's errors share no base class
        shapes = " and ".join(f"{tensor.name!r} {tensor.shape}" for tensor in inputs)
        raise UserError(
            f"{path} does not run on inputs of the shapes {shapes}: {reason(refused)}"
        ) from refused
    return [tuple(output.shape) for output in made]
