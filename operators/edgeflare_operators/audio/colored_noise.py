"""Noise of a given colour, in numpy: audiomentations draws it from numpy's global generator."""

from __future__ import annotations

import numpy as np

from edgeflare_operators.audio.audio_library import Wave, pcm
from edgeflare_operators.operator_registry import operator

RATIOS_DB = (5.0, 40.0)
"""Signal-to-noise ratios that are drawn from, evenly; the range of audiomentations."""


@operator("white-noise", domain="audio")
def white_noise(wave: Wave, rng: np.random.Generator) -> Wave:
    """Add noise of the same power at all frequencies."""
    return _with_noise(wave, 0.0, rng)


@operator("pink-noise", domain="audio")
def pink_noise(wave: Wave, rng: np.random.Generator) -> Wave:
    """Add noise whose power falls by 3 dB an octave, as that of many surroundings."""
    return _with_noise(wave, 1.0, rng)


@operator("brown-noise", domain="audio")
def brown_noise(wave: Wave, rng: np.random.Generator) -> Wave:
    """Add noise whose power falls by 6 dB an octave, as that of wind and engines."""
    return _with_noise(wave, 2.0, rng)


def _with_noise(wave: Wave, exponent: float, rng: np.random.Generator) -> Wave:
    """Add noise whose power falls with the frequency to this exponent.

    Its own power is a share of the wave's, by a ratio drawn from `RATIOS_DB`: silence stays silent.
    """
    signal = wave.astype(np.float64)
    ratio = rng.uniform(*RATIOS_DB)
    spectrum = np.fft.rfft(rng.normal(0.0, 1.0, len(wave)))
    if exponent:
        # The mean, whose frequency is 0, is given the power of the lowest wave.
        spectrum /= np.maximum(np.arange(len(spectrum)), 1.0) ** (exponent / 2.0)
    noise = np.fft.irfft(spectrum, len(wave))
    power = float(np.mean(noise**2))
    if not power:
        return pcm(signal)
    wanted = float(np.mean(signal**2)) * 10.0 ** (-ratio / 10.0)
    return pcm(signal + noise * np.sqrt(wanted / power))
