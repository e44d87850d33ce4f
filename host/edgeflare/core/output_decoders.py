"""The decoders of all arms, which read answers from raw outputs."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

import numpy as np

from edgeflare.core.arm import Arm
from edgeflare.core.task import Decoder
from edgeflare.core.tensor import RawBatch


@dataclass(frozen=True, slots=True)
class OutputDecoders:
    """The decoders of the raw outputs of a panel, or of a journal.

    Attributes:
        decoders: by arm.
        members: kernel sets of the twin's ensemble, in the order of their outputs in a row.

    """

    decoders: Mapping[Arm, Decoder]
    members: tuple[str, ...] = ()


def batch_from_bytes(
    decoder: Decoder, outputs: Collection[bytes], failures: Mapping[int, str]
) -> RawBatch:
    """Return raw outputs as the batch that a model gave.

    Args:
        decoder: of the model, whose dtype they have.
        outputs: the raw output vector of each input.
        failures: why an input has no answer, by its position.

    """
    vectors = np.frombuffer(b"".join(outputs), decoder.tensor.dtype)
    return RawBatch(vectors.reshape(len(outputs), -1), failures)
