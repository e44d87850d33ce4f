"""Front ends: what makes features of sounds, by name or as a user's Python function."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields
from functools import cached_property
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from edgeflare.domains.audio.log_mel import LogMel, Waves
from edgeflare.domains.audio.mfcc import Cosines, Mfcc
from edgeflare.domains.audio.spectrum import Spectrum
from edgeflare.errors import UserError
from edgeflare.keyword_settings import constructed
from edgeflare.python_callable import is_callable, load_callable, reason
from edgeflare.suggestion import suggestion


class FrontEnd(Protocol):
    """What makes features of sounds."""

    def shape(self, samples: int) -> tuple[int, ...]:
        """Return the shape of the features of one sound.

        Raises:
            UserError: it is too short.

        """

    def features(self, waves: Waves) -> NDArray[np.float32]:
        """Return the features of sounds, (batch, samples): (batch, *shape).

        Those of a sound do not depend on what else is in the batch.
        """


FRONT_ENDS = ("log-mel", "mfcc", "spectrum")
"""Front ends by name."""


def open_front_end(settings: Mapping[str, Any], sample_rate: int) -> FrontEnd:
    """Return a front end.

    Args:
        settings: `name`, which is one of `FRONT_ENDS` or a Python function; and what else the front
            end takes: the attributes of `LogMel`, `Mfcc` or `Spectrum`. Those of `mfcc` stand
            beside those of the log-mel bands that it transforms.
        sample_rate: of the sounds, in Hz.

    Raises:
        UserError: there is none of the name, or it does not take the settings.

    """
    given = dict(settings)
    name = given.pop("name", None)
    if not isinstance(name, str):
        raise UserError(f"front_end: name is missing: say one of {', '.join(FRONT_ENDS)}")
    where = f"front_end {name}"
    if name == "log-mel":
        return constructed(LogMel, {"sample_rate": sample_rate, **given}, where)
    if name == "mfcc":
        return _mfcc({"sample_rate": sample_rate, **given}, where)
    if name == "spectrum":
        return constructed(Spectrum, given, where)
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
            UserError: it cannot be imported, or raises an exception.

        """
        function = self._function
        try:
            return np.shape(function(np.zeros(samples, np.int16)))
        except Exception as error:  # whatever the user's code raises is the user's to correct
            raise UserError(
                f"{self._source}: calling it on {samples} samples of silence failed: "
                f"{reason(error)}"
            ) from error

    def features(self, waves: Waves) -> NDArray[np.float32]:
        """Return the features of sounds: (batch, *shape)."""
        try:
            return np.stack([self._one(wave) for wave in waves])
        except Exception as error:  # likewise
            raise UserError(f"{self._source} failed on a sound: {reason(error)}") from error

    def _one(self, wave: NDArray[np.int16]) -> NDArray[np.float32]:
        made = np.asarray(self._function(wave)).astype(np.float32)
        if not np.isfinite(made).all():
            raise ValueError("it returned values that are not finite")
        return made


def _mfcc(settings: Mapping[str, Any], where: str) -> Mfcc:
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
        coefficients: int, cosines: Cosines = "tensorflow", mean: float = 0.0, std: float = 1.0
    ) -> Mfcc:
        return Mfcc(log_mel, coefficients, cosines, mean, std)

    return constructed(
        coefficients_of, {key: value for key, value in settings.items() if key in own}, where
    )
