"""A candidate of a repair as a model of its pair, on the kernels of the twin."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from math import prod
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

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
"""Inputs in a batch at most: float inputs of a set are not encoded all at once."""

_VALUES_AT_ONCE = 2**24
"""Values in a batch at most."""


@dataclass(frozen=True, slots=True)
class CandidateModel:
    """A candidate that is open.

    Attributes:
        path: path of its file.
        arm: the model as an arm of its pair.

    """

    path: Path
    arm: ArmModel

    def rows(self, inputs: NDArray[Any], seed_ids: Sequence[int]) -> NDArray[np.generic]:
        """Return inputs of some seeds as the candidate takes them: (n, …)."""
        return self.arm.rows(inputs, seed_ids)

    def run_by(self, evaluator: Evaluator) -> CandidateModel:
        """Return the candidate as something else runs it, such as a session on a device."""
        return CandidateModel(self.path, replace(self.arm, evaluator=evaluator))

    def answers(self, inputs: NDArray[Any], seed_ids: Sequence[int]) -> list[Answer]:
        """Return its answers.

        Args:
            inputs: (n, *shape), of the pair's domain.
            seed_ids: the seed that each was made from.

        """
        found: list[Answer] = []
        size = max(1, min(_AT_ONCE, _VALUES_AT_ONCE // max(1, prod(inputs.shape[1:]))))
        for at in range(0, len(inputs), size):
            part = slice(at, at + size)
            given = self.arm.given(inputs[part], seed_ids[part])
            found += self.arm.decoder.read(self.arm.submit(given).result())
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
