"""The answers of a model: its tensors, outputs and failures."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

FailureKind = Literal["crash", "hang", "error"]
"""The worker died on an input, did not end in time, or the runtime answered with an error."""


@dataclass(frozen=True)
class TensorSpec:
    """One input or output of a model.

    Attributes:
        name: as the model calls it.
        shape: as the model declares it, the batch dimension included.
        dtype: numpy's name of the type, for example "int8".
        scale: real = (raw - zero_point) * scale; 0 where the tensor is not quantized.
        zero_point: see scale.
        index: position among the tensors of the graph.

    """

    name: str
    shape: tuple[int, ...]
    dtype: str
    scale: float
    zero_point: int
    index: int = 0


@dataclass(frozen=True)
class Failure:
    """An input on which the model gave no answer.

    Attributes:
        index: position within the batch, from 0.
        kind: what happened.
        detail: what is known, one line: a signal, an exit code, the runtime's message.
        quarantined: the input was not run, because it killed or hung the worker twice before.

    """

    index: int
    kind: FailureKind
    detail: str
    quarantined: bool = False


@dataclass(frozen=True)
class Batch:
    """A model's answers.

    Attributes:
        outputs: one output for each input, one behind the other, raw; failed ones are zeros.
        failures: by ascending index.
        busy_seconds: time that the worker spent on the batch.

    """

    outputs: bytes
    failures: tuple[Failure, ...]
    busy_seconds: float


class ModelRejected(Exception):  # noqa: N818  (an answer about the model, not an accident)
    """The file is no model that this runtime can run; the message is one line."""


class WorkerLost(Exception):  # noqa: N818
    """No worker process can be started, or none stays alive; the message is one line."""


class ModelChanged(WorkerLost):
    """The file is not what it was, or should be: a worker read other bytes and loaded nothing."""
