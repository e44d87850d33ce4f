"""The first three of DFlare's operators on sounds (§6.1), with the ranges of audiomentations.

The paper gives none. Its fourth operator is `gain`.
"""

from __future__ import annotations

import numpy as np

from edgeflare_operators.audio.audio_library import Wave, audio_library, transformed
from edgeflare_operators.operator_registry import operator

RATES = (0.8, 1.25)
"""How many times as fast a sound is played. Beyond 2 the library would draw phases by itself."""

MOST_SEMITONES = 4.0
"""How far the pitch is moved, up or down."""

MOST_SHIFT = 0.5
"""How far a sound is moved, as a share of its length."""


@operator("time-stretch", domain="audio", require=audio_library)
def time_stretch(wave: Wave, rng: np.random.Generator) -> Wave:
    """Play faster or slower at the same pitch; cut the end, or fill it up with silence."""
    return transformed(wave, "TimeStretch", rate=rng.uniform(*RATES))


@operator("pitch-shift", domain="audio", require=audio_library)
def pitch_shift(wave: Wave, rng: np.random.Generator) -> Wave:
    """Raise or lower the pitch at the same speed."""
    semitones = rng.uniform(-MOST_SEMITONES, MOST_SEMITONES)
    return transformed(wave, "PitchShift", num_semitones=semitones)


@operator("time-shift", domain="audio", require=audio_library)
def time_shift(wave: Wave, rng: np.random.Generator) -> Wave:
    """Move forwards or backwards; what leaves at one end enters at the other, faded for 5 ms."""
    return transformed(wave, "Shift", shift_amount=rng.uniform(-MOST_SHIFT, MOST_SHIFT))
