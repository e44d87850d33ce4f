"""Front ends: what makes features of sounds, by name or as a user's Python function."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from functools import cache, cached_property
from math import isfinite
from typing import Any, Literal, Protocol, get_args

import numpy as np
from numpy.typing import NDArray

from edgeflare.domains.audio.log_mel import LogMel, Waves, cut_frames, hann
from edgeflare.errors import UserError, suggestion
from edgeflare.keyword_settings import constructed
from edgeflare.python_callable import USER_ERRORS, is_callable, load_callable, reason
from edgeflare.record.json_types import JsonValue

_Window = Literal["none", "hann"]
"""What a frame is multiplied by: nothing, or a periodic Hann window."""

_StreamFraming = Literal["from-start", "streaming"]
"""Where frames lie: within the sound from its first sample on; or as a device receives them, which
begins with a buffer of silence and pushes `frame_step` new samples into it for each frame."""

_Cosines = Literal["tensorflow", "orthonormal"]
"""How the cosine transform (DCT-II) is scaled: by √(2 / bands) throughout, as in TensorFlow; or the
first coefficient by √(1 / bands), as in librosa."""


class FrontEnd(Protocol):
    """What makes features of sounds."""

    def shape(self, samples: int) -> tuple[int, ...]:
        """Return the shape of the features of one sound."""

    def features(self, waves: Waves) -> NDArray[np.float32]:
        """Return the features of sounds, (batch, samples): (batch, *shape).

        Those of a sound do not depend on what else is in the batch.
        """


FRONT_ENDS = ("log-mel", "mfcc", "spectrum")
"""Front ends by name."""

_BANDS = (
    "frame_length = 480, frame_step = 320, fft_length = 512, bands = 40, lowest_hz = 20,"
    " highest_hz = 4000"
)
_EXAMPLES = {
    "log-mel": _BANDS,
    "mfcc": f"{_BANDS}, coefficients = 10",
    "spectrum": "frame_length = 512, frame_step = 128",
}
"""The settings that have to be given, as a user writes them."""


def open_front_end(settings: Mapping[str, JsonValue], sample_rate: int) -> FrontEnd:
    """Return a front end.

    Args:
        settings: `name`, which is one of `FRONT_ENDS` or a Python function; and what else the front
            end takes: the attributes of `LogMel`, `Mfcc` or `_Spectrum`. Those of `mfcc` stand
            beside those of the log-mel bands that it transforms.
        sample_rate: sample rate of the sounds, in Hz.

    Raises:
        UserError: there is none of the name, or it does not take the settings.

    """
    given = dict(settings)
    name = given.pop("name", None)
    if not isinstance(name, str):
        raise UserError(f"front_end: name is missing: say one of {', '.join(FRONT_ENDS)}")
    where = f"front_end {name}"
    if name in FRONT_ENDS and not given:
        raise UserError(
            f"{where}: its settings are missing: write them as the models were trained, such as"
            f' front_end = {{ name = "{name}", {_EXAMPLES[name]} }}'
        )
    if name == "log-mel":
        return constructed(LogMel, {"sample_rate": sample_rate, **given}, where)
    if name == "mfcc":
        return _mfcc({"sample_rate": sample_rate, **given}, where)
    if name == "spectrum":
        return constructed(_Spectrum, given, where)
    if is_callable(name):
        if given:
            raise UserError(f"{where}: a function takes no settings: remove {min(given)}")
        return FunctionFrontEnd(name)
    hint = suggestion(name, FRONT_ENDS)
    raise UserError(
        f"there is no front end {name!r}{hint}: say one of {', '.join(FRONT_ENDS)}, or "
        "module:function"
    )


class FunctionFrontEnd:
    """A user's function that makes features of one sound.

    It takes the samples, (samples,) int16, and returns the features as an array of numbers, whose
    shape is the same for all sounds.
    """

    def __init__(self, source: str) -> None:
        """Take a function, which is imported when it is needed first; see `load_callable`.

        So what only shows or compares sounds of a run imports no code that the run names.
        """
        self._source = source

    @cached_property
    def _function(self) -> Callable[[NDArray[np.int16]], Any]:
        return load_callable(self._source, "sounds")

    def shape(self, samples: int) -> tuple[int, ...]:
        """Return the shape of what the function makes of silence.

        Raises:
            UserError: it cannot be imported, raises an exception, or returns no real numbers.

        """
        _ = self._function  # what is wrong with its import is told by itself
        try:
            return self._returned(np.zeros(samples, np.int16)).shape
        except USER_ERRORS as error:
            raise UserError(
                f"{self._source}: calling it on {samples} samples of silence failed: "
                f"{reason(error)}"
            ) from error

    def features(self, waves: Waves) -> NDArray[np.float32]:
        """Return the features of sounds: (batch, *shape)."""
        try:
            return np.stack([self._one(wave) for wave in waves])
        except USER_ERRORS as error:
            raise UserError(f"{self._source} failed on a sound: {reason(error)}") from error

    def _one(self, wave: NDArray[np.int16]) -> NDArray[np.float32]:
        made = self._returned(wave).astype(np.float32)
        if not np.isfinite(made).all():
            raise ValueError("it returned values that are not finite")
        return made

    def _returned(self, wave: NDArray[np.int16]) -> NDArray[np.generic]:
        """Return what the function makes of a sound; one number as an array of it."""
        returned = self._function(wave.copy())  # which the user's code may overwrite
        made = np.atleast_1d(np.asarray(returned))
        if made.dtype.kind not in "fiub":
            kind = type(returned).__name__ if made.dtype.kind == "O" else made.dtype
            raise TypeError(f"it returned {kind}, expected an array of real numbers")
        if not made.size:
            raise ValueError(f"it returned no values, an array of shape {made.shape}")
        return made


def _mfcc(settings: Mapping[str, JsonValue], where: str) -> Mfcc:
    """Return coefficients whose mean and std are those of the coefficients themselves."""
    own = {field.name for field in fields(Mfcc)} - {"log_mel"}
    known = [*(field.name for field in fields(LogMel)), *own]
    for key in settings:
        if key not in known:
            raise UserError(
                f"{where}: unknown key {key}{suggestion(key, known)}; keys are {', '.join(known)}"
            )
    bands = {key: value for key, value in settings.items() if key not in own}
    log_mel = constructed(LogMel, bands, where)

    def coefficients_of(
        coefficients: int, cosines: _Cosines = "tensorflow", mean: float = 0.0, std: float = 1.0
    ) -> Mfcc:
        return Mfcc(log_mel, coefficients, cosines, mean, std)

    return constructed(
        coefficients_of, {key: value for key, value in settings.items() if key in own}, where
    )


@dataclass(frozen=True, slots=True)
class Mfcc:
    """How sounds become cepstral coefficients: the cosine transform of each frame's log-mel bands.

    Attributes:
        log_mel: the features that are transformed, with a mean and std of their own.
        coefficients: how many of each frame are kept, from the first.
        cosines: how the transform is scaled, see `_Cosines`.
        mean: what is subtracted from the coefficients.
        std: what they are divided by then.

    """

    log_mel: LogMel
    coefficients: int
    cosines: _Cosines = "tensorflow"
    mean: float = 0.0
    std: float = 1.0

    def __post_init__(self) -> None:
        if not 1 <= self.coefficients <= self.log_mel.bands:
            raise UserError(
                f"front end: coefficients have to be 1 to the number of bands "
                f"({self.log_mel.bands}), not {self.coefficients}"
            )
        if self.cosines not in get_args(_Cosines):
            raise UserError(
                f"front end: cosines has to be one of {', '.join(get_args(_Cosines))}, not "
                f"{self.cosines!r}"
            )
        if not (isfinite(self.mean) and isfinite(self.std) and self.std > 0):
            raise UserError(
                "front end: mean and std have to be finite numbers, and std above 0, not "
                f"{self.mean} and {self.std}"
            )

    def shape(self, samples: int) -> tuple[int, int]:
        """Return the shape of the coefficients of one sound: (frames, coefficients)."""
        return self.log_mel.shape(samples)[0], self.coefficients

    def features(self, waves: Waves) -> NDArray[np.float32]:
        """Return the coefficients of sounds: (batch, frames, coefficients).

        Those of a sound do not depend on what else is in the batch.
        """
        made = np.empty((len(waves), *self.shape(waves.shape[1])), np.float32)
        cosines = _cosines(self.cosines, self.log_mel.bands, self.coefficients)
        for place, wave in enumerate(waves):
            made[place] = (self.log_mel.real_features(wave) @ cosines - self.mean) / self.std
        return made


@cache
def _cosines(scaling: _Cosines, bands: int, coefficients: int) -> NDArray[np.float64]:
    """Return the cosine transform, (bands, coefficients), which cannot be written to."""
    angles = np.pi / bands * np.outer(np.arange(bands) + 0.5, np.arange(coefficients))
    cosines: NDArray[np.float64] = np.cos(angles) * np.sqrt(2.0 / bands)
    if scaling == "orthonormal":
        cosines[:, 0] /= np.sqrt(2.0)
    cosines.flags.writeable = False
    return cosines


@dataclass(frozen=True, slots=True)
class _Spectrum:
    """How sounds become magnitudes: |rfft| of each frame, of samples divided by 32,768.

    Attributes:
        frame_length: samples of a frame.
        frame_step: samples from one frame to the next.
        fft_length: samples that a frame is filled up to with zeros behind it; 0 for `frame_length`.
        window: what a frame is multiplied by, see `_Window`.
        framing: where frames lie, see `_StreamFraming`.

    """

    frame_length: int
    frame_step: int
    fft_length: int = 0
    window: _Window = "none"
    framing: _StreamFraming = "from-start"

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
        for key, choices in (("window", get_args(_Window)), ("framing", get_args(_StreamFraming))):
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
        """
        frames, bins = self.shape(waves.shape[1])
        made = np.empty((len(waves), frames, bins), np.float32)
        for place, wave in enumerate(waves):
            real = np.pad(wave / 32_768.0, (self._silence, 0))
            framed = cut_frames(real, frames, self.frame_length, self.frame_step)
            if self.window == "hann":
                framed = framed * hann(self.frame_length)
            made[place] = np.abs(np.fft.rfft(framed, self.fft_length or self.frame_length))
        return made

    @property
    def _silence(self) -> int:
        """Samples of silence before the sound."""
        return self.frame_length - self.frame_step if self.framing == "streaming" else 0
