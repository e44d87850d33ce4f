"""Operators on sounds: mono waves of 16-bit PCM, (samples,), int16, whose length they keep.

A wave does not say its sample rate. Times and frequencies are those at `SAMPLE_RATE`; at half of
it, times are twice as long and frequencies half as high: the same share of the spectrum.
"""

from __future__ import annotations

from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from edgeflare_operators.operator_registry import OperatorError, operator

_MOST_GAIN_DB = 12.0
"""How much louder or quieter; the range of audiomentations, since DFlare's paper gives none."""

_MOST_CLIPPED_PERCENT = 40
"""The share of samples that is clipped, at most; half of it above and half below."""

_RATES = (0.8, 1.25)
"""How many times as fast a sound is played. Beyond 2 the library would draw phases by itself."""

_MOST_SEMITONES = 4.0
"""How far the pitch is moved, up or down."""

_MOST_SHIFT = 0.5
"""How far a sound is moved, as a share of its length."""

_DECAY_SECONDS = (0.1, 0.6)
"""The time until echoes are 60 dB weaker: from a car or furnished room to a large and bare one."""

_DIRECT_DB = (0.0, 15.0)
"""How much stronger the direct sound is than all echoes together."""

_LOW_PASS_HZ = (150.0, 7_500.0)
_HIGH_PASS_HZ = (20.0, 2_400.0)
_BAND_CENTER_HZ = (200.0, 4_000.0)
"""Cut-off and center frequencies, drawn evenly on the mel scale; ranges of audiomentations."""

_BAND_WIDTHS = (0.5, 1.99)
"""Widths of a band over its center frequency."""

_ROLLOFFS_DB = (12, 18, 24)
"""Decibels an octave beyond the cut-off, each as likely."""

_Samples = NDArray[np.float64]

_RATIOS_DB = (5.0, 40.0)
"""Signal-to-noise ratios that the operators draw from, evenly; the range of audiomentations."""

Wave = NDArray[np.int16]
"""An input of the domain `audio`: (samples,), int16, mono PCM."""

SAMPLE_RATE = 16_000
"""Hz, to which the times and frequencies of all operators refer."""

_FULL_SCALE = 32_768.0
"""PCM steps of a wave of 1.0."""


def audio_library() -> ModuleType:
    """Return audiomentations.

    Raises:
        OperatorError: it is not installed.

    """
    try:
        import audiomentations  # noqa: PLC0415  # its import takes more than a second
    except ImportError as error:
        raise OperatorError(
            f"operators on sounds need audiomentations, which cannot be imported ({error}): "
            "pip install 'edgeflare[audio]'"
        ) from error
    return audiomentations  # type: ignore[no-any-return]


def transformed(wave: Wave, transform: str, **parameters: Any) -> Wave:
    """Return what a transform of the library makes of a wave: a new one of the same length.

    Args:
        wave: (samples,), int16.
        transform: the name of the transform's class.
        parameters: what the transform would draw. All of them: nothing else is random then.

    Raises:
        OperatorError: the library is not installed.

    """
    made = getattr(audio_library(), transform)(p=1.0)
    made.parameters = {"should_apply": True, **parameters}
    made.freeze_parameters()
    samples = np.ascontiguousarray(wave, np.float32) / np.float32(_FULL_SCALE)
    return pcm(np.asarray(made(samples, SAMPLE_RATE), np.float64) * _FULL_SCALE)


def pcm(real: NDArray[np.float64]) -> Wave:
    """Round to the nearest PCM step and clip to what int16 holds."""
    return np.clip(np.rint(real), -32_768, 32_767).astype(np.int16)


@operator("white-noise", domain="audio")
def white_noise(wave: Wave, rng: np.random.Generator) -> Wave:
    """Add noise of the same power at all frequencies."""
    return _with_noise(wave, 0.0, rng)


@operator("pink-noise", domain="audio")
def pink_noise(wave: Wave, rng: np.random.Generator) -> Wave:
    """Add noise whose power falls by 3 dB an octave, as that of many surroundings."""
    return _with_noise(wave, 1.0, rng)


@operator("brown-noise", domain="audio")
def brown_noise(wave: Wave, rng: np.random.Generator) -> Wave:
    """Add noise whose power falls by 6 dB an octave, as that of wind and engines."""
    return _with_noise(wave, 2.0, rng)


def noise_of_colour(samples: int, exponent: float, rng: np.random.Generator) -> _Samples:
    """Return noise whose power falls with the frequency to this exponent, at any power: (samples,).

    Args:
        samples: how many.
        exponent: 0 is white, 1 pink and 2 brown noise.
        rng: from which one normal number is drawn for each sample.

    """
    spectrum = np.fft.rfft(rng.normal(0.0, 1.0, samples))
    if exponent:
        # The mean, whose frequency is 0, is given the power of the lowest wave.
        spectrum /= np.maximum(np.arange(len(spectrum)), 1.0) ** (exponent / 2.0)
    return np.fft.irfft(spectrum, samples)


def with_noise_at(wave: Wave, noise: _Samples, ratio_db: float) -> Wave:
    """Return a wave with noise added at a signal-to-noise ratio; silence stays silent.

    The ratio is that before the sum is rounded and clipped to 16 bits.

    Args:
        wave: (samples,), int16.
        noise: as many samples, at any power.
        ratio_db: how much more power the wave has than the noise, in dB.

    """
    signal = wave.astype(np.float64)
    power = float(np.mean(noise**2))
    if not power:
        return pcm(signal)
    wanted = float(np.mean(signal**2)) * 10.0 ** (-ratio_db / 10.0)
    return pcm(signal + noise * np.sqrt(wanted / power))


