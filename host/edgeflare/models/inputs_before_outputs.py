"""Models whose rows of outputs begin with the inputs, for tasks that compare the two."""

from __future__ import annotations

from concurrent.futures import Future
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from edgeflare.core.task import Decoder
from edgeflare.core.tensor import RawBatch
from edgeflare.models.evaluator import Evaluator, Signature


class InputsBeforeOutputs:
    """An evaluator of the same model, each of whose rows of outputs begins with its inputs."""

    def __init__(self, evaluator: Evaluator) -> None:
        """Take the evaluator, which whoever opened it closes."""
        self._evaluator = evaluator
        inner = evaluator.signature
        self.signature = Signature(inner.inputs, (*inner.inputs, *inner.outputs))

    def submit(self, inputs: NDArray[np.generic]) -> Future[RawBatch]:
        """Begin to run a batch; see `Evaluator`."""
        whole: Future[RawBatch] = Future()
        before = _bytes(inputs)

        def put_together(done: Future[RawBatch]) -> None:
            try:
                batch = done.result()
                rows = np.concatenate([before, _bytes(batch.outputs)], axis=1)
            except Exception as error:  # else whoever waits for the batch waits forever
                whole.set_exception(error)
            else:
                whole.set_result(replace(batch, outputs=rows))

        self._evaluator.submit(inputs).add_done_callback(put_together)
        return whole

    def close(self) -> None:
        """Close the evaluator."""
        self._evaluator.close()


def as_read_by(decoder: Decoder, evaluator: Evaluator) -> Evaluator:
    """Return an evaluator whose rows have all that a decoder reads."""
    reads_inputs = len(decoder.outputs) > len(evaluator.signature.outputs)
    return InputsBeforeOutputs(evaluator) if reads_inputs else evaluator


def _bytes(rows: NDArray[np.generic]) -> NDArray[np.uint8]:
    return np.ascontiguousarray(rows).reshape(len(rows), -1).view(np.uint8)
