"""Models that run within the host's own process: ONNX models and Python callables."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from edgeflare.core.task import OutputMaker
from edgeflare.core.tensor import RawBatch, Tensor
from edgeflare.errors import UserError
from edgeflare.models.evaluator import ONCE, Signature
from edgeflare.models.model_file import check_model_file
from edgeflare.python_callable import USER_ERRORS, load_callable, reason

if TYPE_CHECKING:
    import onnxruntime

Invoke = Callable[[NDArray[np.generic]], NDArray[np.generic]]
"""Runs a model on one input, (1, *input shape without its batch dimension)."""


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
        output = self.signature.output
        outputs = np.zeros((len(inputs), prod(output.shape)), output.dtype)
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


def open_onnx(path: Path, compressed: Sequence[int] = ()) -> InProcessModel:
    """Load an ONNX model with one input and one output.

    Symbolic dimensions of the input have the sizes of the compressed model's, its channels first or
    last, and count as 1 where that does not fit; so a model with a dynamic batch is invoked on one
    input at a time. Threads: one.

    Args:
        path: the file.
        compressed: the shape of the compressed model's input.

    Raises:
        UserError: onnxruntime is not installed, the file is missing or refused, it has several
            inputs or outputs, or does not run in this shape.

    """
    check_model_file(path)
    session = _session(path)
    inputs = _tensors(session.get_inputs(), compressed)
    outputs = _tensors(session.get_outputs(), ())
    for role, tensors in (("input", inputs), ("output", outputs)):
        if len(tensors) != 1:
            names = ", ".join(repr(tensor.name) for tensor in tensors) or "none"
            raise UserError(
                f"{path} has {len(tensors)} {role}s ({names}), but of an ONNX model exactly one is"
                f" supported: export it with one {role}, or as .tflite"
            )
        if tensors[0].dtype not in _DTYPES.values():
            raise UserError(
                f"{path}: {role} {tensors[0].name!r} is {tensors[0].dtype}, but of an ONNX model"
                f" {', '.join(_DTYPES.values())} are supported: convert the model so"
            )
    (given,), (made,), name = inputs, outputs, inputs[0].name
    if any(not isinstance(size, int) for size in session.get_outputs()[0].shape[1:]):
        made = replace(made, shape=_shape_of_run(session, given, path))
    signature = Signature((given,), (made,))

    def invoke(array: NDArray[np.generic]) -> NDArray[np.generic]:
        output: NDArray[np.generic] = session.run(None, {name: array})[0]
        return output

    return InProcessModel(signature, invoke)


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


def _tensors(nodes: Sequence[onnxruntime.NodeArg], like: Sequence[int]) -> list[Tensor]:
    return [
        Tensor(node.name, _sized(node.shape, like), _DTYPES.get(node.type, node.type))
        for node in nodes
    ]


def _sized(shape: Sequence[int | str | None], like: Sequence[int]) -> tuple[int, ...]:
    """Return a shape without symbolic dimensions: they are those of another one, where it fits."""
    known = tuple(like)
    orders = [known]
    if len(known) == 4:
        orders += [(known[0], known[3], *known[1:3]), (known[0], *known[2:], known[1])]
    for order in orders:
        pairs = zip(shape, order, strict=False)
        if len(order) == len(shape) and all(s == o or not isinstance(s, int) for s, o in pairs):
            return order
    return tuple(size if isinstance(size, int) else 1 for size in shape)


def _shape_of_run(
    session: onnxruntime.InferenceSession, given: Tensor, path: Path
) -> tuple[int, ...]:
    """Return the shape that the output has for an input in its shape."""
    try:
        (made,) = session.run(None, {given.name: np.zeros(given.shape, given.dtype)})
    except Exception as refused:  # onnxruntime's errors share no base class
        raise UserError(
            f"{path} does not run on an input of shape {given.shape}: {reason(refused)}"
        ) from refused
    return tuple(made.shape)
