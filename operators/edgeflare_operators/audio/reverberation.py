"""Reverberation by Polack's statistical model: the echoes of a room are noise that decays.

The room simulator of audiomentations needs pyroomacoustics, another library with a compiled part,
and traces thousands of rays for each call; its convolution needs recorded files.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from edgeflare_operators.audio.audio_library import SAMPLE_RATE, Wave, pcm
from edgeflare_operators.operator_registry import operator

DECAY_SECONDS = (0.1, 0.6)
"""After which the echoes are 60 dB weaker: a car or a furnished room, to a large and bare one."""

DIRECT_DB = (0.0, 15.0)
"""How much stronger the direct sound is than all echoes together."""


@operator("reverberation", domain="audio")
def reverberation(wave: Wave, rng: np.random.Generator) -> Wave:
    """Add the echoes of a room, and cut off those behind the end."""
    seconds, direct = rng.uniform(*DECAY_SECONDS), rng.uniform(*DIRECT_DB)
    count = max(1, round(seconds * SAMPLE_RATE))
    return with_echoes(wave, rng.normal(0.0, 1.0, count), direct)


def with_echoes(wave: Wave, noise: NDArray[np.float64], direct_db: float) -> Wave:
    """Return a wave with the echoes of a room, cut off behind the end of the wave.

    Args:
        wave: (samples,), int16.
        noise: (echoes,), normal numbers; the last echo is 60 dB weaker than the first.
        direct_db: how much stronger the direct sound is than all echoes together, in dB.

    """
    count = len(noise)
    echoes = noise * 10.0 ** (-3.0 * np.arange(count) / count)
    echoes *= 10.0 ** (-direct_db / 20.0) / np.sqrt(echoes @ echoes)
    length = 1 << (len(wave) + count - 1).bit_length()
    spectrum = np.fft.rfft(wave, length) * np.fft.rfft(echoes, length)
    return pcm(wave + np.fft.irfft(spectrum, length)[: len(wave)])
