from __future__ import annotations

import numpy as np
import pytest

from edgeflare.conditions.audio.microphone_response import (
    HIGHEST_SHARES,
    LOWEST_SHARES,
    RIPPLES_DB,
    TILTS_DB,
    dull_microphone,
    narrow_band,
    other_microphone,
)
from edgeflare.conditions.condition import SEVERITIES, Condition

SAMPLES = 1 << 14


def gain_db(condition: Condition, severity: float, share: float, seed: int = 0) -> float:
    """Return the gain of a tone at a share of the Nyquist frequency, in its middle."""
    wave = np.rint(3_000 * np.sin(np.pi * share * np.arange(SAMPLES))).astype(np.int16)
    heard = condition(wave, severity, np.random.default_rng(seed))
    middle = slice(SAMPLES // 4, -SAMPLES // 4)
    before, after = (one[middle].astype(float) for one in (wave, heard))
    return float(10 * np.log10((after @ after) / (before @ before)))


@pytest.mark.parametrize("severity", SEVERITIES)
def test_a_narrow_band_is_three_decibels_weaker_at_its_ends(severity: int) -> None:
    for share in (LOWEST_SHARES[severity - 1], HIGHEST_SHARES[severity - 1]):
        assert gain_db(narrow_band, severity, share) == pytest.approx(-3.0, abs=0.3)
    assert gain_db(narrow_band, severity, 0.15) == pytest.approx(0.0, abs=0.1)
    assert gain_db(narrow_band, severity, LOWEST_SHARES[severity - 1] / 4) < -35


@pytest.mark.parametrize("severity", SEVERITIES)
def test_a_dull_microphone_falls_off_from_a_sixteenth_on(severity: int) -> None:
    assert gain_db(dull_microphone, severity, 0.05) == pytest.approx(0.0, abs=0.1)
    for octaves in (1, 3):
        fallen = gain_db(dull_microphone, severity, 2**octaves / 16)
        assert fallen == pytest.approx(-octaves * TILTS_DB[severity - 1], abs=0.1)


def test_another_microphone_is_another_one_for_each_draw_and_scales_with_severity() -> None:
    gains = np.array([gain_db(other_microphone, 3, 0.25, seed) for seed in range(200)])
    assert np.std(gains) == pytest.approx(RIPPLES_DB[2], rel=0.15)
    assert abs(np.mean(gains)) < 0.75
    mild, strong = (gain_db(other_microphone, severity, 0.25, 7) for severity in (1, 5))
    assert strong == pytest.approx(mild * RIPPLES_DB[4] / RIPPLES_DB[0], rel=0.05)


@pytest.mark.parametrize("condition", [narrow_band, dull_microphone, other_microphone])
def test_the_end_of_a_sound_does_not_enter_at_its_begin(condition: Condition) -> None:
    wave = np.zeros(4_096, np.int16)
    wave[-8:] = 20_000
    heard = condition(wave, 5, np.random.default_rng(0)).astype(float)
    assert np.abs(heard[:1_024]).max() < 0.02 * np.abs(heard[-1_024:]).max()
