"""Conditions of sounds: mono waves of 16-bit PCM, (samples,), int16, whose length they keep.

A wave does not say its sample rate. Times are those at `SAMPLE_RATE` of the operators on sounds,
and twice as long at half of it; frequencies are shares of the Nyquist frequency, which is half the
sample rate.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from edgeflare.conditions.condition import at_severity, condition
from edgeflare.core.input_space import Input
from edgeflare_operators.audio import SAMPLE_RATE, noise_of_colour, pcm, with_echoes, with_noise_at

QUIETER_DB = (6.0, 12.0, 18.0, 24.0, 30.0)
"""Losses of level: 6 dB for each doubling of the distance."""

LOUDER_DB = (3.0, 6.0, 9.0, 12.0, 15.0)
"""Gains of level. Steps are half of those above: recordings leave less room upwards."""

DISTORTION_DB = (20.0, 15.0, 10.0, 7.0, 5.0)
"""Signal-to-distortion ratios of clipped sounds, of those at which declipping is compared (Záviška
et al. 2021); they go on to 3 and 1 dB."""


@condition(
    "quiet",
    domain="audio",
    sets=("common", "microphone"),
    summary="a sound that is 6 to 30 dB quieter, with the steps of 16 bits",
)
def quiet(wave: Input, severity: float, _rng: np.random.Generator) -> Input:
    """Make a sound quieter."""
    return _amplified(wave, -at_severity(QUIETER_DB, severity))


@condition(
    "loud",
    domain="audio",
    sets=("common", "microphone"),
    summary="a sound that is 3 to 15 dB louder, cut off at what 16 bits hold",
)
def loud(wave: Input, severity: float, _rng: np.random.Generator) -> Input:
    """Make a sound louder."""
    return _amplified(wave, at_severity(LOUDER_DB, severity))


@condition(
    "clipping",
    domain="audio",
    sets=("common", "microphone"),
    summary="peaks cut off by a microphone that overloads; signal-to-distortion ratio 20 to 5 dB",
)
def clipping(wave: Input, severity: float, _rng: np.random.Generator) -> Input:
    """Cut off the peaks at the lowest level that leaves the ratio; silence has none."""
    signal = wave.astype(np.int64)
    wanted = 10.0 ** (-at_severity(DISTORTION_DB, severity) / 10.0) * float(signal @ signal)
    low, high = 0, int(np.abs(signal).max())
    while low < high:  # the lower the level, the more is lost
        level = (low + high) // 2
        lost = np.maximum(np.abs(signal) - level, 0)
        if float(lost @ lost) <= wanted:
            high = level
        else:
            low = level + 1
    return np.clip(signal, -high, high).astype(np.int16)


def _amplified(wave: Input, decibels: float) -> Input:
    return pcm(wave * 10.0 ** (decibels / 20.0))


PACKET_SAMPLES = round(0.02 * SAMPLE_RATE)
"""Samples of a packet: 20 ms, as speech is sent over networks."""

LOST_SHARES = (0.02, 0.05, 0.1, 0.2, 0.3)
"""Share of packets that are lost: a good wireless link, to one on which calls are given up."""

SHIFT_SECONDS = (0.02, 0.05, 0.1, 0.15, 0.2)
"""Shifts of a recording that begins too late or too early. Keyword spotters are trained with up to
0.1 s (Warden 2018)."""


@condition(
    "packet-loss",
    domain="audio",
    sets=("common",),
    summary="2 to 30 % of packets of 20 ms are lost, and are silence",
)
def packet_loss(wave: Input, severity: float, rng: np.random.Generator) -> Input:
    """Silence packets; those that are lost at a severity are lost at all higher ones."""
    packets = -(-len(wave) // PACKET_SAMPLES)
    lost = rng.random(packets) < at_severity(LOST_SHARES, severity)
    return np.where(np.repeat(lost, PACKET_SAMPLES)[: len(wave)], 0, wave).astype(wave.dtype)


@condition(
    "shifted-window",
    domain="audio",
    sets=("common",),
    summary="a recording that begins 0.02 to 0.2 s too late or too early; what is missing is "
    "silence",
)
def shifted_window(wave: Input, severity: float, rng: np.random.Generator) -> Input:
    """Move a sound within its window."""
    late = rng.random() < 0.5
    shift = min(len(wave), round(at_severity(SHIFT_SECONDS, severity) * SAMPLE_RATE))
    kept = len(wave) - shift
    shifted = np.zeros_like(wave)
    if late:
        shifted[:kept] = wave[shift:]
    else:
        shifted[shift:] = wave[:kept]
    return shifted


Response = Callable[[NDArray[np.float64]], NDArray[np.float64]]
"""Returns the gains in dB at frequencies, which are shares of the Nyquist frequency."""

LOWEST_SHARES = (0.006, 0.012, 0.019, 0.028, 0.038)
"""Frequencies below which a narrow band is 3 dB weaker or more, in shares of the Nyquist frequency:
at 16 kHz from 50 Hz to the 300 Hz at which the telephone band begins (ITU-T G.712)."""

HIGHEST_SHARES = (0.9, 0.75, 0.6, 0.5, 0.425)
"""Frequencies above which it is, likewise: from 7.2 kHz to the 3.4 kHz at which the telephone band
ends."""

BAND_ORDER = 4
"""Order of the Butterworth filters at both ends: 24 dB an octave."""

TILTS_DB = (1.0, 2.0, 3.0, 4.5, 6.0)
"""Losses of a dull microphone in each octave; 6 dB are a filter of first order."""

RIPPLES_DB = (1.0, 2.0, 3.0, 4.5, 6.0)
"""Standard deviation of the gains of another microphone: from two of one kind, which differ by
about 1 dB, to another kind in another casing."""

OCTAVES = 8
"""Octaves below the Nyquist frequency in which another microphone's gains differ: at 16 kHz down to
31 Hz."""

TILT_BEGINS = 4
"""Octaves below the Nyquist frequency at which a dull microphone begins to fall off: at 16 kHz, at
500 Hz."""


@condition(
    "narrow-band",
    domain="audio",
    sets=("common", "microphone"),
    summary="a microphone that ends at 0.9 to 0.425 of the Nyquist frequency, and begins at 0.006 "
    "to 0.038 of it",
)
def narrow_band(wave: Input, severity: float, _rng: np.random.Generator) -> Input:
    """Weaken what lies outside of a band."""
    lowest, highest = at_severity(LOWEST_SHARES, severity), at_severity(HIGHEST_SHARES, severity)

    def response(shares: NDArray[np.float64]) -> NDArray[np.float64]:
        below = (lowest / np.maximum(shares, 1e-9)) ** (2 * BAND_ORDER)
        above = (shares / highest) ** (2 * BAND_ORDER)
        return np.asarray(-10.0 * (np.log10(1.0 + below) + np.log10(1.0 + above)))

    return _filtered(wave, response)


@condition(
    "dull-microphone",
    domain="audio",
    sets=("microphone",),
    summary="a covered microphone: from 1/16 of the Nyquist frequency on, 1 to 6 dB less in each "
    "octave",
)
def dull_microphone(wave: Input, severity: float, _rng: np.random.Generator) -> Input:
    """Weaken high frequencies."""
    tilt = at_severity(TILTS_DB, severity)
    return _filtered(wave, lambda shares: -tilt * np.maximum(_octaves(shares) - TILT_BEGINS, 0.0))


@condition(
    "other-microphone",
    domain="audio",
    sets=("common", "microphone"),
    summary="a microphone whose gain differs in each octave, by a standard deviation of 1 to 6 dB",
)
def other_microphone(wave: Input, severity: float, rng: np.random.Generator) -> Input:
    """Give each octave a gain of its own; between their ends, gains are interpolated."""
    gains = at_severity(RIPPLES_DB, severity) * rng.normal(0.0, 1.0, OCTAVES + 1)
    return _filtered(wave, lambda shares: np.interp(_octaves(shares), range(OCTAVES + 1), gains))


def _octaves(shares: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return how many octaves frequencies lie above the lowest of `OCTAVES` ones, 0 at least."""
    return np.asarray(np.maximum(OCTAVES + np.log2(np.maximum(shares, 1e-9)), 0.0))


