"""A task of another package: whether a user's function sees an object that is certain enough."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np

from edgeflare.core.answer import Answer
from edgeflare.core.task import Decoder, ModelOutputs, Task
from edgeflare.core.tensor import RawBatch, Tensor
from edgeflare.tasks.output_values import output_values, tensor_from_json


class SeenDecoder(Decoder):
    """Reads the best score of the objects."""

    choices = 2
    meaning = "objects"
    names = ("nothing", "something")

    def __init__(self, objects: Tensor, threshold: float) -> None:
        """Take the tensor of objects, and the score from which on one is seen."""
        self.outputs, self.tensor = (objects,), objects
        self._threshold = threshold

    def read(self, batch: RawBatch) -> Iterator[Answer]:
        """Yield whether there is an object."""
        _, real, failures = output_values(batch, self.outputs, 0)
        for at, best in enumerate(real[..., 4].max(axis=(1, 2)).tolist()):
            beyond = best - self._threshold
            why = failures.get(at)
            scores = np.array([-beyond, beyond]) * 5
            shares = np.clip(0.5 + scores / 5, 0.0, 1.0)
            yield Answer(None if why else int(beyond >= 0.0), beyond == 0.0, shares, scores, why)

    def to_json(self) -> Mapping[str, Any]:
        """Return the tensor and the threshold."""
        return {"tensor": asdict(self.tensor), "threshold": self._threshold}


class ObjectSeen(Task):
    """Whether there is an object, as a user's function sees them."""

    name = "object-seen"
    expects = "what its function reads"

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
        (objects,) = model.outputs
        return SeenDecoder(objects, self._threshold)

    @classmethod
    def decoder_from_json(cls, fields: Mapping[str, Any]) -> SeenDecoder:
        """Return the decoder that `to_json` described."""
        return SeenDecoder(tensor_from_json(fields["tensor"]), fields["threshold"])

    def warnings(
        self, _original: Sequence[Answer] | None, _compressed: Sequence[Answer], _labels: Any
    ) -> list[str]:
        """Return nothing."""
        return []
