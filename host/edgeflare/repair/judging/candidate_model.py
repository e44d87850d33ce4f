"""A candidate of a repair as a model of its pair, on the kernels of the twin."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from numpy.typing import NDArray

from edgeflare.campaign.pair_panel import OpenedPair, host_arm
from edgeflare.campaign.panel import ArmModel
from edgeflare.core.answer import Answer
from edgeflare.core.query import Arm
from edgeflare.models.evaluator import Evaluator
from edgeflare.models.model_inputs import ModelInputs
from edgeflare.models.tflite import open_tflite

NAME = "candidate.tflite"

_AT_ONCE = 512
"""Inputs in a batch: float inputs of a set are not encoded all at once."""


@dataclass(frozen=True, slots=True)
class CandidateModel:
    """A candidate that is open.

    Attributes:
        path: path of its file.

    """

    path: Path
    _arm: ArmModel

    def rows(self, images: NDArray[np.uint8]) -> NDArray[np.generic]:
        """Return images as the candidate takes them: (n, …)."""
        return self._arm.rows(images, range(len(images)))

    def run_by(self, evaluator: Evaluator) -> CandidateModel:
        """Return the candidate as something else runs it, such as a session on a device."""
        return CandidateModel(self.path, replace(self._arm, evaluator=evaluator))

    def answers(self, images: NDArray[np.uint8], seed_ids: Sequence[int]) -> list[Answer]:
        """Return its answers.

        Args:
            images: (n, H, W, C).
            seed_ids: the seed that each was made from.

        """
        found: list[Answer] = []
        for at in range(0, len(images), _AT_ONCE):
            part = slice(at, at + _AT_ONCE)
            given = self._arm.given(images[part], seed_ids[part])
            found += self._arm.decoder.read(self._arm.submit(given).result())
        return found


@contextmanager
def open_candidate(content: bytes, opened: OpenedPair) -> Iterator[CandidateModel]:
    """Open a candidate in the place of the compressed model of its pair.

    Args:
        content: content of its `.tflite` file.
        opened: the pair; its first kernel set runs the candidate.

    Raises:
        UserError: it does not load, or its inputs or outputs are not those of the pair.

    """
    pair = opened.pair
    with TemporaryDirectory(prefix="edgeflare-") as folder:
        path = Path(folder) / NAME
        path.write_bytes(content)
        model = open_tflite(path, opened.ensemble[0], pair.interface.invocation)
        with closing(model):
            inputs = ModelInputs(pair.interface, model.signature.inputs, NAME, like=opened.inputs)
            arm = host_arm(pair, NAME, model, inputs, opened.seeds)
            task, original = pair.interface.opened_task, opened.panel.reading.decoders[Arm.ORIGINAL]
            task.require_pair(original, arm.decoder, pair.classes)
            yield CandidateModel(path, arm)
