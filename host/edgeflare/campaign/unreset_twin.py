"""The twin asked about seeds without a reset of its variables, as by an app that forgets it."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Future
from contextlib import closing
from dataclasses import replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from edgeflare.campaign.pair_panel import OpenedPair
from edgeflare.core.answer import Answer
from edgeflare.core.query import Arm
from edgeflare.core.tensor import RawBatch, Tensor, pack_rows, unpack_rows
from edgeflare.core.truths import is_right
from edgeflare.errors import UserError
from edgeflare.models.compressed_model import open_compressed_for
from edgeflare.models.decoder_rows import as_read_by, submit
from edgeflare.models.evaluator import Evaluator, Signature
from edgeflare.models.model_variables import file_variables
from edgeflare.run.journal_notes import WithoutReset

MOST_SEEDS: Final = 64
"""Enough to see how much hangs on the reset; a whole file of them could take long."""

_SECONDS: Final = 10.0
"""Time that one of them may take, as for any input."""


def answers_without_reset(opened: OpenedPair) -> WithoutReset | None:
    """Ask the twin about the first seeds as one sequence, and compare with an input at a time.

    Returns:
        What differs; None where the compressed model has no variables, or has an explicit state
        too, or does not answer.

    """
    pair, arm = opened.pair, opened.panel.host(Arm.TWIN)
    invocation, count = pair.interface.invocation, min(len(opened.seeds), MOST_SEEDS)
    if invocation.state or not file_variables(str(pair.compressed), invocation.signature):
        return None
    seed_ids = opened.seeds.seed_ids[:count]
    given = arm.given(opened.seeds.inputs[:count], seed_ids)
    sequence = replace(invocation, frames=count * max(1, invocation.frames))
    try:
        model = open_compressed_for(
            pair, opened.ensemble[0], sequence, input_seconds=_SECONDS * count
        )
    except UserError:  # the sequence is more than a tensor may hold
        return None
    with closing(model):
        unreset = as_read_by(pair.interface, _Sequence(model, invocation.frames))
        raw = [arm.submit(given).result(), submit(unreset, given).result()]
    if any(raw_batch.failures for raw_batch in raw):
        return None
    answers = [list(arm.decoder.read(raw_batch)) for raw_batch in raw]
    truths = opened.truths
    return _compared(answers[0], answers[1], [truths[seed_id] for seed_id in seed_ids])


def _compared(
    reset: Sequence[Answer], unreset: Sequence[Answer], truths: Sequence[Answer | None]
) -> WithoutReset:
    known = [at for at, truth in enumerate(truths) if truth is not None]
    sides = {"with": reset, "without": unreset}
    return WithoutReset(
        seeds=len(reset),
        changed=sum(answer.differs(other) for answer, other in zip(reset, unreset, strict=True)),
        labelled=len(known),
        right={
            name: sum(is_right(answers[at], truths[at]) for at in known)
            for name, answers in sides.items()
        }
        if known
        else None,
    )


class _Sequence:
    """An evaluator of a model that runs each batch as one sequence, and resets nothing in it."""

    def __init__(self, model: Evaluator, frames: int) -> None:
        """Take the model, which takes the inputs of a batch as the frames of one clip.

        Args:
            model: evaluator of that one clip.
            frames: frames of each input; 0 where an input is no clip.

        """
        self._model = model
        taken, made = (
            tuple(
                replace(tensor, shape=((frames,) if frames else ()) + tensor.shape[1:])
                for tensor in tensors
            )
            for tensors in (model.signature.inputs, model.signature.outputs)
        )
        self.signature = Signature(taken, made)

    def submit(self, inputs: NDArray[np.generic]) -> Future[RawBatch]:
        """Run a batch; see `Evaluator`."""
        model, own, done = self._model.signature, self.signature, Future[RawBatch]()
        raw = self._model.submit(_reshaped(own.inputs, inputs, model.inputs, 1)).result()
        outputs = _reshaped(model.outputs, raw.outputs, own.outputs, len(inputs))
        failures = {at: kind for kind in raw.failures.values() for at in range(len(inputs))}
        done.set_result(RawBatch(outputs, failures, raw.busy_seconds))
        return done

    def close(self) -> None:
        """Close the model."""
        self._model.close()


def _reshaped(
    tensors: Sequence[Tensor], rows: NDArray[np.generic], others: Sequence[Tensor], count: int
) -> NDArray[np.generic]:
    """Return rows of a batch as `count` rows of other tensors, which have the same values."""
    arrays = zip(unpack_rows(tensors, rows), others, strict=True)
    return pack_rows(others, [array.reshape(count, *other.shape) for array, other in arrays])
