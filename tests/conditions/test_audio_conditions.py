"""What the field does to sounds: noise, microphones, levels, rooms and links."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from edgeflare.conditions.audio_conditions import (
    DECAY_SECONDS,
    DIRECT_DB,
    DISTORTION_DB,
    HIGHEST_SHARES,
    LOST_SHARES,
    LOUDER_DB,
    LOWEST_SHARES,
    PACKET_SAMPLES,
    QUIETER_DB,
    RATIOS_DB,
    RIPPLES_DB,
    SHIFT_SECONDS,
    TILTS_DB,
    babble_noise,
    clipping,
    dull_microphone,
    loud,
    narrow_band,
    other_microphone,
    packet_loss,
    pink_noise,
    quiet,
    reverberation,
    shifted_window,
    white_noise,
)
from edgeflare.conditions.condition import SEVERITIES, Condition, at_severity
from edgeflare.domains.audio.audio_domain import signal_to_noise_db
from edgeflare_operators.audio import SAMPLE_RATE
from stored_runs import chirp

NOISES = (white_noise, pink_noise, babble_noise)
TONE_RATE = 8_000
TONE = chirp(TONE_RATE, 1.0, loudness=0.1)


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
    time = np.arange(TONE_RATE) / TONE_RATE
    tone = np.rint(3_000 * np.sin(2 * np.pi * 500 * time) * np.hanning(TONE_RATE)).astype(np.int16)
    babble = babble_noise(tone, 5, np.random.default_rng(0)) - tone.astype(np.float64)
    spectrum = np.abs(np.fft.rfft(babble)) ** 2
    assert spectrum[490:511].sum() > 0.99 * spectrum.sum()
    correlation = (babble @ tone) / np.sqrt((babble @ babble) * float(tone.astype(float) @ tone))
    assert abs(correlation) < 0.9


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


PACKETS = 4_000
ONES = np.ones(PACKETS * PACKET_SAMPLES, np.int16)


def lost_packets(severity: int) -> NDArray[np.bool_]:
    heard = packet_loss(ONES, severity, np.random.default_rng(0)).reshape(PACKETS, -1)
    assert (heard == heard[:, :1]).all()
    return np.asarray(heard[:, 0] == 0)


def test_as_many_packets_are_lost_as_the_severity_says_and_all_of_lower_ones() -> None:
    lost = [lost_packets(severity) for severity in SEVERITIES]
    assert [one.mean() for one in lost] == pytest.approx(LOST_SHARES, rel=0.2)
    for lower, higher in pairwise(lost):
        assert not (lower & ~higher).any()


@pytest.mark.parametrize("severity", SEVERITIES)
def test_a_window_is_shifted_either_way_and_filled_with_silence(severity: int) -> None:
    wave = np.arange(1, SAMPLE_RATE + 1).astype(np.int16)
    shift = round(SHIFT_SECONDS[severity - 1] * SAMPLE_RATE)
    expected = {(*wave[shift:].tolist(), *[0] * shift), (*[0] * shift, *wave[:-shift].tolist())}
    drawn = range(20)
    heard = {
        tuple(shifted_window(wave, severity, np.random.default_rng(seed)).tolist())
        for seed in drawn
    }
    assert heard == expected


def test_a_sound_that_is_shorter_than_the_shift_is_silence() -> None:
    wave = np.ones(10, np.int16)
    assert not shifted_window(wave, 5, np.random.default_rng(0)).any()
