"""Models that run within the host's own process: ONNX models and Python callables."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from math import prod

import numpy as np
from numpy.typing import NDArray

from edgeflare.core.task import OutputMaker
from edgeflare.core.tensor import RawBatch
from edgeflare.models.evaluator import Signature
from edgeflare.models.invocation import ONCE

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
