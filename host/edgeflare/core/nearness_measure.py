"""Measures of how near an input is to its seed, in dB."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf, log10, sqrt


@dataclass(frozen=True, slots=True)
class NearnessMeasure:
    """A measure of how near an input is to its seed, in dB; larger is nearer.

    Attributes:
        name: as reports write it.
        within: the least at which a deviation counts, unless told otherwise.
        curve: from where to where the share of seeds is drawn against the measure.

    """

    name: str
    within: float
    curve: tuple[float, float]


PSNR = NearnessMeasure("PSNR", within=30.0, curve=(10.0, 60.0))
"""The peak signal-to-noise ratio: 20 log10 of the span of values over the change, root mean square.
From 81 levels of an image, just within the default bound of a search, to a quarter of one."""

SNR = NearnessMeasure("SNR", within=20.0, curve=(0.0, 50.0))
"""The signal-to-noise ratio: the same with the seed's own root mean square in place of the span.
The contrast of images is 54 to 83 gray levels, 9.8 to 13.5 dB below their span, and that of spoken
words as many levels. So each figure is 10 dB below that of PSNR."""


def decibels(peak: float, l2: float, values: int) -> float:
    """Return 20 log10(peak sqrt(values) / l2): infinite for no change, -infinite for no peak.

    Args:
        peak: what a change is compared with, in levels.
        l2: Euclidean length of the change, in levels.
        values: number of values of the input.

    """
    if l2 == 0.0:
        return inf
    return 20.0 * log10(peak * sqrt(values) / l2) if peak else -inf
