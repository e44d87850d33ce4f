"""A speaker who is too far from the microphone or too near, and a recorder that overloads."""

from __future__ import annotations

import numpy as np

from edgeflare.conditions.condition import at_severity, condition
from edgeflare.core.input_space import Input
from edgeflare_operators.audio import pcm

QUIETER_DB = (6.0, 12.0, 18.0, 24.0, 30.0)
"""By which a sound is quieter: 6 dB for each doubling of the distance."""

LOUDER_DB = (3.0, 6.0, 9.0, 12.0, 15.0)
"""By which a sound is louder. Steps are half of those above: recordings leave less room upwards."""

DISTORTION_DB = (20.0, 15.0, 10.0, 7.0, 5.0)
"""Signal-to-distortion ratios of clipped sounds, of those at which declipping is compared (Záviška
et al. 2021); they go on to 3 and 1 dB."""


@condition(
    "quiet",
    domain="audio",
    sets=("common", "microphone"),
    summary="a sound that is 6 to 30 dB quieter, with the steps of 16 bits",
)
def quiet(wave: Input, severity: float, _rng: np.random.Generator) -> Input:
    """Make a sound quieter."""
    return _amplified(wave, -at_severity(QUIETER_DB, severity))


@condition(
    "loud",
    domain="audio",
    sets=("common", "microphone"),
    summary="a sound that is 3 to 15 dB louder, cut off at what 16 bits hold",
)
def loud(wave: Input, severity: float, _rng: np.random.Generator) -> Input:
    """Make a sound louder."""
    return _amplified(wave, at_severity(LOUDER_DB, severity))


@condition(
    "clipping",
    domain="audio",
    sets=("common", "microphone"),
    summary="peaks cut off by a microphone that overloads; signal-to-distortion ratio 20 to 5 dB",
)
def clipping(wave: Input, severity: float, _rng: np.random.Generator) -> Input:
    """Cut off the peaks at the lowest level that leaves the ratio; silence has none."""
    signal = wave.astype(np.int64)
    wanted = 10.0 ** (-at_severity(DISTORTION_DB, severity) / 10.0) * float(signal @ signal)
    low, high = 0, int(np.abs(signal).max())
    while low < high:  # the lower the level, the more is lost
        level = (low + high) // 2
        lost = np.maximum(np.abs(signal) - level, 0)
        if float(lost @ lost) <= wanted:
            high = level
        else:
            low = level + 1
    return np.clip(signal, -high, high).astype(np.int16)


def _amplified(wave: Input, decibels: float) -> Input:
    return pcm(wave * 10.0 ** (decibels / 20.0))
