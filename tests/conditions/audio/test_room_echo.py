from __future__ import annotations

import numpy as np
import pytest

from edgeflare.conditions.audio.room_echo import DECAY_SECONDS, DIRECT_DB, reverberation
from edgeflare.conditions.condition import SEVERITIES
from edgeflare_operators.audio import SAMPLE_RATE

CLICK = np.zeros(2 * SAMPLE_RATE, np.int16)
CLICK[0] = 20_000


@pytest.mark.parametrize("severity", SEVERITIES)
def test_the_echoes_of_a_click_have_the_strength_and_the_length_of_the_severity(
    severity: int,
) -> None:
    heard = reverberation(CLICK, severity, np.random.default_rng(3)).astype(np.float64)
    echoes = heard - CLICK
    strength = 10 * np.log10(CLICK.astype(float) @ CLICK / (echoes @ echoes))
    assert strength == pytest.approx(DIRECT_DB[severity - 1], abs=0.1)
    ends = round(DECAY_SECONDS[severity - 1] * SAMPLE_RATE)
    assert not echoes[ends:].any()
    early, late = (
        echoes[round(share * ends) : round((share + 0.25) * ends)] for share in (0.0, 0.5)
    )
    fall = 10 * np.log10((early @ early) / (late @ late))
    assert fall == pytest.approx(30.0, abs=2.0)  # half of 60 dB


def test_a_longer_echo_begins_as_a_shorter_one() -> None:
    one, other = (
        reverberation(CLICK, severity, np.random.default_rng(3))[1:9].astype(float)
        for severity in (2, 4)
    )
    assert np.array_equal(np.sign(one), np.sign(other))
