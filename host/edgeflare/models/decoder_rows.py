"""The rows that decoders read, where a model's outputs alone are not all that a task needs."""

from __future__ import annotations

from concurrent.futures import Future
from dataclasses import replace
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from edgeflare.core.tensor import (
    GivenRows,
    RawBatch,
    Tensor,
    dequantize,
    float_tensors,
    pack_rows,
    unpack_rows,
)
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

    def made_of(self, given: GivenRows, batch: RawBatch) -> RawBatch:
        """Return a batch as decoders read it.

        Args:
            given: what the model was given.
            batch: what it made of them.

        Raises:
            UserError: a function of the user raised an exception, or returned something else.

        """


def decoder_rows(interface: PairInterface, signature: Signature) -> DecoderRows | None:
    """Return what makes the rows that decoders read; None where they read the model's own."""
    if interface.post_processing is not None:
        return PostProcessedRows(interface.post_processing, signature.outputs)
    task = interface.opened_task
    if not task.reads_inputs:
        return None
    return InputsBeforeOutputs(signature, before_quantization=task.reads_features)


class InputsBeforeOutputs:
    """Rows that begin with the model's inputs, for tasks that compare the two."""

    def __init__(self, signature: Signature, *, before_quantization: bool) -> None:
        """Begin with what the model was given, or with that before it was quantized."""
        self._inputs = signature.inputs
        first = float_tensors(signature.inputs) if before_quantization else signature.inputs
        self._quantized = first == signature.inputs
        self.outputs = (*first, *signature.outputs)

    def made_of(self, given: GivenRows, batch: RawBatch) -> RawBatch:
        """Return the batch with the inputs before the outputs.

        Where features are wanted and not known, as of an input that only exists as a model takes
        it, they are what that stands for.
        """
        first = given.rows
        if not self._quantized:
            first = self._real(given.rows) if given.features is None else given.features
        rows = np.concatenate([_bytes(first), _bytes(batch.outputs)], axis=1)
        return replace(batch, outputs=rows)

    def _real(self, rows: NDArray[np.generic]) -> NDArray[np.generic]:
        arrays = [
            dequantize(array, tensor).astype(np.float32) if tensor.scale else array
            for array, tensor in zip(unpack_rows(self._inputs, rows), self._inputs, strict=True)
        ]
        return pack_rows(float_tensors(self._inputs), arrays)


def submit(evaluator: Evaluator, given: GivenRows) -> Future[RawBatch]:
    """Begin to run a batch of which the task may read more than the model is given.

    Args:
        evaluator: as `as_read_by` returns it.
        given: what the model is given.

    """
    if isinstance(evaluator, _WithDecoderRows):
        return evaluator.submit_given(given)
    return evaluator.submit(given.rows)


class _WithDecoderRows:
    """An evaluator of the same model, whose rows are those that decoders read."""

    def __init__(self, evaluator: Evaluator, rows: DecoderRows) -> None:
        self._evaluator = evaluator
        self._rows = rows
        self.signature = Signature(evaluator.signature.inputs, rows.outputs)

    def submit(self, inputs: NDArray[np.generic]) -> Future[RawBatch]:
        """Begin to run a batch; see `Evaluator`."""
        return self.submit_given(GivenRows(inputs))

    def submit_given(self, given: GivenRows) -> Future[RawBatch]:
        """Begin to run a batch of which more is known than the model is given."""
        whole: Future[RawBatch] = Future()

        def put_together(done: Future[RawBatch]) -> None:
            try:
                made = self._rows.made_of(given, done.result())
            except BaseException as error:  # else whoever waits for the batch waits forever
                whole.set_exception(error)
            else:
                whole.set_result(made)

        self._evaluator.submit(given.rows).add_done_callback(put_together)
        return whole

    def close(self) -> None:
        """Close the evaluator."""
        self._evaluator.close()


def _bytes(rows: NDArray[np.generic]) -> NDArray[np.uint8]:
    return np.ascontiguousarray(rows).reshape(len(rows), -1).view(np.uint8)
