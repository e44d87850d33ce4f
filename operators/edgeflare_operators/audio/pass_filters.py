"""Butterworth filters, as of telephones and of small loudspeakers and microphones."""

from __future__ import annotations

import numpy as np

from edgeflare_operators.audio.audio_library import Wave, audio_library, transformed
from edgeflare_operators.operator_registry import operator

LOW_PASS_HZ = (150.0, 7_500.0)
HIGH_PASS_HZ = (20.0, 2_400.0)
BAND_CENTER_HZ = (200.0, 4_000.0)
"""Cut-off and center frequencies, drawn evenly on the mel scale; ranges of audiomentations."""

BAND_WIDTHS = (0.5, 1.99)
"""Widths of a band over its center frequency."""

ROLLOFFS_DB = (12, 18, 24)
"""Decibels an octave beyond the cut-off, each as likely."""


@operator("low-pass", domain="audio", require=audio_library)
def low_pass(wave: Wave, rng: np.random.Generator) -> Wave:
    """Take away high frequencies."""
    cutoff, rolloff = _even_in_mel(LOW_PASS_HZ, rng), _rolloff(rng)
    return transformed(wave, "LowPassFilter", cutoff_freq=cutoff, rolloff=rolloff)


@operator("high-pass", domain="audio", require=audio_library)
def high_pass(wave: Wave, rng: np.random.Generator) -> Wave:
    """Take away low frequencies."""
    cutoff, rolloff = _even_in_mel(HIGH_PASS_HZ, rng), _rolloff(rng)
    return transformed(wave, "HighPassFilter", cutoff_freq=cutoff, rolloff=rolloff)


@operator("band-pass", domain="audio", require=audio_library)
def band_pass(wave: Wave, rng: np.random.Generator) -> Wave:
    """Keep one band of frequencies."""
    center, rolloff = _even_in_mel(BAND_CENTER_HZ, rng), _rolloff(rng)
    width = center * rng.uniform(*BAND_WIDTHS)
    return transformed(wave, "BandPassFilter", center_freq=center, bandwidth=width, rolloff=rolloff)


def _rolloff(rng: np.random.Generator) -> int:
    return ROLLOFFS_DB[rng.integers(len(ROLLOFFS_DB))]


def _even_in_mel(hertz: tuple[float, float], rng: np.random.Generator) -> float:
    low, high = 1127.0 * np.log1p(np.array(hertz) / 700.0)
    return float(700.0 * np.expm1(rng.uniform(low, high) / 1127.0))
