"""The rows that decoders read, where a model's outputs alone are not all that a task needs."""

from __future__ import annotations

from concurrent.futures import Future
from dataclasses import replace
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from edgeflare.core.tensor import RawBatch, Tensor
from edgeflare.models.evaluator import Evaluator, Signature
from edgeflare.models.pair_interface import PairInterface
from edgeflare.models.post_processing import PostProcessedRows


def as_read_by(interface: PairInterface, evaluator: Evaluator) -> Evaluator:
    """Return an evaluator of the same model whose rows are those that the task's decoders read.

    Closing it closes the evaluator.
    """
    made = decoder_rows(interface, evaluator.signature)
    return evaluator if made is None else _WithDecoderRows(evaluator, made)


class DecoderRows(Protocol):
    """Makes of a model's batches those that decoders read."""

    @property
    def outputs(self) -> tuple[Tensor, ...]:
        """The tensors of a row that is made."""

    def made_of(self, inputs: NDArray[np.generic], batch: RawBatch) -> RawBatch:
        """Return a batch as decoders read it.

        Args:
            inputs: the rows that the model was given.
            batch: what it made of them.

        Raises:
            UserError: a function of the user raised an exception, or returned something else.

        """


def decoder_rows(interface: PairInterface, signature: Signature) -> DecoderRows | None:
    """Return what makes the rows that decoders read; None where they read the model's own."""
    if interface.post_processing is not None:
        return PostProcessedRows(interface.post_processing, signature.outputs)
    return InputsBeforeOutputs(signature) if interface.opened_task.reads_inputs else None


class InputsBeforeOutputs:
    """Rows that begin with the model's inputs, for tasks that compare the two."""

    def __init__(self, signature: Signature) -> None:
        self.outputs = (*signature.inputs, *signature.outputs)

    def made_of(self, inputs: NDArray[np.generic], batch: RawBatch) -> RawBatch:
        """Return the batch with the inputs before the outputs."""
        rows = np.concatenate([_bytes(inputs), _bytes(batch.outputs)], axis=1)
        return replace(batch, outputs=rows)


class _WithDecoderRows:
    """An evaluator of the same model, whose rows are those that decoders read."""

    def __init__(self, evaluator: Evaluator, rows: DecoderRows) -> None:
        self._evaluator = evaluator
        self._rows = rows
        self.signature = Signature(evaluator.signature.inputs, rows.outputs)

    def submit(self, inputs: NDArray[np.generic]) -> Future[RawBatch]:
        """Begin to run a batch; see `Evaluator`."""
        whole: Future[RawBatch] = Future()

        def put_together(done: Future[RawBatch]) -> None:
            try:
                made = self._rows.made_of(inputs, done.result())
            except BaseException as error:  # else whoever waits for the batch waits forever
                whole.set_exception(error)
            else:
                whole.set_result(made)

        self._evaluator.submit(inputs).add_done_callback(put_together)
        return whole

    def close(self) -> None:
        """Close the evaluator."""
        self._evaluator.close()


def _bytes(rows: NDArray[np.generic]) -> NDArray[np.uint8]:
    return np.ascontiguousarray(rows).reshape(len(rows), -1).view(np.uint8)
