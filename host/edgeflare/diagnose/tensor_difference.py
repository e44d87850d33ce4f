"""The difference between two arms' values of one tensor."""

from __future__ import annotations

from dataclasses import dataclass
from math import log10
from typing import Annotated

import msgspec
import numpy as np
from numpy.typing import NDArray

from edgeflare.models.model_probe import Values
from edgeflare.models.tflite_graph import GraphTensor
from edgeflare.record.json_types import Amount

FLOAT_NOISE = 1e-5
"""Share of a float tensor's largest value: the same sum taken in another order differs by less."""


@dataclass(frozen=True, slots=True)
class Difference:
    """The difference of a tensor's values from those that are expected.

    Attributes:
        max_units: largest difference in quantization units; null for tensors that are not
            quantized.
        max_real: largest difference of the real values.
        cosine: of the angle between the two, as vectors; 1 where both are zeros.
        snr_db: signal to noise in decibels; null where the two are equal.
        rms_real: root mean square of the difference of the real values.
        parted: whether they differ, and by more than the order of summing explains.

    """

    max_units: Amount | None
    max_real: Amount
    cosine: Annotated[float, msgspec.Meta(ge=-1, le=1)]
    snr_db: float | None
    rms_real: Amount
    parted: bool


def difference(tensor: GraphTensor, wanted: Values, got: Values) -> Difference:
    """Return the difference of `got` from `wanted`, both raw values of a tensor.

    Values that are not finite are as far as can be from all but equal ones.
    """
    equal = wanted.tobytes() == got.tobytes()
    units = None
    if tensor.scales:
        units = float(np.abs(got.astype(np.int64) - wanted.astype(np.int64)).max(initial=0))
    signal, seen = tensor.real(wanted).ravel(), tensor.real(got).ravel()
    if equal:
        return Difference(units, 0.0, 1.0, None, 0.0, parted=False)
    apart = distances(signal, seen)
    finite = np.isfinite(signal) & np.isfinite(seen)
    if apart[~finite].any():
        return Difference(units, LARGEST, 0.0, -_LARGEST_DB, LARGEST, parted=True)
    signal, seen, noise = signal[finite], seen[finite], apart[finite]
    if not signal.size:
        return Difference(units, 0.0, 1.0, None, 0.0, parted=False)
    largest = float(noise.max())
    power, noise_power = float((signal**2).mean()), float((noise**2).mean())
    threshold = 0.0 if tensor.scales else FLOAT_NOISE * float(np.abs(signal).max(initial=0.0))
    return Difference(
        units,
        largest,
        _cosine(signal, seen),
        _decibels(power, noise_power),
        float(np.sqrt(noise_power)),
        parted=largest > threshold,
    )


LARGEST = float(2**53 - 1)
"""How far values that are not finite are from others: the largest number that documents hold."""


def distances(wanted: NDArray[np.float64], got: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return how far values are apart, which is infinity where one of both alone is not finite.

    NaN and NaN are equal, and so are infinities of one sign.
    """
    with np.errstate(invalid="ignore", over="ignore"):
        apart = np.abs(got - wanted)
    same = (got == wanted) | (np.isnan(got) & np.isnan(wanted))
    return np.where(same, 0.0, np.where(np.isnan(apart), np.inf, apart))


def in_digits(value: float, form: str) -> str:
    """Return a difference as people read it; of what is not finite, that."""
    return "not finite" if value >= LARGEST else f"{value:{form}}"


_LARGEST_DB = 999.0
"""Where one of the two is zero: JSON has no infinity."""


def _cosine(a: NDArray[np.float64], b: NDArray[np.float64]) -> float:
    # Sums in place of BLAS, whose threads cost more than they save, and decide the last digit.
    lengths = float(np.sqrt((a * a).sum()) * np.sqrt((b * b).sum()))
    if not lengths:
        return float(not a.any() and not b.any())
    return float(np.clip((a * b).sum() / lengths, -1.0, 1.0))


def _decibels(power: float, noise_power: float) -> float | None:
    if not noise_power:
        return None
    if not power:
        return -_LARGEST_DB
    return float(np.clip(10 * log10(power / noise_power), -_LARGEST_DB, _LARGEST_DB))