def _filtered(wave: Input, response: Response) -> Input:
    """Return a wave with other gains and the same phases."""
    # Silence follows the wave while it is filtered, so that its end does not enter at its begin.
    length = 2 << (len(wave) - 1).bit_length()
    spectrum = np.fft.rfft(wave, length)
    gains = 10.0 ** (response(np.linspace(0.0, 1.0, len(spectrum))) / 20.0)
    return pcm(np.fft.irfft(spectrum * gains, length)[: len(wave)])


RATIOS_DB = (20.0, 15.0, 10.0, 5.0, 0.0)
"""Signal-to-noise ratios: those of the noisy tests of AURORA-2 (Hirsch and Pearce 2000), which go
on to -5 dB."""

VOICES = 6
"""Voices that babble together. With more of them, babble sounds like stationary noise; with fewer,
like people of whom one might understand some."""


@condition(
    "white-noise",
    domain="audio",
    sets=("common", "noise"),
    summary="noise of equal power at all frequencies, as of a cheap amplifier; SNR 20 to 0 dB",
)
def white_noise(wave: Input, severity: float, rng: np.random.Generator) -> Input:
    """Add white noise."""
    noise = noise_of_colour(len(wave), 0.0, rng)
    return with_noise_at(wave, noise, at_severity(RATIOS_DB, severity))


