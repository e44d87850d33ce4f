"""Triangular filters that sum a spectrum into mel bands, as TensorFlow and as librosa have them."""

from __future__ import annotations

from functools import cache
from typing import Literal

import numpy as np
from numpy.typing import NDArray

Real = NDArray[np.float64]

Filters = Literal["htk", "slaney"]
"""Which filters: those of HTK, as TensorFlow has them, or of Slaney's toolbox, as librosa has."""

_LINEAR_BELOW_HZ = 1000.0
_HZ_OF_A_MEL = 200.0 / 3.0
_MEL_OF_1000_HZ = _LINEAR_BELOW_HZ / _HZ_OF_A_MEL
_LOG_STEP = np.log(6.4) / 27.0
"""Slaney's scale: 200/3 Hz are a mel up to 1,000 Hz, above that 27 mels are a factor of 6.4."""


@cache
def mel_filterbank(
    filters: Filters, bins: int, sample_rate: int, bands: int, lowest_hz: float, highest_hz: float
) -> Real:
    """Return the weight of each bin of a spectrum in each mel band.

    Args:
        filters: "htk": edges at even steps of 1127 ln(1 + f / 700), sides that are straight on that
            scale, height 1, and no weight for the mean (`tf.signal.linear_to_mel_weight_matrix`).
            "slaney": edges at even steps of Slaney's scale, sides that are straight in hertz, area
            1 (`librosa.filters.mel`).
        bins: of a spectrum from 0 Hz to half the sample rate, both included.
        sample_rate: in Hz.
        bands: how many.
        lowest_hz: where the first band begins.
        highest_hz: where the last band ends.

    Returns:
        (bins, bands), which cannot be written to.

    """
    hertz = np.linspace(0.0, sample_rate / 2.0, bins)
    if filters == "htk":
        first, last = _htk_mel(np.array([lowest_hz, highest_hz]))
        edges = np.linspace(first, last, bands + 2)
        weights = _triangles(_htk_mel(hertz), edges)
        weights[0] = 0.0
    else:
        first, last = _slaney_mel(np.array([lowest_hz, highest_hz]))
        edges = _slaney_hertz(np.linspace(first, last, bands + 2))
        weights = _triangles(hertz, edges) * (2.0 / (edges[2:] - edges[:-2]))
    weights.flags.writeable = False
    return weights


def _triangles(places: Real, edges: Real) -> Real:
    """Return the height at each place of the triangles over three successive edges each."""
    lower, center, upper = edges[:-2], edges[1:-1], edges[2:]
    rising = (places[:, np.newaxis] - lower) / (center - lower)
    falling = (upper - places[:, np.newaxis]) / (upper - center)
    heights: Real = np.maximum(0.0, np.minimum(rising, falling))
    return heights


def _htk_mel(hertz: Real) -> Real:
    return 1127.0 * np.log1p(hertz / 700.0)


def _slaney_mel(hertz: Real) -> Real:
    above = np.maximum(hertz, _LINEAR_BELOW_HZ)
    logarithmic = _MEL_OF_1000_HZ + np.log(above / _LINEAR_BELOW_HZ) / _LOG_STEP
    return np.where(hertz < _LINEAR_BELOW_HZ, hertz / _HZ_OF_A_MEL, logarithmic)


def _slaney_hertz(mel: Real) -> Real:
    logarithmic = _LINEAR_BELOW_HZ * np.exp(_LOG_STEP * (mel - _MEL_OF_1000_HZ))
    return np.where(mel < _MEL_OF_1000_HZ, mel * _HZ_OF_A_MEL, logarithmic)
