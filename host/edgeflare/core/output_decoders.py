"""The decoders of all arms, which read answers from raw outputs."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

import numpy as np

from edgeflare.core.arm import Arm
from edgeflare.core.kept_rows import restored_row
from edgeflare.core.task import Decoder
from edgeflare.core.tensor import RawBatch
from edgeflare.core.tensor_rows import row_layout


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
        decoder: of the model, whose rows they are.
        outputs: the row of each input, as `kept_row` returned it.
        failures: why an input has no answer, by its position.

    Raises:
        UnreadableRowError: a row is none of the model's.

    """
    _, dtype = row_layout(decoder.outputs)
    rows = np.frombuffer(b"".join(restored_row(decoder, one) for one in outputs), dtype)
    return RawBatch(rows.reshape(len(outputs), -1), failures)
