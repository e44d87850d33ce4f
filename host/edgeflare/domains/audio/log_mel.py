"""The front end `log-mel`: the logarithm of a sound's energy in mel bands, frame by frame."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from math import isfinite
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from edgeflare.errors import UserError

_Filters = Literal["htk", "slaney"]
"""Convention of mel filters: that of HTK, as TensorFlow has it, or of Slaney's toolbox, as librosa
has."""

_LINEAR_BELOW_HZ = 1000.0
_HZ_OF_A_MEL = 200.0 / 3.0
_MEL_OF_1000_HZ = _LINEAR_BELOW_HZ / _HZ_OF_A_MEL
_LOG_STEP = np.log(6.4) / 27.0
"""Slaney's scale: 200/3 Hz are a mel up to 1,000 Hz, above that 27 mels are a factor of 6.4."""

Waves = NDArray[np.int16]
"""Mono sounds of one length: (batch, samples)."""

Real = NDArray[np.float64]

WaveScale = Literal["none", "full-scale", "maximum"]
"""What samples are divided by: nothing, 32,768, or the largest sample of the sound, if above 0."""

Framing = Literal["from-start", "centered"]
"""Where frames lie: within the sound from its first sample on, as in TensorFlow; or around every
`frame_step`-th sample, with zeros before and after the sound, as in librosa."""

Logarithm = Literal["natural", "decibel"]
"""ln(energy + floor), or 10 log10 of the energy, which is `floor` at least."""


@dataclass(frozen=True, slots=True)
class LogMel:
    """How sounds become log-mel features. The defaults are TensorFlow's conventions.

    Those of librosa (`power_to_db(melspectrogram(...))`) are `framing="centered"`, `power=2`,
    `filters="slaney"`, `logarithm="decibel"`, `floor=1e-10` and `range_db=80`, of sounds whose
    samples are divided by full scale.

    Attributes:
        sample_rate: sample rate of the sounds, in Hz.
        frame_length: samples of a frame, under a periodic Hann window.
        frame_step: samples from one frame to the next.
        fft_length: samples that a frame is filled up to with zeros: behind it, or on both sides
            where frames are centered.
        bands: how many mel bands.
        lowest_hz: where the first band begins.
        highest_hz: where the last band ends.
        wave_scale: what samples are divided by, see `WaveScale`.
        framing: where frames lie, see `Framing`.
        power: exponent of the magnitudes that are summed into bands: 1, or 2 for energies.
        filters: see `_mel_filterbank`.
        logarithm: kind of logarithm, see `Logarithm`.
        floor: see `Logarithm`.
        range_db: how far features may lie below the largest of their sound, in dB; None for no
            limit.
        mean: what is subtracted from the features.
        std: what they are divided by then.

    """

    sample_rate: int
    frame_length: int
    frame_step: int
    fft_length: int
    bands: int
    lowest_hz: float
    highest_hz: float
    wave_scale: WaveScale = "full-scale"
    framing: Framing = "from-start"
    power: Literal[1, 2] = 1
    filters: _Filters = "htk"
    logarithm: Logarithm = "natural"
    floor: float = 1e-6
    range_db: float | None = None
    mean: float = 0.0
    std: float = 1.0

    def __post_init__(self) -> None:
        for key in ("sample_rate", "frame_length", "frame_step", "fft_length", "bands"):
            if getattr(self, key) < 1:
                raise UserError(f"front end: {key} has to be 1 or more, not {getattr(self, key)}")
        if self.fft_length < self.frame_length:
            raise UserError(
                f"front end: fft_length has to be frame_length ({self.frame_length}) or more, not "
                f"{self.fft_length}"
            )
        if not 0 <= self.lowest_hz < self.highest_hz <= self.sample_rate / 2:
            raise UserError(
                "front end: lowest_hz has to be below highest_hz, and both within 0 and half the "
                f"sample rate ({self.sample_rate / 2:g}), not {self.lowest_hz:g} and "
                f"{self.highest_hz:g}"
            )
        for key, choices in _CHOICES.items():
            if getattr(self, key) not in choices:
                raise UserError(
                    f"front end: {key} has to be one of {', '.join(map(str, choices))}, not "
                    f"{getattr(self, key)!r}"
                )
        for key in ("floor", "std", *(["range_db"] if self.range_db is not None else [])):
            if not (isfinite(getattr(self, key)) and getattr(self, key) > 0):
                raise UserError(
                    f"front end: {key} has to be a finite number above 0, not {getattr(self, key)}"
                )
        if not isfinite(self.mean):
            raise UserError(f"front end: mean has to be a finite number, not {self.mean}")

    def shape(self, samples: int) -> tuple[int, int]:
        """Return the shape of the features of one sound: (frames, bands)."""
        if self.framing == "centered":
            return 1 + (samples - self.fft_length % 2) // self.frame_step, self.bands
        if samples < self.frame_length:
            raise UserError(
                f"front end: sounds have {samples} samples, fewer than a frame of "
                f"{self.frame_length}: give longer sounds, or a smaller frame_length"
            )
        return 1 + (samples - self.frame_length) // self.frame_step, self.bands

    def features(self, waves: Waves) -> NDArray[np.float32]:
        """Return the features of sounds: (batch, frames, bands).

        Those of a sound do not depend on what else is in the batch.
        """
        shape = (len(waves), *self.shape(waves.shape[1]))
        made = np.empty(shape, np.float32)
        for place, wave in enumerate(waves):
            made[place] = self.real_features(wave)
        return made

    def real_features(self, wave: NDArray[np.int16]) -> Real:
        """Return the unrounded features of one sound: (frames, bands) for (samples,)."""
        frames, _ = self.shape(len(wave))
        real = wave / _divisor(wave, self.wave_scale)
        begin = 0
        if self.framing == "centered":
            side = self.fft_length // 2
            begin = (self.fft_length - self.frame_length) // 2
            real = np.pad(real, (side - begin, self.fft_length - side))
        cut = cut_frames(real, frames, self.frame_length, self.frame_step)
        # Zeros are filled up here: the transform would take half as long again to do it.
        framed = np.zeros((frames, self.fft_length))
        np.multiply(cut, hann(self.frame_length), out=framed[:, begin : begin + self.frame_length])
        magnitudes = np.abs(np.fft.rfft(framed))
        powers = magnitudes if self.power == 1 else magnitudes**2
        energies = powers @ _mel_filterbank(
            self.filters,
            self.fft_length,
            self.sample_rate,
            self.bands,
            self.lowest_hz,
            self.highest_hz,
        )
        if self.logarithm == "natural":
            logarithms, unit = np.log(energies + self.floor), 10.0 / np.log(10.0)
        else:
            logarithms, unit = 10.0 * np.log10(np.maximum(energies, self.floor)), 1.0
        if self.range_db is not None:
            logarithms = np.maximum(logarithms, logarithms.max() - self.range_db / unit)
        return (logarithms - self.mean) / self.std


