"""What a link or a recorder that is late leaves out of a sound."""

from __future__ import annotations

import numpy as np

from edgeflare.conditions.condition import at_severity, condition
from edgeflare.core.input_space import Input
from edgeflare_operators.audio import SAMPLE_RATE

PACKET_SAMPLES = round(0.02 * SAMPLE_RATE)
"""Samples of a packet: 20 ms, as speech is sent over networks."""

LOST_SHARES = (0.02, 0.05, 0.1, 0.2, 0.3)
"""Share of packets that are lost: a good wireless link, to one on which calls are given up."""

SHIFT_SECONDS = (0.02, 0.05, 0.1, 0.15, 0.2)
"""By which a recording begins too late or too early. Keyword spotters are trained with shifts of up
to 0.1 s (Warden 2018)."""


@condition(
    "packet-loss",
    domain="audio",
    sets=("common",),
    summary="2 to 30 % of packets of 20 ms are lost, and are silence",
)
def packet_loss(wave: Input, severity: float, rng: np.random.Generator) -> Input:
    """Silence packets; those that are lost at a severity are lost at all higher ones."""
    packets = -(-len(wave) // PACKET_SAMPLES)
    lost = rng.random(packets) < at_severity(LOST_SHARES, severity)
    return np.where(np.repeat(lost, PACKET_SAMPLES)[: len(wave)], 0, wave).astype(wave.dtype)


@condition(
    "shifted-window",
    domain="audio",
    sets=("common",),
    summary="a recording that begins 0.02 to 0.2 s too late or too early; what is missing is "
    "silence",
)
def shifted_window(wave: Input, severity: float, rng: np.random.Generator) -> Input:
    """Move a sound within its window."""
    late = rng.random() < 0.5
    shift = min(len(wave), round(at_severity(SHIFT_SECONDS, severity) * SAMPLE_RATE))
    kept = len(wave) - shift
    shifted = np.zeros_like(wave)
    if late:
        shifted[:kept] = wave[shift:]
    else:
        shifted[shift:] = wave[:kept]
    return shifted
