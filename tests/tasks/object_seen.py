"""A task of another package: whether a user's function sees an object that is certain enough."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from edgeflare.core.answer import Answer
from edgeflare.core.task import Decoder, ModelOutputs, Task
from edgeflare.core.tensor import RawBatch, Tensor
from edgeflare.tasks.output_choice import output_values


@dataclass(frozen=True)
class SeenDecoder(Decoder):
    """Reads the best score of the objects."""

    choices = 2
    meaning = "objects"
    names = ("nothing", "something")

    outputs: tuple[Tensor, ...]
    threshold: float
    at: int = 0

    def read(self, batch: RawBatch) -> Iterator[Answer]:
        """Yield whether there is an object."""
        _, real, failures = output_values(batch, self.outputs, 0)
        for at, best in enumerate(real[..., 4].max(axis=(1, 2)).tolist()):
            beyond = best - self.threshold
            why = failures.get(at)
            scores = np.array([-beyond, beyond]) * 5
            shares = np.clip(0.5 + scores / 5, 0.0, 1.0)
            yield Answer(None if why else int(beyond >= 0.0), beyond == 0.0, shares, scores, why)


class ObjectSeen(Task):
    """Whether there is an object, as a user's function sees them."""

    name = "object-seen"
    expects = "what its function reads"
    decoders = (SeenDecoder,)

    def __init__(self, *, decoding: str, threshold: float = 0.5) -> None:
        """Take the function."""
        self.post_processing = decoding
        self.processed = Tensor("objects", (1, 3, 6), "float32")
        self._threshold = threshold

    @classmethod
    def fits(cls, _tensor: Tensor) -> bool:
        """Whether the function could read an output, which only it knows."""
        return True

    def decoder(self, model: ModelOutputs) -> SeenDecoder:
        """Return the decoder of the objects that the function made."""
        return SeenDecoder(model.outputs, self._threshold)

    def warnings(
        self, _original: Sequence[Answer] | None, _compressed: Sequence[Answer], _labels: Any
    ) -> list[str]:
        """Return nothing."""
        return []
