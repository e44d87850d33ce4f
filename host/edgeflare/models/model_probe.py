"""Run a model with any inputs and outputs, one input at a time, and read intermediate tensors.

The arms of a search are classifiers that get batches of images. A probe is for diagnosis: it also
runs a part of a graph, and can return the outputs of every operator.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from edgeflare.errors import InfrastructureError, UserError
from edgeflare_agent.runtime import (
    Batch,
    IsolatedModel,
    ModelRejected,
    Options,
    TensorSpec,
    WorkerLost,
)
from edgeflare_protos.kernel_sets import Kernels

Values = NDArray[np.generic]

_BYTES_AT_ONCE = 2**22
"""Bytes of inputs and outputs in one message. What a message takes beside them is a tenth of a
millisecond, as long as an operator of a small network."""


class ProbeRefused(UserError):  # noqa: N818 - a fact about the runtime
    """The runtime refuses this model, or to run it with these options."""


class ProbeFailed(Exception):  # noqa: N818 - an answer, not an accident
    """The model gave no answer on an input; the message is one line: "crash: SIGSEGV"."""


class Probe(Protocol):
    """A model that is run on one input at a time."""

    @property
    def given(self) -> tuple[int, ...]:
        """Positions of its inputs among the tensors of its graph."""

    @property
    def made(self) -> tuple[int, ...]:
        """Positions of the tensors that `run` returns among those of its graph."""

    def run(self, inputs: Sequence[Values]) -> tuple[Values, ...]:
        """Run the model once.

        Args:
            inputs: one array for each of `given`, in its shape and dtype.

        Returns:
            One array for each of `made`.

        Raises:
            ProbeFailed: the model crashed, hung or refused.

        """

    def close(self) -> None:
        """Release it. Closing twice is no error."""


class HostProbe:
    """A probe on the host, in a worker process.

    Attributes:
        shapes: those of the tensors that `run` returns.

    """

    def __init__(
        self, content: bytes, kernels: Kernels, *, threads: int = 1, capture: bool = False
    ) -> None:
        """Load a model.

        Args:
            content: a `.tflite` file.
            kernels: the host's kernels that run it.
            threads: threads of the interpreter.
            capture: return the outputs of every operator.

        Raises:
            ProbeRefused: the host's runtime refuses it.

        """
        self._folder = tempfile.TemporaryDirectory(prefix="edgeflare-")
        path = Path(self._folder.name) / "model.tflite"
        path.write_bytes(content)
        try:
            self._model = IsolatedModel.open(
                path, Options(kernels=kernels, threads=threads, capture=capture)
            )
        except ModelRejected as rejected:
            self._folder.cleanup()
            raise ProbeRefused(f"the host's runtime: {rejected}") from rejected
        except WorkerLost as lost:
            self._folder.cleanup()
            raise InfrastructureError(f"no worker process could be started: {lost}") from lost
        self._specs = self._model.outputs
        self.given = tuple(spec.index for spec in self._model.inputs)
        self.made = tuple(spec.index for spec in self._specs)
        self.shapes = tuple(tuple(spec.shape) for spec in self._specs)

    def run(self, inputs: Sequence[Values]) -> tuple[Values, ...]:
        """Run the model once; see `Probe`."""
        batch = self._answered(packed(inputs), 1)
        for failure in batch.failures:
            raise ProbeFailed(f"{failure.kind}: {failure.detail}")
        return unpacked(batch.outputs, self._specs)

    def run_each(self, inputs: Sequence[Values]) -> Iterator[tuple[slice, tuple[Values, ...]]]:
        """Run the model on many inputs, each by itself: as many in one message as memory allows.

        Args:
            inputs: one array for each of `given`, (n, ...) in its dtype.

        Yields:
            Which inputs, and their outputs: one array for each of `made`, (inputs, *shape).

        Raises:
            ProbeFailed: as `run` does; the message begins with the position of the input.

        """
        count = len(inputs[0])
        step = max(1, _BYTES_AT_ONCE // (self._model.input_bytes + self._model.output_bytes))
        for begin in range(0, count, step):
            some = slice(begin, min(begin + step, count))
            batch = self._answered(
                packed_rows([values[some] for values in inputs]), some.stop - begin
            )
            for failure in batch.failures:
                at = begin + failure.index
                raise ProbeFailed(f"input {at}: {failure.kind}: {failure.detail}")
            rows = np.frombuffer(batch.outputs, np.uint8).reshape(some.stop - begin, -1)
            yield some, unpacked_rows(rows, self._specs)

    def _answered(self, payload: bytes, count: int) -> Batch:
        try:
            return self._model.run(payload, count)
        except WorkerLost as lost:
            raise InfrastructureError(f"a worker process died: {lost}") from lost

    def close(self) -> None:
        """End the worker process."""
        self._model.close()
        self._folder.cleanup()

    def __enter__(self) -> HostProbe:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class Shaped(Protocol):
    """The shape and the type of a tensor."""

    @property
    def shape(self) -> Sequence[int]:
        """As the model declares it."""

    @property
    def dtype(self) -> str:
        """Numpy's name of the type."""


def packed(inputs: Sequence[Values]) -> bytes:
    """Return the bytes of arrays one after the other, as the worker and the wire take them."""
    return b"".join(np.ascontiguousarray(values).tobytes() for values in inputs)


def packed_rows(inputs: Sequence[Values]) -> bytes:
    """Return the bytes of many inputs, (n, ...) arrays, each input's arrays one after the other."""
    count = len(inputs[0])
    parts = [np.ascontiguousarray(values).reshape(count, -1).view(np.uint8) for values in inputs]
    return (parts[0] if len(parts) == 1 else np.concatenate(parts, axis=1)).tobytes()


def unpacked_rows(
    rows: NDArray[np.uint8], specs: Sequence[Shaped] | Sequence[TensorSpec]
) -> tuple[Values, ...]:
    """Return the arrays, (n, *shape), of which each row has the bytes one after the other."""
    arrays = []
    at = 0
    for spec in specs:
        size = int(np.prod(spec.shape, dtype=np.int64)) * np.dtype(spec.dtype).itemsize
        values = np.ascontiguousarray(rows[:, at : at + size]).view(spec.dtype)
        arrays.append(values.reshape(len(rows), *spec.shape))
        at += size
    return tuple(arrays)


def unpacked(raw: bytes, specs: Sequence[Shaped] | Sequence[TensorSpec]) -> tuple[Values, ...]:
    """Return the arrays whose bytes lie one after the other."""
    arrays = []
    at = 0
    for spec in specs:
        size = int(np.prod(spec.shape, dtype=np.int64))
        values = np.frombuffer(raw, spec.dtype, size, at)
        arrays.append(values.reshape(tuple(spec.shape)))
        at += values.nbytes
    return tuple(arrays)
