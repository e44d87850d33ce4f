"""Microphones that do not record all frequencies alike."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from edgeflare.conditions.condition import at_severity, condition
from edgeflare.core.input_space import Input
from edgeflare_operators.audio import pcm

Response = Callable[[NDArray[np.float64]], NDArray[np.float64]]
"""From frequencies, as shares of the Nyquist frequency, to gains in dB."""

LOWEST_SHARES = (0.006, 0.012, 0.019, 0.028, 0.038)
"""Below which a narrow band is 3 dB weaker or more, in shares of the Nyquist frequency: at 16 kHz
from 50 Hz to the 300 Hz at which the telephone band begins (ITU-T G.712)."""

HIGHEST_SHARES = (0.9, 0.75, 0.6, 0.5, 0.425)
"""Above which it is, likewise: from 7.2 kHz to the 3.4 kHz at which the telephone band ends."""

BAND_ORDER = 4
"""Order of the Butterworth filters at both ends: 24 dB an octave."""

TILTS_DB = (1.0, 2.0, 3.0, 4.5, 6.0)
"""By which a dull microphone falls off in each octave; 6 dB are a filter of first order."""

RIPPLES_DB = (1.0, 2.0, 3.0, 4.5, 6.0)
"""Standard deviation of the gains of another microphone: from two of one kind, which differ by
about 1 dB, to another kind in another casing."""

OCTAVES = 8
"""Below the Nyquist frequency, in which gains are other ones: at 16 kHz down to 31 Hz."""

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
