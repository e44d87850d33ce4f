"""How far the outputs of two arms are apart, as numbers."""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from edgeflare.check.answers import Answers
from edgeflare.check.figures.device import OutputFigures, ScoreError
from edgeflare.core.query import Arm
from edgeflare.core.tensor import dequantize, unpack_rows
from edgeflare.diagnose.layers.layer_figures import ErrorSums, LayerError
from edgeflare.run.systematic.one_sided import score_change

_MOST: Final = 64
"""Inputs whose outputs are held against each other."""


def output_figures(answers: Answers) -> tuple[OutputFigures, ...]:
    """Return how far the outputs that are read are apart, on the first inputs.

    Raises:
        InfrastructureError: a device or a worker process is lost.

    """
    arms = answers.opened.panel.arms
    real = {arm: _real(answers, arm) for arm in arms}
    twin = answers.opened.panel.reading.decoders[Arm.TWIN]
    return tuple(
        OutputFigures(
            output=twin.outputs[place].name,
            compression=_error(real, Arm.ORIGINAL, Arm.TWIN, at, twin.outputs[place].scale),
            kernels=_error(real, Arm.TWIN, Arm.DEVICE, at, twin.outputs[place].scale),
        )
        for at, place in enumerate(twin.read_at)
    )


def score_error(answers: Answers) -> ScoreError | None:
    """Return how much higher the device scores what is decided; None without such a score."""
    first, device = (answers.of(arm) for arm in answers.goal.compared)
    change = score_change(first, device)
    if change is None:
        return None
    words, _ = first[0].support_words()
    return ScoreError(score=words, **change._asdict())


_Rows = list[list[NDArray[np.float64]] | None]
"""Real values of the outputs that are read, by input; None where the arm failed."""


def _real(answers: Answers, arm: Arm) -> _Rows:
    """Ask an arm once more: what is kept of its outputs may be what decisions need alone."""
    opened = answers.opened
    ids, places = answers.seed_ids[:_MOST], list(answers.places[:_MOST])
    model = opened.panel.device_of(ids[0]) if arm is Arm.DEVICE else opened.panel.host(arm)
    batch = model.submit(model.given(opened.seeds.inputs[places], ids)).result()
    read = model.decoder.read_at
    tensors = model.decoder.outputs
    values = unpack_rows(tensors, batch.outputs)
    real = [dequantize(values[at], tensors[at]) for at in read]
    return [
        None if at in batch.failures else [one[at] for one in real] for at in range(len(places))
    ]


def _error(
    real: dict[Arm, _Rows], first: Arm, second: Arm, at: int, step: float
) -> LayerError | None:
    if first not in real:
        return None
    sums = ErrorSums(step or None)
    for wanted, got in zip(real[first], real[second], strict=True):
        if wanted is None or got is None:
            continue
        if at < len(wanted) and at < len(got) and wanted[at].size == got[at].size:
            sums.add(wanted[at].ravel(), got[at].ravel())
    return sums.figures()