def _with_noise(wave: Wave, exponent: float, rng: np.random.Generator) -> Wave:
    ratio = rng.uniform(*_RATIOS_DB)
    return with_noise_at(wave, noise_of_colour(len(wave), exponent, rng), ratio)


@operator("low-pass", domain="audio", require=audio_library)
def low_pass(wave: Wave, rng: np.random.Generator) -> Wave:
    """Take away high frequencies."""
    cutoff, rolloff = _even_in_mel(_LOW_PASS_HZ, rng), _rolloff(rng)
    return transformed(wave, "LowPassFilter", cutoff_freq=cutoff, rolloff=rolloff)


@operator("high-pass", domain="audio", require=audio_library)
def high_pass(wave: Wave, rng: np.random.Generator) -> Wave:
    """Take away low frequencies."""
    cutoff, rolloff = _even_in_mel(_HIGH_PASS_HZ, rng), _rolloff(rng)
    return transformed(wave, "HighPassFilter", cutoff_freq=cutoff, rolloff=rolloff)


@operator("band-pass", domain="audio", require=audio_library)
def band_pass(wave: Wave, rng: np.random.Generator) -> Wave:
    """Keep one band of frequencies."""
    center, rolloff = _even_in_mel(_BAND_CENTER_HZ, rng), _rolloff(rng)
    width = center * rng.uniform(*_BAND_WIDTHS)
    return transformed(wave, "BandPassFilter", center_freq=center, bandwidth=width, rolloff=rolloff)


def _rolloff(rng: np.random.Generator) -> int:
    return _ROLLOFFS_DB[rng.integers(len(_ROLLOFFS_DB))]


def _even_in_mel(hertz: tuple[float, float], rng: np.random.Generator) -> float:
    low, high = 1127.0 * np.log1p(np.array(hertz) / 700.0)
    return float(700.0 * np.expm1(rng.uniform(low, high) / 1127.0))


@operator("reverberation", domain="audio")
def reverberation(wave: Wave, rng: np.random.Generator) -> Wave:
    """Add the echoes of a room, and cut off those behind the end."""
    seconds, direct = rng.uniform(*_DECAY_SECONDS), rng.uniform(*_DIRECT_DB)
    count = max(1, round(seconds * SAMPLE_RATE))
    return with_echoes(wave, rng.normal(0.0, 1.0, count), direct)


def with_echoes(wave: Wave, noise: NDArray[np.float64], direct_db: float) -> Wave:
    """Return a wave with the echoes of a room, cut off behind the end of the wave.

    Args:
        wave: (samples,), int16.
        noise: (echoes,), normal numbers; the last echo is 60 dB weaker than the first.
        direct_db: how much stronger the direct sound is than all echoes together, in dB.

    """
    count = len(noise)
    echoes = noise * 10.0 ** (-3.0 * np.arange(count) / count)
    echoes *= 10.0 ** (-direct_db / 20.0) / np.sqrt(echoes @ echoes)
    length = 1 << (len(wave) + count - 1).bit_length()
    spectrum = np.fft.rfft(wave, length) * np.fft.rfft(echoes, length)
    return pcm(wave + np.fft.irfft(spectrum, length)[: len(wave)])


@operator("time-stretch", domain="audio", require=audio_library)
def time_stretch(wave: Wave, rng: np.random.Generator) -> Wave:
    """Play faster or slower at the same pitch; cut the end, or fill it up with silence."""
    return transformed(wave, "TimeStretch", rate=rng.uniform(*_RATES))


@operator("pitch-shift", domain="audio", require=audio_library)
def pitch_shift(wave: Wave, rng: np.random.Generator) -> Wave:
    """Raise or lower the pitch at the same speed."""
    semitones = rng.uniform(-_MOST_SEMITONES, _MOST_SEMITONES)
    return transformed(wave, "PitchShift", num_semitones=semitones)


@operator("time-shift", domain="audio", require=audio_library)
def time_shift(wave: Wave, rng: np.random.Generator) -> Wave:
    """Move forwards or backwards; what leaves at one end enters at the other, faded for 5 ms."""
    return transformed(wave, "Shift", shift_amount=rng.uniform(-_MOST_SHIFT, _MOST_SHIFT))


@operator("gain", domain="audio", require=audio_library)
def gain(wave: Wave, rng: np.random.Generator) -> Wave:
    """Multiply all samples by one factor, clipping what exceeds 16 bits (DFlare §6.1)."""
    decibels = rng.uniform(-_MOST_GAIN_DB, _MOST_GAIN_DB)
    return transformed(wave, "Gain", amplitude_ratio=10.0 ** (decibels / 20.0))


@operator("clipping", domain="audio", require=audio_library)
def clipping(wave: Wave, rng: np.random.Generator) -> Wave:
    """Cut off the highest and the lowest samples, as a recorder does that is set too loud."""
    percent = int(rng.integers(_MOST_CLIPPED_PERCENT + 1))
    return transformed(wave, "ClippingDistortion", percentile_threshold=percent)
