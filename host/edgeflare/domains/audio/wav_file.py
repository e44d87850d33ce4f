"""WAV files of mono PCM in 16 bits, without loss.

They may be a stranger's, and nothing else reads them.
"""

from __future__ import annotations

import io
import wave as wav
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

_MOST_READS = 2**14
"""Most reads of a WAV file, two for each of its chunks; recorders write a handful of these."""

Wave = NDArray[np.int16]
"""A mono sound: (samples,), int16."""


@dataclass(frozen=True, slots=True)
class WavFormat:
    """What a WAV file says of its samples.

    Attributes:
        sample_rate: sample rate in Hz.
        channels: number of channels.
        bits: bits of one sample.

    """

    sample_rate: int
    channels: int
    bits: int


@dataclass(frozen=True, slots=True)
class DecodedWav:
    """The content of a WAV file of mono PCM in 16 bits.

    Attributes:
        wave: samples, (samples,), int16.
        sample_rate: sample rate in Hz.

    """

    wave: Wave
    sample_rate: int


def encode_wav(wave: Wave, sample_rate: int) -> bytes:
    """Return the WAV file of a sound: (samples,), int16."""
    buffer = io.BytesIO()
    with wav.open(buffer, "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(sample_rate)
        file.writeframes(wave.astype("<i2", copy=False).tobytes())
    return buffer.getvalue()


def decode_wav(data: bytes) -> DecodedWav | None:
    """Return what a WAV file holds; None where it is none, not mono PCM in 16 bits, or damaged."""
    said = wav_format(data)
    if said is None or (said.channels, said.bits) != (1, 16):
        return None
    with wav.open(_Chunks(data), "rb") as file:
        count = file.getnframes()
        frames = file.readframes(count)
    if len(frames) != 2 * count:
        return None
    return DecodedWav(np.frombuffer(frames, "<i2").astype(np.int16), said.sample_rate)


def wav_format(data: bytes) -> WavFormat | None:
    """Return what a WAV file says of its samples; None where it is no WAV file of PCM."""
    try:
        with wav.open(_Chunks(data), "rb") as file:
            said = WavFormat(file.getframerate(), file.getnchannels(), 8 * file.getsampwidth())
    except Exception:  # whatever the module raises on a damaged file
        return None
    return said if said.sample_rate else None


class _Chunks(io.BytesIO):
    """The content of a file that has no end of small chunks, which take long to read."""

    _reads = 0

    def read(self, size: int | None = -1, /) -> bytes:
        """Read as files do, some thousand times."""
        self._reads += 1
        if self._reads > _MOST_READS:
            raise EOFError
        return super().read(size)
