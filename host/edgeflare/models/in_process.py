"""Models that run within the host's own process: ONNX models and Python callables."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from math import prod

import numpy as np
from numpy.typing import NDArray

from edgeflare.core.task import OutputMaker
from edgeflare.core.tensor import RawBatch, Tensor
from edgeflare.errors import UserError
from edgeflare.models.evaluator import Signature
from edgeflare.models.invocation import ONCE
from edgeflare.python_callable import load_callable, reason

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
                outputs[index] = self._invoke(inputs[index : index + 1]).reshape(-1)
            except Exception:  # whatever a model raises on an input is that input's failure
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
        shape: of the array, whose first dimension is 1.

    Raises:
        UserError: the function cannot be imported, or its answer is no array of numbers.

    """
    function = load_callable(source, "inputs")

    def invoke(one: NDArray[np.generic]) -> NDArray[np.generic]:
        return _output(function(one))

    try:
        answer = invoke(np.zeros(shape, np.float32))
    except Exception as error:  # whatever the user's code raises is the user's to correct
        raise UserError(
            f"{source}: calling it on a float32 array of zeros {shape} failed: {reason(error)}"
        ) from error
    given, made = Tensor("input", shape, "float32"), Tensor("output", answer.shape, "float32")
    return InProcessModel(Signature((given,), (made,)), invoke)


def _output(answer: object) -> NDArray[np.float32]:
    output = np.asarray(answer)
    if not np.issubdtype(output.dtype, np.floating):
        raise TypeError(f"it returned {output.dtype}, but scores are floating-point numbers")
    return np.atleast_2d(output).astype(np.float32)
