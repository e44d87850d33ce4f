"""Louder, quieter, or beyond what a recorder takes."""

from __future__ import annotations

import numpy as np

from edgeflare_operators.audio.audio_library import Wave, audio_library, transformed
from edgeflare_operators.operator_registry import operator

MOST_GAIN_DB = 12.0
"""How much louder or quieter; the range of audiomentations, since DFlare's paper gives none."""

MOST_CLIPPED_PERCENT = 40
"""The share of samples that is clipped, at most; half of it above and half below."""


@operator("gain", domain="audio", require=audio_library)
def gain(wave: Wave, rng: np.random.Generator) -> Wave:
    """Multiply all samples by one factor, clipping what exceeds 16 bits (DFlare §6.1)."""
    decibels = rng.uniform(-MOST_GAIN_DB, MOST_GAIN_DB)
    return transformed(wave, "Gain", amplitude_ratio=10.0 ** (decibels / 20.0))


@operator("clipping", domain="audio", require=audio_library)
def clipping(wave: Wave, rng: np.random.Generator) -> Wave:
    """Cut off the highest and the lowest samples, as a recorder does that is set too loud."""
    percent = int(rng.integers(MOST_CLIPPED_PERCENT + 1))
    return transformed(wave, "ClippingDistortion", percentile_threshold=percent)
