"""The decoders of all arms, which read answers from raw outputs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from edgeflare.core.answer import Answer
from edgeflare.core.arm import Arm
from edgeflare.models.decode import Decoder
from edgeflare.models.evaluator import RawBatch


@dataclass(frozen=True, slots=True)
class OutputDecoders:
    """The decoders of the raw outputs of a panel, or of a journal.

    Attributes:
        decoders: by arm.
        members: kernel sets of the twin's ensemble, in the order of their outputs in a row.

    """

    decoders: Mapping[Arm, Decoder]
    members: tuple[str, ...] = ()


def read_answers(decoder: Decoder, batch: RawBatch) -> Iterator[Answer]:
    """Yield the answers that a batch of raw outputs means."""
    decoded = decoder.decode(batch)
    for label, tied, probabilities, scores, failure in zip(
        decoded.labels.tolist(),
        decoded.tied.tolist(),
        decoded.probabilities,
        decoded.scores,
        decoded.failures,
        strict=True,
    ):
        yield Answer(None if failure else label, tied, probabilities, scores, failure)
