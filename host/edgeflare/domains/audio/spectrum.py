"""The front end `spectrum`: the magnitudes of a sound's short-time Fourier transform."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from edgeflare.domains.audio.log_mel import Waves, hann
from edgeflare.errors import UserError

Window = Literal["none", "hann"]
"""What a frame is multiplied by: nothing, or a periodic Hann window."""

StreamFraming = Literal["from-start", "streaming"]
"""Where frames lie: within the sound from its first sample on; or as a device receives them, which
begins with a buffer of silence and pushes `frame_step` new samples into it for each frame."""


@dataclass(frozen=True, slots=True)
class Spectrum:
    """How sounds become magnitudes: |rfft| of each frame, of samples divided by 32,768.

    Attributes:
        frame_length: samples of a frame.
        frame_step: samples from one frame to the next.
        fft_length: samples that a frame is filled up to with zeros behind it; 0 for `frame_length`.
        window: what a frame is multiplied by, see `Window`.
        framing: where frames lie, see `StreamFraming`.

    """

    frame_length: int
    frame_step: int
    fft_length: int = 0
    window: Window = "none"
    framing: StreamFraming = "from-start"

    def __post_init__(self) -> None:
        for key in ("frame_length", "frame_step"):
            if getattr(self, key) < 1:
                raise UserError(f"front end: {key} has to be 1 or more, not {getattr(self, key)}")
        if self.frame_step > self.frame_length and self.framing == "streaming":
            raise UserError(
                f"front end: frame_step has to be frame_length ({self.frame_length}) or less, not "
                f"{self.frame_step}"
            )
        if self.fft_length and self.fft_length < self.frame_length:
            raise UserError(
                f"front end: fft_length has to be frame_length ({self.frame_length}) or more, not "
                f"{self.fft_length}"
            )
        for key, choices in (("window", get_args(Window)), ("framing", get_args(StreamFraming))):
            if getattr(self, key) not in choices:
                raise UserError(
                    f"front end: {key} has to be one of {', '.join(choices)}, not "
                    f"{getattr(self, key)!r}"
                )

    def shape(self, samples: int) -> tuple[int, int]:
        """Return the shape of the magnitudes of one sound: (frames, bins).

        Raises:
            UserError: it is shorter than a frame, or than a step where frames are streamed.

        """
        whole = samples + self._silence
        if whole < self.frame_length:
            raise UserError(
                f"front end: sounds have {samples} samples, too few for a frame of "
                f"{self.frame_length}: give longer sounds, or a smaller frame_length"
            )
        bins = (self.fft_length or self.frame_length) // 2 + 1
        return 1 + (whole - self.frame_length) // self.frame_step, bins

    def features(self, waves: Waves) -> NDArray[np.float32]:
        """Return the magnitudes of sounds: (batch, frames, bins).

        Those of a sound do not depend on what else is in the batch.

        Raises:
            UserError: the sounds are too short.

        """
        frames, bins = self.shape(waves.shape[1])
        made = np.empty((len(waves), frames, bins), np.float32)
        for place, wave in enumerate(waves):
            real = np.pad(wave / 32_768.0, (self._silence, 0))
            cut = np.lib.stride_tricks.sliding_window_view(real, self.frame_length)
            framed = cut[:: self.frame_step][:frames]
            if self.window == "hann":
                framed = framed * hann(self.frame_length)
            made[place] = np.abs(np.fft.rfft(framed, self.fft_length or self.frame_length))
        return made

    @property
    def _silence(self) -> int:
        """Samples of silence before the sound."""
        return self.frame_length - self.frame_step if self.framing == "streaming" else 0
