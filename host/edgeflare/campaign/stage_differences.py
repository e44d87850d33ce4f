"""What the device's own input and output stages change on seeds, whatever the kernels do."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from edgeflare.campaign.opened_pair import OpenedPair
from edgeflare.core.tensor import Tensor, dequantize
from edgeflare.core.tensor_rows import unpack_rows


@dataclass(frozen=True, slots=True)
class StageDifferences:
    """What the device's own stages change on the first seeds.

    Attributes:
        seeds: how many were evaluated.
        decided: on how many the device's own decoding of its raw outputs gives another decision
            than the pair's decoding of the same outputs.
        inputs: the largest difference between what the device makes of a seed for the model, and
            what the pair makes of it; in real values of the model's inputs.

    """

    seeds: int
    decided: int
    inputs: float

    def lines(self) -> list[str]:
        """Return this as people read it: a line for each stage."""
        inputs = (
            f"the model's inputs on the device differ from the pair's by at most {self.inputs:.4g}"
            if self.inputs
            else "the model's inputs on the device are those of the pair"
        )
        return [
            f"output stage: the device's own decoding of the same raw outputs changes the decision"
            f" on {self.decided} of {self.seeds} seeds",
            f"input stage: {inputs}",
        ]


def stage_differences(opened: OpenedPair, count: int) -> StageDifferences:
    """Evaluate the first seeds on the first device, and read the outputs in both ways.

    Args:
        opened: a pair whose devices have stages of their own.
        count: how many seeds.

    Raises:
        ValueError: the devices have no stages of their own.
        InfrastructureError: the device was lost.

    """
    if opened.stages is None:
        raise ValueError("no device has stages of its own")
    own, pairs = opened.stages.on_device, opened.stages.as_pair
    seeds, ids = opened.seeds.inputs[:count], opened.seeds.seed_ids[:count]
    given = own.given(seeds, ids)
    read = replace(own, evaluator=pairs.evaluator, decoder=pairs.decoder)
    answers = [list(one.decoder.read(one.submit(given).result())) for one in (own, read)]
    tensors = own.evaluator.signature.inputs
    return StageDifferences(
        seeds=count,
        decided=sum(one.differs(other) for one, other in zip(*answers, strict=True)),
        inputs=_largest_difference(tensors, given.rows, pairs.rows(seeds, ids)),
    )


def _largest_difference(
    tensors: Sequence[Tensor], first: NDArray[np.generic], second: NDArray[np.generic]
) -> float:
    arrays = zip(tensors, unpack_rows(tensors, first), unpack_rows(tensors, second), strict=True)
    return max(
        float(np.abs(dequantize(one, tensor) - dequantize(other, tensor)).max())
        for tensor, one, other in arrays
    )
