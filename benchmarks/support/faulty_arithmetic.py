"""Kernels that round, saturate or sum up wrongly, or do not compute all of their results."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from edgeflare.conform.operator_graph import Values
from faulty_operands import Answer, Misreading
from operator_run import OperatorRun, Rounding, Steps

_ACTIVATIONS = {
    "NONE": (-np.inf, np.inf),
    "RELU": (0.0, np.inf),
    "RELU6": (0.0, 6.0),
    "RELU_N1_TO_1": (-1.0, 1.0),
}


def rounded_by(rounding: Rounding) -> Misreading:
    """Round otherwise."""
    return lambda run: run.answer(rounding)


def down(steps: Steps, known: np.iinfo[Any], middle: int) -> Steps:
    """Round down: as a shift to the right does."""
    return np.clip(np.floor(steps), known.min, known.max)


def towards_zero(steps: Steps, known: np.iinfo[Any], middle: int) -> Steps:
    """Round towards the zero point, as a conversion to whole numbers does before it is added."""
    return np.clip(np.trunc(steps - middle) + middle, known.min, known.max)


def twice(parts: int) -> Rounding:
    """Round to parts of a step first, and then to steps, up from the middle each time."""

    def rounded(steps: Steps, known: np.iinfo[Any], middle: int) -> Steps:
        halves = np.floor(parts * steps + 0.5) / parts
        return np.clip(np.floor(halves + 0.5), known.min, known.max)

    return rounded


def wrapping(steps: Steps, known: np.iinfo[Any], middle: int) -> Steps:
    """Keep the low bits of what does not fit."""
    count = known.max - known.min + 1
    return np.asarray(np.mod(np.rint(np.nan_to_num(steps)) - known.min, count) + known.min)


def summed_in_16_bits(run: OperatorRun) -> Answer:
    """Wrap sums of products at 16 bits."""
    data, weights = run.operands[run.given()], run.operands[1]
    assert data is not None
    assert weights is not None
    activation = str(run.options.get("fusedActivationFunction", "NONE"))
    if "fusedActivationFunction" in run.options:
        run = run.with_options(fusedActivationFunction="NONE")
    (exact,) = run.exact()
    assert data.value.quantization is not None
    assert weights.value.quantization is not None
    unit = data.value.quantization.scales[0] * np.asarray(weights.value.quantization.scales)
    sums = np.mod(np.rint(exact.values / unit) + 2**15, 2**16) - 2**15
    real = np.clip(sums * unit, *_ACTIVATIONS[activation])
    (result,) = run.results
    assert result.quantization is not None
    steps = real / result.quantization.scales[0] + result.quantization.zero_point
    known = np.iinfo(result.dtype)
    return [np.clip(np.rint(steps), known.min, known.max).astype(result.dtype)]


def without_tail(made: list[Values], width: int) -> Answer:
    """Leave what is no full vector at the end of a result as zeros."""
    return [_cut(one, width) for one in made]


def _cut(made: NDArray[Any], width: int) -> Values:
    flat = made.ravel().copy()
    flat[flat.size - flat.size % width :] = 0
    return np.asarray(flat.reshape(made.shape))
