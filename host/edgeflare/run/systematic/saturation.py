"""Outputs that the original gives and the device cannot, since its tensor ends before them."""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from edgeflare.core.task import Decoder
from edgeflare.core.tensor import Tensor, dequantize, unpack_tensor

LEAST_SHARE: Final = 0.01
"""Share of an output's values from which on a side is worth a word. Where calibration leaves out
the rarest values, a few in a thousand lie beyond."""

_BEYOND: Final = 1.01
"""Steps beyond the end of the range from which on a value is cut off: one step more, such as the 1
of a softmax whose largest number is 255/256, is rounding."""

_AT_THE_END: Final = 0.5
"""Share of the values beyond the range where the device has to give its end."""

_MOST_STEPS: Final = 2**16
"""Steps of a range at most, for the numbers of an output to be those of a quantized tensor."""


class Saturation(NamedTuple):
    """A side of an output on which values are cut off.

    Attributes:
        output: name of the output.
        side: "low" or "high".
        end: the end of the device's range.
        share: of the original's values, those beyond it by more than a step.
        values: positions in the output that are beyond on at least half of the seeds.
        of: positions in all.

    """

    output: str
    side: str
    end: float
    share: float
    values: int
    of: int


def saturations(
    decoder: Decoder, rows: NDArray[np.generic], other: Decoder, its_rows: NDArray[np.generic]
) -> list[Saturation]:
    """Return the sides of the outputs that are read on which many values are cut off.

    Of scores the high side alone counts: how far those lie below that are not decided matters to no
    decision, and detectors are often made so that most of theirs are cut off there.

    Args:
        decoder: of the original.
        rows: (seeds, *row), its raw outputs on the seeds, of which none failed.
        other: of the device.
        its_rows: the device's on the same seeds.

    """
    found = []
    scores = {one.tensor for one in decoder.heads or (decoder,) if one.chooses}
    for at, its in zip(decoder.read_at, other.read_at, strict=False):
        tensor = decoder.outputs[at]
        wanted = dequantize(unpack_tensor(decoder.outputs, rows, at), tensor)
        given = dequantize(unpack_tensor(other.outputs, its_rows, its), other.outputs[its])
        wanted, given = wanted.reshape(len(rows), -1), given.reshape(len(rows), -1)
        ends = _range(other.outputs[its], given)
        if ends is None or wanted.shape != given.shape:
            continue
        low, high, step = ends
        sides = {
            "low": (low, wanted < low - _BEYOND * step),
            "high": (high, wanted > high + _BEYOND * step),
        }
        for side, (end, beyond) in sides.items():
            if side == "low" and tensor in scores:
                continue
            if not beyond.any() or (given[beyond] == end).mean() < _AT_THE_END:
                continue  # a lower score, but no end of the range
            share, values = float(beyond.mean()), int((beyond.mean(axis=0) >= 0.5).sum())
            if share >= LEAST_SHARE or values:
                found.append(
                    Saturation(other.outputs[its].name, side, end, share, values, beyond.shape[1])
                )
    return found


def _range(tensor: Tensor, given: NDArray[np.float64]) -> tuple[float, float, float] | None:
    """Return the ends of what an output can hold, and its step; None where it has no end.

    A float32 output may hold what a quantized tensor before it held. Its numbers are then multiples
    of a step, and the ends are the least and the greatest that are given several times.
    """
    if not tensor.dtype.startswith("float"):
        if not tensor.scale:
            return None
        info = np.iinfo(tensor.dtype)
        low, high = ((end - tensor.zero_point) * tensor.scale for end in (info.min, info.max))
        return low, high, tensor.scale
    numbers, counts = np.unique(given, return_counts=True)
    if len(numbers) < 3 or (step := float(np.diff(numbers).min())) * _MOST_STEPS < np.ptp(numbers):
        return None
    low = float(numbers[0]) if counts[0] > 1 else -np.inf
    high = float(numbers[-1]) if counts[-1] > 1 else np.inf
    return low, high, step
