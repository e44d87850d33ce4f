"""What stands between sounds and a model's input: the front end, and quantization."""

from __future__ import annotations

from math import prod

import numpy as np
from numpy.typing import NDArray

from edgeflare.core.tensor import Rounding, Tensor, quantize
from edgeflare.core.tensor_rows import row_layout
from edgeflare.domains.audio.front_end import FrontEnd
from edgeflare.errors import UserError

FULL_SCALE = np.float32(32_768.0)
"""What samples are divided by where there is no front end."""


class SoundEncoder:
    """Encodes sounds as a model's input."""

    def __init__(
        self, front_end: FrontEnd | None, tensor: Tensor, rounding: Rounding = "half-away"
    ) -> None:
        """Take a front end, or None where the model takes samples of -1 to 1."""
        self._front_end, self._tensor = front_end, tensor
        self._rounding: Rounding = rounding
        self._row, _ = row_layout([tensor])

    def encode(self, inputs: NDArray[np.int16]) -> NDArray[np.generic]:
        """Encode sounds.

        Args:
            inputs: (batch, samples), int16.

        Returns:
            (batch, *input shape without a batch dimension of 1), C-contiguous, in the input's
            dtype.

        Raises:
            UserError: a user's front end makes other features of a sound than of silence.

        """
        if self._front_end is None:
            features = inputs.astype(np.float32) / FULL_SCALE
        else:
            features = self._front_end.features(inputs)
        if features.size != len(inputs) * prod(self._row):
            raise UserError(
                f"the front end made {features.shape[1:]} of a sound, but input"
                f" {self._tensor.name!r} takes {self._row}: of all sounds it has to be as many"
            )
        made = quantize(features.reshape(len(inputs), *self._row), self._tensor, self._rounding)
        return np.ascontiguousarray(made)
