"""Waveforms and log-spectrograms as images: what is where, and how bright."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.typing import NDArray

from edgeflare.report.html.spectrogram import (
    COLUMNS,
    LEAST_POWER,
    RANGE_DB,
    ROWS,
    WAVE_ROWS,
    log_spectrogram,
    spectrogram_image,
    waveform_image,
)


def tone(hertz: float, sample_rate: int, seconds: float = 1.0) -> NDArray[np.int16]:
    time = np.arange(int(seconds * sample_rate)) / sample_rate
    return np.asarray(np.rint(10_000 * np.sin(2 * np.pi * hertz * time)), np.int16)


@pytest.mark.parametrize("sample_rate", [8_000, 16_000, 44_100])
@pytest.mark.parametrize("share", [0.1, 0.25, 0.4])
def test_a_tone_is_a_line_at_its_frequency_and_as_loud_as_it_is(
    sample_rate: int, share: float
) -> None:
    decibels = log_spectrogram(tone(share * sample_rate, sample_rate), sample_rate)
    middle = decibels[:, decibels.shape[1] // 2]
    place = middle.argmax() / (len(middle) - 1)
    assert place == pytest.approx(2 * share, abs=0.02)
    loudness = 20 * np.log10(10_000 / np.sqrt(2))
    assert middle.max() == pytest.approx(loudness, abs=1.5)
    assert np.median(middle) < loudness - 50


def test_a_click_is_a_column_at_its_time() -> None:
    wave = np.zeros(16_000, np.int16)
    wave[12_000] = 30_000
    decibels = log_spectrogram(wave, 16_000)
    loud = np.flatnonzero(decibels.max(axis=0) > 0) / (decibels.shape[1] - 1)
    assert loud.mean() == pytest.approx(0.75, abs=0.02)
    assert np.ptp(loud) < 0.05


def test_silence_is_dark() -> None:
    decibels = log_spectrogram(np.zeros(4_000, np.int16), 8_000)
    assert (decibels == 10 * np.log10(LEAST_POWER)).all()
    assert spectrogram_image(decibels, 0.0).max() < 8


@given(
    wave=st.integers(1, 3_000).flatmap(lambda samples: arrays(np.int16, (samples,))),
    sample_rate=st.sampled_from([1, 100, 8_000, 16_000, 192_000, 2**31 - 1]),
)
def test_every_sound_has_images_of_at_most_so_many_pixels(
    wave: NDArray[np.int16], sample_rate: int
) -> None:
    decibels = log_spectrogram(wave, sample_rate)
    assert np.isfinite(decibels).all()
    image = spectrogram_image(decibels, float(decibels.max()))
    assert image.dtype == np.uint8
    rows, columns, colours = image.shape
    assert 1 <= rows <= ROWS
    assert 1 <= columns <= COLUMNS
    assert colours == 3
    drawn = waveform_image(wave, 32_768)
    assert drawn.shape == (WAVE_ROWS, min(len(wave), COLUMNS), 4)
    assert drawn[:, :, 3].max(axis=0).min() == 255, "a column without a mark"


def test_the_louder_is_the_brighter() -> None:
    decibels = np.linspace(-RANGE_DB, 0, 9)[:, np.newaxis]
    brightness = spectrogram_image(decibels, 0.0).astype(int).sum(axis=2).ravel()
    assert (np.diff(brightness) < 0).all(), "high frequencies are on top"


def test_a_waveform_reaches_as_far_as_it_is_loud() -> None:
    wave = np.array([0, 0, 5_000, -10_000, 10_000, 0], np.int16)
    filled = waveform_image(wave, 10_000)[:, :, 3] > 0
    rows = [np.flatnonzero(column) for column in filled.T]
    assert (rows[3].min(), rows[4].max()) == (WAVE_ROWS - 1, 0)
    assert rows[2].mean() == pytest.approx((WAVE_ROWS - 1) / 4, abs=1)
