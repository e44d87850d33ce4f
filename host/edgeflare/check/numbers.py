"""How far the outputs of two arms are apart, as numbers."""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from edgeflare.check.answers import Answers
from edgeflare.check.figures import OutputFigures
from edgeflare.core.kept_rows import restored_row
from edgeflare.core.query import Arm
from edgeflare.core.tensor import dequantize, unpack_rows
from edgeflare.diagnose.layers.layer_figures import ErrorSums, LayerError

_MOST: Final = 256
"""Inputs whose outputs are held against each other."""


def output_figures(answers: Answers) -> tuple[OutputFigures, ...]:
    """Return how far the outputs that are read are apart."""
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


_Rows = list[list[NDArray[np.float64]]]
"""By input, the real values of the outputs that are read."""


def _real(answers: Answers, arm: Arm) -> _Rows:
    decoder = answers.opened.panel.reading.decoders[arm]
    rows = []
    for one in answers.evaluated[:_MOST]:
        row = np.frombuffer(restored_row(decoder, one.raw[arm]), np.uint8)
        values = unpack_rows(decoder.outputs, row[None])
        rows.append([dequantize(values[at], decoder.outputs[at]) for at in decoder.read_at])
    return rows


def _error(
    real: dict[Arm, _Rows], first: Arm, second: Arm, at: int, step: float
) -> LayerError | None:
    if first not in real:
        return None
    sums = ErrorSums(step or None)
    for wanted, got in zip(real[first], real[second], strict=True):
        if at < len(wanted) and at < len(got) and wanted[at].size == got[at].size:
            sums.add(wanted[at].ravel(), got[at].ravel())
    return sums.figures()
