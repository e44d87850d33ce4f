"""The sounds of a finding: to look at as waveform and log-spectrogram, and to listen to."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, ClassVar

import cv2
import numpy as np
from numpy.typing import NDArray

from edgeflare.core.views import SoundView
from edgeflare.domains.audio.wav_file import encode_wav
from edgeflare.pages.answers.answer_form import AnswerBlock
from edgeflare.pages.page_allowance import PageAllowance
from edgeflare.report.html.input_views import StoredView
from edgeflare.report.html.pictures import GAINS, image_uri
from edgeflare_operators.operator_registry import Image

COLUMNS = 224
"""Pixels from the beginning of a sound to its end, at most."""

ROWS = 96
"""Pixels from 0 to half the sample rate, at most."""

WAVE_ROWS = 48

_WINDOW_SECONDS = 0.032
"""Seconds in the window of a Fourier transform: 512 samples at 16 kHz."""

RANGE_DB = 80.0
"""Decibels from the darkest colour to the brightest."""

LEAST_POWER = 1e-8
"""What silence counts as: 80 dB below a wave of one PCM step."""

_INK = (44, 127, 184, 255)
"""RGBA of a waveform, 3:1 or more against the page in both colour schemes."""

Samples = NDArray[np.signedinteger[Any]]
"""A sound, or the difference of two, which is wider than int16."""

HIGHEST = 32_767.0
"""The largest sample of a sound."""

WAVE_SHARE = 0.25
"""Share of a figure's bytes that its waveform takes; the spectrogram has the others."""


@dataclass(frozen=True, slots=True)
class SoundFigure:
    """A sound to look at and to listen to.

    Attributes:
        what: role of the sound: "seed", "before", "trigger", "difference", "input".
        file: path relative to the run directory; empty for a difference, which has none.
        wave: waveform as a `data:` address; None if its file is gone, damaged or empty.
        spectrogram: log-spectrogram, likewise.
        player: a WAV file as a `data:` address, or None where there is no room for it.
        seconds: how long it lasts.
        kilohertz: half the sample rate.
        gain: what waveform and player of a difference were multiplied by, else None. The
            spectrogram is not magnified.
        texts: what the arms made of it, where their answers are texts.

    """

    kind: ClassVar[str] = "sound"
    what: str
    file: str
    wave: str | None = None
    spectrogram: str | None = None
    player: str | None = None
    seconds: float = 0.0
    kilohertz: float = 0.0
    gain: float | None = None
    texts: tuple[AnswerBlock, ...] = ()


@dataclass(frozen=True, slots=True)
class _Samples:
    """A sound to draw; a difference is wider than int16."""

    what: str
    file: str
    samples: Samples
    sample_rate: int
    gain: float | None = None


def sounds_of(stored: Sequence[StoredView], allowance: PageAllowance) -> tuple[SoundFigure, ...]:
    """Return the figures of an entry's sounds, and of the difference of its trigger to its seed.

    All have the same axes and, but for what `gain` says, the same scales. Either all of them have a
    player or none has.
    """
    known = {
        kept.what: _Samples(kept.what, kept.file, view.wave, view.sample_rate)
        for kept in stored
        if isinstance(view := kept.view, SoundView) and view.wave.size
    }
    peaks = (float(np.abs(samples.samples.astype(np.int64)).max()) for samples in known.values())
    peak = max(1.0, *peaks) if known else 1.0
    change = _change(known.get("seed"), known.get("trigger"), peak)
    if change is not None:
        known[change.what] = change
    spectra = {
        what: log_spectrogram(samples.samples, samples.sample_rate)
        for what, samples in known.items()
    }
    loudest = max((float(levels.max()) for levels in spectra.values()), default=0.0)
    waves = {what: _wav(samples) for what, samples in known.items()}
    room = allowance.take(sum(map(len, waves.values())))
    figures = {
        what: SoundFigure(
            what,
            samples.file,
            image_uri(
                waveform_image(samples.samples, peak / (samples.gain or 1.0)),
                int(WAVE_SHARE * allowance.picture),
            ),
            image_uri(
                spectrogram_image(spectra[what], max(0.0, loudest)),
                int((1 - WAVE_SHARE) * allowance.picture),
            ),
            f"data:audio/wav;base64,{b64encode(waves[what]).decode()}" if room else None,
            len(samples.samples) / samples.sample_rate,
            samples.sample_rate / 2_000,
            samples.gain,
        )
        for what, samples in known.items()
    }
    gone = {kept.what: SoundFigure(kept.what, kept.file) for kept in stored}
    return tuple((gone | figures).values())


def _change(seed: _Samples | None, trigger: _Samples | None, peak: float) -> _Samples | None:
    """Return trigger less seed; None where one of them is not known or has other axes."""
    if seed is None or trigger is None or seed.sample_rate != trigger.sample_rate:
        return None
    if seed.samples.shape != trigger.samples.shape:
        return None
    change = np.subtract(trigger.samples, seed.samples, dtype=np.int32)
    return _Samples("difference", "", change, seed.sample_rate, gain_of(change, peak))


def gain_of(change: NDArray[np.int32], peak: float) -> float:
    """Return the largest of `GAINS` at which a change is no louder than the sounds themselves."""
    largest = float(np.abs(change).max())
    return next((gain for gain in GAINS if gain * largest <= peak), GAINS[-1])


def _wav(samples: _Samples) -> bytes:
    scaled = np.clip(np.rint(samples.samples * (samples.gain or 1.0)), -HIGHEST - 1, HIGHEST)
    return encode_wav(scaled.astype(np.int16), samples.sample_rate)


def log_spectrogram(wave: Samples, sample_rate: int) -> NDArray[np.float64]:
    """Return the power of a sound in dB: (frequencies, times), at most `ROWS` × `COLUMNS`.

    Windows of Hann overlap by half. Where several of them, or several frequencies, fall into one
    cell, the loudest is kept, so that nothing short is lost. 0 dB is one squared PCM step.

    Args:
        wave: (samples,), in PCM steps, at least one.
        sample_rate: samples per second, in Hz.

    """
    size = 1 << int(np.clip(round(np.log2(max(2.0, sample_rate * _WINDOW_SECONDS))), 4, 12))
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
    image[(rows >= tops) & (rows <= bottoms)] = _INK
    return image


def _loudest(power: NDArray[np.floating], most: int) -> NDArray[np.floating]:
    """Return rows joined to at most so many, of each place the loudest."""
    joined: NDArray[np.floating] = np.maximum.reduceat(power, _begins(len(power), most))
    return joined


def _begins(count: int, most: int) -> NDArray[np.int64]:
    """Return where each of at most so many equal parts begins."""
    parts = min(count, most)
    return np.arange(parts, dtype=np.int64) * count // parts
