"""What a worker is told to load, and what it says of the model that it has loaded."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from edgeflare_agent.runtime.model_runtime import (
    Acceleration,
    Delegate,
    Invocation,
    Options,
    TensorSpec,
)


@dataclass(frozen=True)
class LoadingOrder:
    """What a worker is told to load.

    Attributes:
        model: path of the file.
        sha256: what it has to hash to.
        options: how the model is run.

    """

    model: str
    sha256: str
    options: Options

    @classmethod
    def read(cls, message: dict[str, Any]) -> LoadingOrder:
        """Return the order that `dataclasses.asdict` and JSON have brought here."""
        fields = message["options"]
        delegate, invocation = fields["delegate"], dict(fields["invocation"])
        shapes = invocation.pop("shapes").items()
        options = {
            **fields,
            "acceleration": Acceleration(**fields["acceleration"]),
            "delegate": None if delegate is None else Delegate(**delegate),
            "invocation": Invocation(
                shapes={name: tuple(shape) for name, shape in shapes}, **invocation
            ),
        }
        return cls(message["model"], message["sha256"], Options(**options))


@dataclass(frozen=True)
class ReadyModel:
    """What a worker says of the model that it has loaded; see `IsolatedModel`."""

    runtime: str
    inputs: tuple[TensorSpec, ...]
    outputs: tuple[TensorSpec, ...]
    input_bytes: int
    output_bytes: int
    operators: tuple[str, ...]
    delegated_nodes: int
    external_nodes: int
    adapter: str
    arena_bytes: int

    @classmethod
    def read(cls, message: dict[str, Any]) -> ReadyModel:
        """Return the model that `dataclasses.asdict` and JSON have brought here."""
        tensors = {
            key: tuple(TensorSpec(**{**one, "shape": tuple(one["shape"])}) for one in message[key])
            for key in ("inputs", "outputs")
        }
        return cls(**{**message, **tensors, "operators": tuple(message["operators"])})
