"""Messages between a worker and its parent: one line of JSON each, over two pipes.

Inputs and outputs go through `shared_memory`; these messages have a few dozen bytes for a batch.
"""

from __future__ import annotations

import json
import os
import select
from dataclasses import dataclass
from typing import Any

from edgeflare_agent.runtime.model_runtime import (
    Acceleration,
    Delegate,
    Invocation,
    Options,
    Step,
    TensorSpec,
)


class Channel:
    """One end of the two pipes. Not for several threads at once."""

    def __init__(self, read_fd: int, write_fd: int) -> None:
        self._read_fd = read_fd
        self._write_fd = write_fd
        self._received = b""
        # poll, since select fails on descriptors from 1,024 on.
        self._poll = select.poll()
        self._poll.register(read_fd, select.POLLIN)

    def send(self, message: dict[str, Any]) -> None:
        """Send a message.

        Raises:
            OSError: the other end is gone.

        """
        line = json.dumps(message).encode() + b"\n"
        while line:
            line = line[os.write(self._write_fd, line) :]

    def receive(self, timeout_seconds: float | None = None) -> dict[str, Any] | None:
        """Return the next message, or None if nothing came for `timeout_seconds`.

        Raises:
            EOFError: the other end is gone.

        """
        while b"\n" not in self._received:
            milliseconds = None if timeout_seconds is None else max(0.0, timeout_seconds) * 1000
            if not self._poll.poll(milliseconds):
                return None
            arrived = os.read(self._read_fd, 65536)
            if not arrived:
                raise EOFError
            self._received += arrived
        line, self._received = self._received.split(b"\n", 1)
        message: dict[str, Any] = json.loads(line)
        return message


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
        steps = invocation.pop("steps")
        options = {
            **fields,
            "acceleration": Acceleration(**fields["acceleration"]),
            "delegate": None if delegate is None else Delegate(**delegate),
            "invocation": Invocation(
                shapes=_shapes(invocation.pop("shapes")),
                steps=tuple(
                    Step(step["signature"], _shapes(step["shapes"]), _shapes(step["outputs"]))
                    for step in steps
                ),
                **invocation,
            ),
        }
        return cls(message["model"], message["sha256"], Options(**options))


def _shapes(read: dict[str, list[int]]) -> dict[str, tuple[int, ...]]:
    return {name: tuple(shape) for name, shape in read.items()}


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
            key: tuple(
                TensorSpec(**{**spec, "shape": tuple(spec["shape"])}) for spec in message[key]
            )
            for key in ("inputs", "outputs")
        }
        return cls(**{**message, **tensors, "operators": tuple(message["operators"])})
