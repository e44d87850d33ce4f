"""The interface of encoders, which turn inputs into what a model takes."""

from __future__ import annotations

from typing import Any, Protocol, runtime_checkable

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


@runtime_checkable
class DescribedEncoder(Encoder, Protocol):
    """An encoder that says what the model is given, for a dry run."""

    def describe(self) -> str:
        """Return shape, type and layout of the model's input, and what it is given for extremes."""


@runtime_checkable
class DifferentiableEncoder(Encoder, Protocol):
    """An encoder each of whose outputs is a multiple of one value of the input, plus a constant."""

    def pulled_back(self, gradient: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return a gradient by the values of an input, given that by what the input becomes.

        Args:
            gradient: by the real values that the model takes, before they are quantized; of as
                many values as one input has.

        Returns:
            As many values, in the order of those of the input.

        """
