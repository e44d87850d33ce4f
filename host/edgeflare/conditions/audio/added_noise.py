"""Noise of surroundings, added at a signal-to-noise ratio."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from edgeflare.conditions.condition import at_severity, condition
from edgeflare.core.input_space import Input
from edgeflare_operators.audio import noise_of_colour, with_noise_at

RATIOS_DB = (20.0, 15.0, 10.0, 5.0, 0.0)
"""Signal-to-noise ratios: those of the noisy tests of AURORA-2 (Hirsch and Pearce 2000), which go
on to -5 dB."""

VOICES = 6
"""Voices that babble together. With more of them, babble sounds like stationary noise; with fewer,
like people of whom one might understand some."""


@condition(
    "white-noise",
    domain="audio",
    sets=("common", "noise"),
    summary="noise of equal power at all frequencies, as of a cheap amplifier; SNR 20 to 0 dB",
)
def white_noise(wave: Input, severity: float, rng: np.random.Generator) -> Input:
    """Add white noise."""
    noise = noise_of_colour(len(wave), 0.0, rng)
    return with_noise_at(wave, noise, at_severity(RATIOS_DB, severity))


@condition(
    "pink-noise",
    domain="audio",
    sets=("common", "noise"),
    summary="noise that falls by 3 dB an octave, as of many surroundings; SNR 20 to 0 dB",
)
def pink_noise(wave: Input, severity: float, rng: np.random.Generator) -> Input:
    """Add pink noise."""
    noise = noise_of_colour(len(wave), 1.0, rng)
    return with_noise_at(wave, noise, at_severity(RATIOS_DB, severity))


@condition(
    "babble-noise",
    domain="audio",
    sets=("common", "noise"),
    summary="six other voices, made of the sound itself: displaced, and half of them backwards; "
    "SNR 20 to 0 dB",
)
def babble_noise(wave: Input, severity: float, rng: np.random.Generator) -> Input:
    """Add voices that have the spectrum of the sound itself, whatever its sample rate."""
    return with_noise_at(wave, _babble(wave, rng), at_severity(RATIOS_DB, severity))


def _babble(wave: Input, rng: np.random.Generator) -> NDArray[np.float64]:
    """Return the sum of displaced copies, each at a loudness of its own: (samples,)."""
    places = rng.uniform(0.1, 0.9, VOICES)  # none lies upon the sound itself
    loudness = rng.normal(0.0, 1.0, VOICES)
    signal = wave.astype(np.float64)
    babble = np.zeros(len(wave))
    for voice in range(VOICES):
        turned = signal[::-1] if voice % 2 else signal
        babble += loudness[voice] * np.roll(turned, int(places[voice] * len(wave)))
    return babble