@condition(
    "pink-noise",
    domain="audio",
    sets=("common", "noise"),
    summary="noise that falls by 3 dB an octave, as of many surroundings; SNR 20 to 0 dB",
)
def pink_noise(wave: Input, severity: float, rng: np.random.Generator) -> Input:
    """Add pink noise."""
    noise = noise_of_colour(len(wave), 1.0, rng)
    return with_noise_at(wave, noise, at_severity(RATIOS_DB, severity))


@condition(
    "babble-noise",
    domain="audio",
    sets=("common", "noise"),
    summary="six other voices, made of the sound itself: displaced, and half of them backwards; "
    "SNR 20 to 0 dB",
)
def babble_noise(wave: Input, severity: float, rng: np.random.Generator) -> Input:
    """Add voices that have the spectrum of the sound itself, whatever its sample rate."""
    return with_noise_at(wave, _babble(wave, rng), at_severity(RATIOS_DB, severity))


def _babble(wave: Input, rng: np.random.Generator) -> NDArray[np.float64]:
    """Return the sum of displaced copies, each at a loudness of its own: (samples,)."""
    places = rng.uniform(0.1, 0.9, VOICES)  # none lies upon the sound itself
    loudness = rng.normal(0.0, 1.0, VOICES)
    signal = wave.astype(np.float64)
    babble = np.zeros(len(wave))
    for voice in range(VOICES):
        turned = signal[::-1] if voice % 2 else signal
        babble += loudness[voice] * np.roll(turned, int(places[voice] * len(wave)))
    return babble


DECAY_SECONDS = (0.2, 0.35, 0.5, 0.7, 1.0)
"""Times until echoes are 60 dB weaker: from a car or a furnished room to a large and bare one. The
rooms of the REVERB challenge (Kinoshita et al. 2013) have 0.25, 0.5 and 0.7 s."""

DIRECT_DB = (12.0, 9.0, 6.0, 3.0, 0.0)
"""How much stronger the direct sound is than all echoes together: a speaker close to the microphone
to one at the distance where both are equal, the critical distance of room acoustics."""


@condition(
    "reverberation",
    domain="audio",
    sets=("common",),
    summary="echoes of a room that last 0.2 to 1 s, 12 to 0 dB weaker than the direct sound",
)
def reverberation(wave: Input, severity: float, rng: np.random.Generator) -> Input:
    """Add the echoes of a room by Polack's model: noise that decays."""
    # As much is drawn at all severities, so that a longer echo begins as a shorter one.
    drawn = rng.normal(0.0, 1.0, round(DECAY_SECONDS[-1] * SAMPLE_RATE))
    echoes = drawn[: round(at_severity(DECAY_SECONDS, severity) * SAMPLE_RATE)]
    return with_echoes(wave, echoes, at_severity(DIRECT_DB, severity))
