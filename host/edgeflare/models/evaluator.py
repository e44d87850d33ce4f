"""The interface of models that run on batches, and their raw outputs before decoding."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class Tensor:
    """One input or output of a model.

    Attributes:
        name: as the model calls it.
        shape: as the model declares it, the batch dimension included.
        dtype: numpy's name of the type, "int8", "uint8" or "float32".
        scale: real = (raw - zero_point) * scale; 0 where the tensor is not quantized.
        zero_point: see scale.

    """

    name: str
    shape: tuple[int, ...]
    dtype: str
    scale: float = 0.0
    zero_point: int = 0


@dataclass(frozen=True, slots=True)
class Signature:
    """The one input and the one output of an image classifier."""

    input: Tensor
    output: Tensor


@dataclass(frozen=True, slots=True)
class RawBatch:
    """A model's raw outputs on a batch.

    Attributes:
        outputs: (batch, classes), in the model's own dtype; a failed input's row is zeros.
        failures: why an input has no output, by its position: "crash", "hang" or "error".
        busy_seconds: time that the model was computing.

    """

    outputs: NDArray[np.generic]
    failures: Mapping[int, str] = field(default_factory=dict)
    busy_seconds: float = 0.0


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
