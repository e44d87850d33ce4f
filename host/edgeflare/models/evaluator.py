"""The interface of models that run on batches, how they are called, and their raw outputs."""

from __future__ import annotations

from concurrent.futures import Future
from dataclasses import dataclass
from typing import Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from edgeflare.core.task import OutputMaker
from edgeflare.core.tensor import RawBatch, Tensor
from edgeflare_agent.runtime import Invocation as AgentInvocation
from edgeflare_agent.runtime import Step as AgentStep


@dataclass(frozen=True, slots=True)
class Signature:
    """The inputs and outputs of a model, in the order in which a row has them; see `pack_rows`."""

    inputs: tuple[Tensor, ...]
    outputs: tuple[Tensor, ...]

    @property
    def input(self) -> Tensor:
        """The only input; ValueError where there are several."""
        (tensor,) = self.inputs
        return tensor

    @property
    def output(self) -> Tensor:
        """The only output; ValueError where there are several."""
        (tensor,) = self.outputs
        return tensor


class Evaluator(Protocol):
    """Anything that runs a model on batches: on the host, or through the agent on a device.

    A batch is many inputs in one call; the model itself is always invoked at its own input shape.
    """

    @property
    def signature(self) -> Signature:
        """The inputs and outputs."""

    def submit(self, inputs: NDArray[np.generic]) -> Future[RawBatch]:
        """Begin to run a batch; batches are answered in the order of their submission.

        Args:
            inputs: the rows of the batch; of a model with one input these are
                (batch, *input shape without its batch dimension) in its dtype, and `pack_rows`
                makes them of several.

        The future raises InfrastructureError if the evaluator is lost.

        """

    def close(self) -> None:
        """Release the resources that run the model. Closing twice is no error."""


class HostModel(Evaluator, Protocol):
    """A model that runs on the host."""

    @property
    def operators(self) -> tuple[str, ...]:
        """Names of the graph's operators in execution order; empty where unknown."""

    @property
    def invocation(self) -> Invocation:
        """How the model is called, with its own names."""

    def makers(self) -> tuple[OutputMaker | None, ...]:
        """Return of each output the operator that it is from; nothing of an unknown graph."""


Invocation: TypeAlias = AgentInvocation
"""One class for the device and the host's own runner, so that both arms are called alike."""

Step: TypeAlias = AgentStep
"""One of several invocations of which an input consists."""

ONCE = Invocation()
"""The first graph, once, in its own shapes: how a model is called of which nothing is said."""
