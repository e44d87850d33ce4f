"""A runtime, and a model that it has opened: what the worker knows of either."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from edgeflare_agent.runtime.answers import TensorSpec
from edgeflare_agent.runtime.session_options import Options
from edgeflare_protos.kernel_sets import Kernels


@dataclass(frozen=True)
class RuntimeInfo:
    """A runtime: the package's name and version."""

    name: str
    version: str

    def __str__(self) -> str:
        return f"{self.name} {self.version}"


class RuntimeMissing(Exception):  # noqa: N818
    """A runtime is not installed; the message is one line and says what to type."""


class OpenedModel(Protocol):
    """A model that is ready to be invoked.

    Attributes:
        inputs: in the order in which an input's bytes are laid out.
        outputs: likewise; with capture every tensor that an operator of the graph puts out.
        operators: names in execution order, delegates apart; none where the runtime tells of none.
        delegated_nodes: nodes of the graph that a delegate or an accelerator took; likewise.
        external_nodes: those of them that the external delegate took.
        adapter: what the accelerator computes on, as its driver says; empty where there is none.
        arena_bytes: size of the arena that it takes; 0 where the runtime has none.

    """

    inputs: tuple[TensorSpec, ...]
    outputs: tuple[TensorSpec, ...]
    operators: tuple[str, ...]
    delegated_nodes: int
    external_nodes: int
    adapter: str
    arena_bytes: int

    def invoke(self, inputs: Sequence[Any], outputs: Sequence[Any]) -> None:
        """Run the model once on an input that nothing came before; see `step`."""
        ...

    def reset(self) -> None:
        """Set all variables to what they were at first, so that no answer depends on others."""
        ...

    def step(self, inputs: Sequence[Any], outputs: Sequence[Any]) -> None:
        """Run the model once, its variables as they are.

        Args:
            inputs: one array for each input tensor, in its shape and dtype.
            outputs: one array for each output tensor, which is filled.

        Raises:
            RuntimeError: a kernel refused, or an output has another shape than the model declares.
            ValueError: likewise, as some kernels say it.

        """
        ...


class ModelRuntime(Protocol):
    """What opens models with the kernel sets that it has. Making one imports nothing of it."""

    def misfit(self, head: bytes) -> str | None:
        """Return why a file with these first 8 bytes is no model of this runtime, if it is none."""
        ...

    def offers(self, kernels: Kernels) -> bool:
        """Tell whether it is installed here with one of its kernel sets; imports nothing of it."""
        ...

    def load(self) -> RuntimeInfo:
        """Import the runtime, and say which it is.

        Raises:
            RuntimeMissing: it is not installed.

        """
        ...

    def open(self, content: bytes, options: Options) -> OpenedModel:
        """Open a model in this very process, which a broken one takes along.

        Raises:
            ModelRejected: the runtime refuses the model, or the options.

        """
        ...
