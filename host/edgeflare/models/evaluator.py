"""The interface of models that run on batches, and their raw outputs before decoding."""

from __future__ import annotations

from concurrent.futures import Future
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from edgeflare.core.tensor import RawBatch, Tensor


@dataclass(frozen=True, slots=True)
class Signature:
    """The one input and the one output of an image classifier."""

    input: Tensor
    output: Tensor


class Evaluator(Protocol):
    """Anything that runs a model on batches: on the host, or through the agent on a device.

    A batch is many inputs in one call; the model itself is always invoked at its own input shape.
    """

    @property
    def signature(self) -> Signature:
        """The input and the output."""

    def submit(self, inputs: NDArray[np.generic]) -> Future[RawBatch]:
        """Begin to run a batch; batches are answered in the order of their submission.

        Args:
            inputs: (batch, *input shape without its batch dimension), in the signature's dtype.

        The future raises InfrastructureError if the evaluator is lost.

        """

    def close(self) -> None:
        """Release the resources that run the model. Closing twice is no error."""


class HostModel(Evaluator, Protocol):
    """A model that runs on the host."""

    @property
    def operators(self) -> tuple[str, ...]:
        """Names of the graph's operators in execution order; empty where unknown."""
