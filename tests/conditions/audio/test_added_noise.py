from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgeflare.conditions.audio.added_noise import (
    RATIOS_DB,
    babble_noise,
    pink_noise,
    white_noise,
)
from edgeflare.conditions.condition import SEVERITIES, Condition
from edgeflare.conditions.severity_scale import at_severity
from edgeflare.domains.audio.audio_domain import signal_to_noise_db
from stored_runs import chirp

NOISES = (white_noise, pink_noise, babble_noise)
RATE = 8_000
TONE = chirp(RATE, 1.0, loudness=0.1)


@pytest.mark.parametrize("noise", NOISES, ids=lambda noise: noise.name)
@given(seed=st.integers(0, 99), severity=st.sampled_from(SEVERITIES) | st.floats(1, 5))
def test_the_signal_to_noise_ratio_is_held(noise: Condition, seed: int, severity: float) -> None:
    noisy = noise(TONE, severity, np.random.default_rng(seed))
    assert signal_to_noise_db(noisy, TONE) == pytest.approx(
        at_severity(RATIOS_DB, severity), abs=0.01
    )


@pytest.mark.parametrize("noise", NOISES, ids=lambda noise: noise.name)
def test_silence_stays_silent(noise: Condition) -> None:
    assert not noise(np.zeros(100, np.int16), 5, np.random.default_rng(0)).any()


def powers(noise: Condition) -> tuple[float, float]:
    """Return the power that is added below and above 1/8 of the Nyquist frequency, per wave."""
    change = noise(TONE, 1, np.random.default_rng(0)) - TONE.astype(np.int64)
    power = np.abs(np.fft.rfft(change)) ** 2
    edge = len(power) // 8
    return float(power[:edge].mean()), float(power[edge:].mean())


def test_white_noise_is_even_and_pink_noise_is_low() -> None:
    low, high = powers(white_noise)
    assert low == pytest.approx(high, rel=0.2)
    low, high = powers(pink_noise)
    assert low > 5 * high


def test_babble_has_the_frequencies_of_the_sound_and_not_the_sound() -> None:
    time = np.arange(RATE) / RATE
    tone = np.rint(3_000 * np.sin(2 * np.pi * 500 * time) * np.hanning(RATE)).astype(np.int16)
    babble = babble_noise(tone, 5, np.random.default_rng(0)) - tone.astype(np.float64)
    spectrum = np.abs(np.fft.rfft(babble)) ** 2
    assert spectrum[490:511].sum() > 0.99 * spectrum.sum()
    correlation = (babble @ tone) / np.sqrt((babble @ babble) * float(tone.astype(float) @ tone))
    assert abs(correlation) < 0.9
