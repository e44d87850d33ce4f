from __future__ import annotations

import numpy as np
import pytest

from edgeflare.conditions.audio.recording_level import (
    DISTORTION_DB,
    LOUDER_DB,
    QUIETER_DB,
    clipping,
    loud,
    quiet,
)
from edgeflare.conditions.condition import SEVERITIES
from edgeflare.domains.audio.audio_domain import signal_to_noise_db
from stored_runs import chirp

WAVE = chirp(8_000, loudness=0.1)
RNG = np.random.default_rng(0)


def level_db(wave: np.ndarray) -> float:
    return float(10 * np.log10(np.mean(wave.astype(float) ** 2)))


@pytest.mark.parametrize("severity", SEVERITIES)
def test_sounds_are_quieter_and_louder_by_the_decibels_of_the_severity(severity: int) -> None:
    before = level_db(WAVE)
    assert level_db(quiet(WAVE, severity, RNG)) == pytest.approx(
        before - QUIETER_DB[severity - 1], abs=0.01
    )
    assert level_db(loud(WAVE, severity, RNG)) == pytest.approx(
        before + LOUDER_DB[severity - 1], abs=0.01
    )


def test_a_sound_that_gets_too_loud_is_cut_off() -> None:
    assert loud(chirp(8_000, loudness=0.9), 5, RNG).max() == 32_767


@pytest.mark.parametrize("severity", SEVERITIES)
def test_clipping_cuts_as_deep_as_the_ratio_of_the_severity_allows(severity: int) -> None:
    clipped = clipping(WAVE, severity, RNG)
    allowed = DISTORTION_DB[severity - 1]
    assert signal_to_noise_db(clipped, WAVE) >= allowed
    level = int(clipped.max())
    assert np.array_equal(clipped, np.clip(WAVE, -level, level))
    deeper = np.clip(WAVE, 1 - level, level - 1)
    assert signal_to_noise_db(deeper, WAVE) < allowed


def test_silence_and_the_lowest_sample_can_be_clipped() -> None:
    assert not clipping(np.zeros(5, np.int16), 5, RNG).any()
    lowest = np.array([-32_768, 0, 5], np.int16)
    assert -32_768 < clipping(lowest, 1, RNG)[0] < -20_000
