"""Waveforms and log-spectrograms of sounds as images, column for column on the same time axis."""

from __future__ import annotations

from functools import cache
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from edgeflare_operators.operator_registry import Image

COLUMNS = 224
"""Pixels from the beginning of a sound to its end, at most."""

ROWS = 96
"""Pixels from 0 to half the sample rate, at most."""

WAVE_ROWS = 48

WINDOW_SECONDS = 0.032
"""Of a Fourier transform: 512 samples at 16 kHz."""

RANGE_DB = 80.0
"""From the darkest colour to the brightest."""

LEAST_POWER = 1e-8
"""What silence counts as: 80 dB below a wave of one PCM step."""

INK = (44, 127, 184, 255)
"""RGBA of a waveform, 3:1 or more against the page in both colour schemes."""

Samples = NDArray[np.signedinteger[Any]]
"""A sound, or the difference of two, which is wider than int16."""


def log_spectrogram(wave: Samples, sample_rate: int) -> NDArray[np.float64]:
    """Return the power of a sound in dB: (frequencies, times), at most `ROWS` × `COLUMNS`.

    Windows of Hann overlap by half. Where several of them, or several frequencies, fall into one
    cell, the loudest is kept, so that nothing short is lost. 0 dB is one squared PCM step.

    Args:
        wave: (samples,), in PCM steps, at least one.
        sample_rate: in Hz.

    """
    size = 1 << int(np.clip(round(np.log2(max(2.0, sample_rate * WINDOW_SECONDS))), 4, 12))
    padded = np.pad(wave.astype(np.float64), size // 2)
    frames = np.lib.stride_tricks.sliding_window_view(padded, size)[:: size // 2]
    window = np.hanning(size + 1)[:-1]
    amplitudes = np.abs(np.fft.rfft(frames * window)) / (window.sum() / 2)
    power = _loudest(_loudest(np.square(amplitudes) / 2, COLUMNS).T, ROWS)
    decibels: NDArray[np.float64] = 10.0 * np.log10(np.maximum(power, LEAST_POWER))
    return decibels


def spectrogram_image(decibels: NDArray[np.float64], loudest: float) -> Image:
    """Return a log-spectrogram in colours: (rows, columns, RGB), high frequencies on top.

    Args:
        decibels: as `log_spectrogram` returns them.
        loudest: what has the brightest colour; `RANGE_DB` below it all is as dark as silence.

    """
    shares = np.clip((decibels - loudest) / RANGE_DB + 1.0, 0.0, 1.0)
    colours: Image = _magma()[np.rint(255 * shares[::-1]).astype(np.uint8)]
    return colours


@cache
def _magma() -> Image:
    """Return the colours from dark to bright: (256, RGB). OpenCV makes them anew for each image."""
    levels = np.arange(256, dtype=np.uint8)[:, np.newaxis]
    colours = cv2.applyColorMap(levels, cv2.COLORMAP_MAGMA)
    return np.asarray(cv2.cvtColor(colours, cv2.COLOR_BGR2RGB), np.uint8)[:, 0]


def waveform_image(wave: Samples, most: float) -> Image:
    """Return a waveform: (`WAVE_ROWS`, columns, RGBA), transparent around it.

    Each column is filled from the least sample that falls into it to the greatest.

    Args:
        wave: (samples,), at least one.
        most: the amplitude that reaches the edge.

    """
    begins = _begins(len(wave), COLUMNS)
    real = wave.astype(np.float64)
    tops, bottoms = (
        np.clip(np.rint((WAVE_ROWS - 1) * (1.0 - level.reduceat(real, begins) / most) / 2), 0, None)
        for level in (np.maximum, np.minimum)
    )
    rows = np.arange(WAVE_ROWS)[:, np.newaxis]
    image: Image = np.zeros((WAVE_ROWS, len(begins), 4), np.uint8)
    image[(rows >= tops) & (rows <= bottoms)] = INK
    return image


def _loudest(power: NDArray[np.floating], most: int) -> NDArray[np.floating]:
    """Return rows joined to at most so many, of each place the loudest."""
    joined: NDArray[np.floating] = np.maximum.reduceat(power, _begins(len(power), most))
    return joined


def _begins(count: int, most: int) -> NDArray[np.int64]:
    """Return where each of at most so many equal parts begins."""
    parts = min(count, most)
    return np.arange(parts, dtype=np.int64) * count // parts
