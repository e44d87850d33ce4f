"""The sounds of a finding: to look at as waveform and log-spectrogram, and to listen to."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from edgeflare.core.input_view import SoundView
from edgeflare.domains.audio.wav_file import encode_wav
from edgeflare.report.html.page_allowance import PageAllowance
from edgeflare.report.html.pictures import GAINS, image_uri
from edgeflare.report.html.spectrogram import (
    Samples,
    log_spectrogram,
    spectrogram_image,
    waveform_image,
)
from edgeflare.report.html.stored_views import StoredView
from edgeflare.report.html.text_table import TextTable

HIGHEST = 32_767.0
"""The largest sample of a sound."""

WAVE_SHARE = 0.25
"""Of a figure's bytes, those of its waveform; the spectrogram has the others."""


@dataclass(frozen=True, slots=True)
class SoundFigure:
    """A sound to look at and to listen to.

    Attributes:
        what: which one of a finding's it is: "seed", "before", "trigger", "difference".
        file: its path relative to the run directory; empty for a difference, which has none.
        wave: its waveform as a `data:` address; None if its file is gone, damaged or empty.
        spectrogram: its log-spectrogram likewise.
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
    texts: tuple[TextTable, ...] = ()


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
        one.what: _Samples(one.what, one.file, view.wave, view.sample_rate)
        for one in stored
        if isinstance(view := one.view, SoundView) and view.wave.size
    }
    peaks = (float(np.abs(one.samples.astype(np.int64)).max()) for one in known.values())
    peak = max(1.0, *peaks) if known else 1.0
    change = _change(known.get("seed"), known.get("trigger"), peak)
    if change is not None:
        known[change.what] = change
    spectra = {what: log_spectrogram(one.samples, one.sample_rate) for what, one in known.items()}
    loudest = max((float(one.max()) for one in spectra.values()), default=0.0)
    waves = {what: _wav(one) for what, one in known.items()}
    room = allowance.take(sum(map(len, waves.values())))
    figures = {
        what: SoundFigure(
            what,
            one.file,
            image_uri(
                waveform_image(one.samples, peak / (one.gain or 1.0)),
                int(WAVE_SHARE * allowance.picture),
            ),
            image_uri(
                spectrogram_image(spectra[what], max(0.0, loudest)),
                int((1 - WAVE_SHARE) * allowance.picture),
            ),
            f"data:audio/wav;base64,{b64encode(waves[what]).decode()}" if room else None,
            len(one.samples) / one.sample_rate,
            one.sample_rate / 2_000,
            one.gain,
        )
        for what, one in known.items()
    }
    gone = {one.what: SoundFigure(one.what, one.file) for one in stored}
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


def _wav(one: _Samples) -> bytes:
    scaled = np.clip(np.rint(one.samples * (one.gain or 1.0)), -HIGHEST - 1, HIGHEST)
    return encode_wav(scaled.astype(np.int16), one.sample_rate)
