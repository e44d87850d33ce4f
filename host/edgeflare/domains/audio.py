"""The domain of sound: mono PCM of 16 bits."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf, log10

import numpy as np
from numpy.typing import NDArray

from edgeflare.core.domain import Domain
from edgeflare.core.input_space import InputSpace
from edgeflare.domains.audio_fingerprint import AudioFingerprint, audio_fingerprint, count_alike
from edgeflare.domains.wav_file import decode_wav, encode_wav
from edgeflare.errors import UserError
from edgeflare_operators import MutationOperator, operators

Wave = NDArray[np.int16]
"""A mono sound: (samples,), int16."""

DEFAULT_SAMPLE_RATE = 16_000
"""Hz. That of models of speech and of sounds on devices, unless a pair says otherwise."""

LEVEL = 16.0
"""PCM steps of a level. In levels of 16, the root mean square of recorded speech is 54 to 141
(medians of three sets); the contrast of images is 54 to 83 gray levels."""

PCM_16 = InputSpace("int16", -32_768, 32_767, cell_axes=1, level=LEVEL)
"""Whole numbers from -32,768 to 32,767, in samples."""

PAPER = ("time-stretch", "pitch-shift", "time-shift", "gain")
"""Names of the operators of DFlare's paper (section 6.1)."""


class AudioDomain(Domain):
    """Mono sounds of 16 bits, stored as WAV."""

    name = "audio"
    suffix = ".wav"
    space = PCM_16

    def __init__(self, sample_rate: int = DEFAULT_SAMPLE_RATE) -> None:
        """Take sounds of one sample rate.

        Args:
            sample_rate: in Hz, which stored files say; a wave itself has none.

        Raises:
            UserError: the sample rate is none.

        """
        if not 1 <= sample_rate < 1 << 31:
            raise UserError(
                f"sample_rate has to be a number of Hz, such as {DEFAULT_SAMPLE_RATE}, not "
                f"{sample_rate}"
            )
        self.sample_rate = sample_rate

    def paper_operators(self) -> tuple[MutationOperator, ...]:
        """Return those of section 6.1."""
        return operators("audio", PAPER)

    def encode_file(self, one: Wave) -> bytes:
        """Return the WAV file of a sound."""
        return encode_wav(one, self.sample_rate)

    @staticmethod
    def decode_file(data: bytes) -> Wave | None:
        """Return the sound of a WAV file, whatever its sample rate; None where it is none."""
        decoded = decode_wav(data)
        return None if decoded is None else decoded.wave

    @staticmethod
    def fingerprint(one: Wave) -> AudioFingerprint:
        """Return the coarse log-spectrogram of a sound."""
        return audio_fingerprint(one)

    @staticmethod
    def count_near(fingerprints: Sequence[AudioFingerprint]) -> int:
        """Return how many sounds resemble another one."""
        return count_alike(fingerprints)


def signal_to_noise_db(one: Wave, seed: Wave) -> float:
    """Return how near a sound is to its seed: 10 log10 of the seed's energy over the change's.

    It is infinite where the two are equal, and -infinite where a silent seed was changed.

    Args:
        one: (samples,), int16.
        seed: as many samples.

    """
    change = np.subtract(one, seed, dtype=np.int64)
    noise, signal = int(change @ change), _energy(seed)
    if not noise:
        return inf
    return 10.0 * log10(signal / noise) if signal else -inf


def _energy(wave: Wave) -> int:
    wide = wave.astype(np.int64)
    return int(wide @ wide)