_CHOICES = {
    "wave_scale": get_args(WaveScale),
    "framing": get_args(Framing),
    "power": (1, 2),
    "filters": get_args(_Filters),
    "logarithm": get_args(Logarithm),
}


def _divisor(wave: NDArray[np.int16], scale: WaveScale) -> float:
    if scale == "none":
        return 1.0
    if scale == "full-scale":
        return 32768.0
    largest = float(wave.max())
    return largest if largest > 0 else 1.0


def cut_frames(sound: Real, frames: int, length: int, step: int) -> Real:
    """Return the frames of a sound, each `step` values behind the last: (frames, length), a view.

    What numpy has for windows of every place takes as long as a tenth of all features.
    """
    apart = (step * sound.itemsize, sound.itemsize)
    cut: Real = np.ndarray((frames, length), sound.dtype, sound, strides=apart)
    return cut


@cache
def hann(length: int) -> Real:
    """Return the periodic Hann window, which cannot be written to."""
    window = 0.5 - 0.5 * np.cos(2 * np.pi * np.arange(length) / length)
    window.flags.writeable = False
    return window


@cache
def _mel_filterbank(
    filters: _Filters,
    fft_length: int,
    sample_rate: int,
    bands: int,
    lowest_hz: float,
    highest_hz: float,
) -> Real:
    """Return the weight of each bin of a spectrum in each mel band.

    Args:
        filters: "htk": edges at even steps of 1127 ln(1 + f / 700), sides that are straight on that
            scale, height 1, and no weight for the mean (`tf.signal.linear_to_mel_weight_matrix`,
            which has the last bin at half the sample rate whatever the length).
            "slaney": edges at even steps of Slaney's scale, sides that are straight in hertz, area
            1 (`librosa.filters.mel`).
        fft_length: number of samples of which a spectrum is.
        sample_rate: sample rate in Hz.
        bands: how many.
        lowest_hz: where the first band begins.
        highest_hz: where the last band ends.

    Returns:
        (bins, bands), which cannot be written to.

    """
    last = fft_length // 2
    last_hz = sample_rate / 2.0 if filters == "htk" else sample_rate * last / fft_length
    hertz = np.linspace(0.0, last_hz, last + 1)
    if filters == "htk":
        begin, end = _htk_mel(np.array([lowest_hz, highest_hz]))
        edges = np.linspace(begin, end, bands + 2)
        weights = _triangles(_htk_mel(hertz), edges)
        weights[0] = 0.0
    else:
        begin, end = _slaney_mel(np.array([lowest_hz, highest_hz]))
        edges = _slaney_hertz(np.linspace(begin, end, bands + 2))
        weights = _triangles(hertz, edges) * (2.0 / (edges[2:] - edges[:-2]))
    weights.flags.writeable = False
    return weights


def _triangles(places: Real, edges: Real) -> Real:
    """Return the height at each place of the triangles over three successive edges each."""
    lower, center, upper = edges[:-2], edges[1:-1], edges[2:]
    rising = (places[:, np.newaxis] - lower) / (center - lower)
    falling = (upper - places[:, np.newaxis]) / (upper - center)
    heights: Real = np.maximum(0.0, np.minimum(rising, falling))
    return heights


def _htk_mel(hertz: Real) -> Real:
    return 1127.0 * np.log1p(hertz / 700.0)


def _slaney_mel(hertz: Real) -> Real:
    above = np.maximum(hertz, _LINEAR_BELOW_HZ)
    logarithmic = _MEL_OF_1000_HZ + np.log(above / _LINEAR_BELOW_HZ) / _LOG_STEP
    return np.where(hertz < _LINEAR_BELOW_HZ, hertz / _HZ_OF_A_MEL, logarithmic)


def _slaney_hertz(mel: Real) -> Real:
    logarithmic = _LINEAR_BELOW_HZ * np.exp(_LOG_STEP * (mel - _MEL_OF_1000_HZ))
    return np.where(mel < _MEL_OF_1000_HZ, mel * _HZ_OF_A_MEL, logarithmic)
