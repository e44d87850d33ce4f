"""The front end `mfcc`: mel-frequency cepstral coefficients of a sound, frame by frame."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from math import isfinite
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from edgeflare.domains.audio.log_mel import LogMel, Waves
from edgeflare.errors import UserError

Cosines = Literal["tensorflow", "orthonormal"]
"""How the cosine transform (DCT-II) is scaled: by √(2 / bands) throughout, as in TensorFlow; or the
first coefficient by √(1 / bands), as in librosa."""


@dataclass(frozen=True, slots=True)
class Mfcc:
    """How sounds become cepstral coefficients: the cosine transform of each frame's log-mel bands.

    Attributes:
        log_mel: the features that are transformed, with a mean and std of their own.
        coefficients: how many of each frame are kept, from the first.
        cosines: how the transform is scaled, see `Cosines`.
        mean: what is subtracted from the coefficients.
        std: what they are divided by then.

    """

    log_mel: LogMel
    coefficients: int
    cosines: Cosines = "tensorflow"
    mean: float = 0.0
    std: float = 1.0

    def __post_init__(self) -> None:
        if not 1 <= self.coefficients <= self.log_mel.bands:
            raise UserError(
                f"front end: coefficients have to be 1 to the number of bands "
                f"({self.log_mel.bands}), not {self.coefficients}"
            )
        if self.cosines not in get_args(Cosines):
            raise UserError(
                f"front end: cosines has to be one of {', '.join(get_args(Cosines))}, not "
                f"{self.cosines!r}"
            )
        if not (isfinite(self.mean) and isfinite(self.std) and self.std > 0):
            raise UserError(
                "front end: mean and std have to be finite numbers, and std above 0, not "
                f"{self.mean} and {self.std}"
            )

    def shape(self, samples: int) -> tuple[int, int]:
        """Return the shape of the coefficients of one sound: (frames, coefficients).

        Raises:
            UserError: it is shorter than a frame.

        """
        return self.log_mel.shape(samples)[0], self.coefficients

    def features(self, waves: Waves) -> NDArray[np.float32]:
        """Return the coefficients of sounds: (batch, frames, coefficients).

        Those of a sound do not depend on what else is in the batch.

        Raises:
            UserError: the sounds are shorter than a frame.

        """
        made = np.empty((len(waves), *self.shape(waves.shape[1])), np.float32)
        cosines = _cosines(self.cosines, self.log_mel.bands, self.coefficients)
        for place, wave in enumerate(waves):
            made[place] = (self.log_mel.real_features(wave) @ cosines - self.mean) / self.std
        return made


@cache
def _cosines(scaling: Cosines, bands: int, coefficients: int) -> NDArray[np.float64]:
    """Return the cosine transform, (bands, coefficients), which cannot be written to."""
    angles = np.pi / bands * np.outer(np.arange(bands) + 0.5, np.arange(coefficients))
    cosines: NDArray[np.float64] = np.cos(angles) * np.sqrt(2.0 / bands)
    if scaling == "orthonormal":
        cosines[:, 0] /= np.sqrt(2.0)
    cosines.flags.writeable = False
    return cosines
