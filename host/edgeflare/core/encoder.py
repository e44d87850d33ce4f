"""The interface of encoders, which turn inputs into what a model takes."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray


class Encoder(Protocol):
    """Turns inputs of a domain into the values of one of a model's inputs."""

    def encode(self, inputs: NDArray[Any]) -> NDArray[np.generic]:
        """Return inputs as the model takes them.

        Args:
            inputs: (batch, *shape), of the domain.

        Returns:
            (batch, *input shape without its batch dimension), C-contiguous, in the input's dtype.
            What one input becomes does not depend on what else is in the batch.

        Raises:
            UserError: the inputs are not of the size that the model takes.

        """
