"""Noise of a given colour, in numpy: audiomentations draws it from numpy's global generator."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from edgeflare_operators.audio.audio_library import Wave, pcm
from edgeflare_operators.operator_registry import operator

Samples = NDArray[np.float64]

RATIOS_DB = (5.0, 40.0)
"""Signal-to-noise ratios that the operators draw from, evenly; the range of audiomentations."""


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


def noise_of_colour(samples: int, exponent: float, rng: np.random.Generator) -> Samples:
    """Return noise whose power falls with the frequency to this exponent, at any power: (samples,).

    Args:
        samples: how many.
        exponent: 0 is white, 1 pink and 2 brown noise.
        rng: from which one normal number is drawn for each sample.

    """
    spectrum = np.fft.rfft(rng.normal(0.0, 1.0, samples))
    if exponent:
        # The mean, whose frequency is 0, is given the power of the lowest wave.
        spectrum /= np.maximum(np.arange(len(spectrum)), 1.0) ** (exponent / 2.0)
    return np.fft.irfft(spectrum, samples)


def with_noise_at(wave: Wave, noise: Samples, ratio_db: float) -> Wave:
    """Return a wave with noise added at a signal-to-noise ratio; silence stays silent.

    The ratio is that before the sum is rounded and clipped to 16 bits.

    Args:
        wave: (samples,), int16.
        noise: as many samples, at any power.
        ratio_db: how much more power the wave has than the noise, in dB.

    """
    signal = wave.astype(np.float64)
    power = float(np.mean(noise**2))
    if not power:
        return pcm(signal)
    wanted = float(np.mean(signal**2)) * 10.0 ** (-ratio_db / 10.0)
    return pcm(signal + noise * np.sqrt(wanted / power))


def _with_noise(wave: Wave, exponent: float, rng: np.random.Generator) -> Wave:
    ratio = rng.uniform(*RATIOS_DB)
    return with_noise_at(wave, noise_of_colour(len(wave), exponent, rng), ratio)
