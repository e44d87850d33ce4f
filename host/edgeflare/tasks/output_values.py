"""The real values of one output in a batch, and which of its rows hold none."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from edgeflare.core.answer import Failure
from edgeflare.core.tensor import RawBatch, Tensor, dequantize, unpack_tensor

TIE_STEPS = 1e-5
"""Steps of a quantized score by which it may miss a threshold and still equals it: its scale is a
float32, which the threshold is not."""

_FAILURES: dict[str, Failure] = {"crash": "crash", "hang": "hang"}


class OutputValues(NamedTuple):
    """What a batch holds of one output.

    Attributes:
        raw: (batch, *shape), the model's own numbers.
        real: (batch, *shape) float64, dequantized; zeros where they are not finite.
        failures: why a row holds no answer, by its position.

    """

    raw: NDArray[np.generic]
    real: NDArray[np.float64]
    failures: dict[int, Failure]


def output_values(
    batch: RawBatch,
    outputs: Sequence[Tensor],
    at: int,
    used: NDArray[np.bool_] | None = None,
) -> OutputValues:
    """Read one output of a batch.

    Values that are not finite, of a wrong shape, or refused by the runtime are an "invalid-output".

    Args:
        batch: the rows.
        outputs: all tensors of a row.
        at: the position of the one that is read.
        used: (batch, n), which of n equal parts of the output, such as places of objects, the model
            has written; the others may hold anything, and are read as zeros. None for all.

    """
    size = len(batch.outputs)
    failures = {
        index: _FAILURES.get(why, "invalid-output") for index, why in batch.failures.items()
    }
    try:
        raw = unpack_tensor(outputs, batch.outputs, at)
    except ValueError:  # another size than that of the outputs
        failures = _invalid(range(size)) | failures
        raw = np.zeros((size, *outputs[at].shape), outputs[at].dtype)
    if used is not None:
        # Before any arithmetic: what stands there need not even be a number that can be converted.
        parts = raw.reshape(*used.shape, -1)
        raw = np.where(used[:, :, None], parts, np.zeros_like(parts)).reshape(raw.shape)
    real = dequantize(raw, outputs[at])
    finite = np.isfinite(real)
    if not finite.all():
        bad = np.flatnonzero(~finite.reshape(size, -1).all(axis=1)).tolist()
        failures = _invalid(bad) | failures
        real[bad] = 0.0
    return OutputValues(raw, real, failures)


def tie_width(tensor: Tensor) -> float:
    """Return by how much a value may miss a threshold and still equals it: 0 unless quantized."""
    return 0.0 if tensor.dtype.startswith("float") else TIE_STEPS * tensor.scale


def _invalid(rows: Iterable[int]) -> dict[int, Failure]:
    return dict.fromkeys(rows, "invalid-output")
