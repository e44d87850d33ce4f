"""The echoes of the room in which a sound is recorded."""

from __future__ import annotations

import numpy as np

from edgeflare.conditions.condition import at_severity, condition
from edgeflare.core.input_space import Input
from edgeflare_operators.audio import SAMPLE_RATE, with_echoes

DECAY_SECONDS = (0.2, 0.35, 0.5, 0.7, 1.0)
"""After which the echoes are 60 dB weaker: from a car or a furnished room to a large and bare one.
The rooms of the REVERB challenge (Kinoshita et al. 2013) have 0.25, 0.5 and 0.7 s."""

DIRECT_DB = (12.0, 9.0, 6.0, 3.0, 0.0)
"""How much stronger the direct sound is than all echoes together: a speaker close to the microphone
to one at the distance where both are equal, the critical distance of room acoustics."""


@condition(
    "reverberation",
    domain="audio",
    sets=("common",),
    summary="echoes of a room that last 0.2 to 1 s, 12 to 0 dB weaker than the direct sound",
)
def reverberation(wave: Input, severity: float, rng: np.random.Generator) -> Input:
    """Add the echoes of a room by Polack's model: noise that decays."""
    # As much is drawn at all severities, so that a longer echo begins as a shorter one.
    drawn = rng.normal(0.0, 1.0, round(DECAY_SECONDS[-1] * SAMPLE_RATE))
    echoes = drawn[: round(at_severity(DECAY_SECONDS, severity) * SAMPLE_RATE)]
    return with_echoes(wave, echoes, at_severity(DIRECT_DB, severity))
