"""The seam of tasks: what the outputs of a pair's models mean."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from edgeflare.core.answer import Answer
from edgeflare.core.tensor import RawBatch, Tensor


class Decoder(ABC):
    """Reads the raw outputs of one model.

    Attributes:
        tensor: the output that is read.
        choices: how many decisions there are to choose from; 0 where they cannot be counted.
        meaning: what the raw outputs are, in a word or two, such as "logits".

    """

    tensor: Tensor
    choices: int
    meaning: str

    @abstractmethod
    def read(self, batch: RawBatch) -> Iterator[Answer]:
        """Yield what each row of a batch means.

        Outputs that are not finite, of a wrong shape, or refused by the runtime are answers with
        the failure "invalid-output".
        """

    @abstractmethod
    def to_json(self) -> Mapping[str, Any]:
        """Return what `Task.decoder_from_json` takes: the tensor, and how it is read."""


class Task(ABC):
    """What the outputs of a pair's models mean, such as the scores of classes.

    A package makes a task known by an entry point, under the name that `pair.toml` has as `task`:

        [project.entry-points."edgeflare.tasks"]
        classification = "my_package:Classification"

    What decisions are, when two differ, how confidently, and how far one is from changing, is said
    by the answers that its decoders read: see `Answer`.

    Attributes:
        name: as users write it.

    """

    name: ClassVar[str]

    @abstractmethod
    def decoder_from_json(self, fields: Mapping[str, Any]) -> Decoder:
        """Return the decoder that `Decoder.to_json` described."""

    @abstractmethod
    def warnings(
        self,
        original: Sequence[Answer] | None,
        compressed: Sequence[Answer],
        labels: NDArray[np.int64] | None,
    ) -> list[str]:
        """Return one line for each sign that the models do not answer as trained ones do.

        Args:
            original: the original's answers on the seeds, or None where there is none.
            compressed: the compressed model's answers on them.
            labels: (seeds,) what is right, or None.

        """
