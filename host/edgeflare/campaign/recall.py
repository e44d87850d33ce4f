"""Between what was evaluated and the rows of the journal, both ways."""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence

import numpy as np

from edgeflare.campaign.journal import Answers, Role
from edgeflare.campaign.panel import Evaluated, read_answers
from edgeflare.models.decode import Decoder
from edgeflare.models.evaluation import RawBatch
from edgeflare.search.outcome import Answer, Arm, Image, Outcome


def to_row(role: Role, seed_id: int, n: int, image: Image, evaluated: Evaluated) -> Answers:
    """Return the row that records what was evaluated."""
    raw = evaluated.raw
    return Answers(
        role,
        seed_id,
        n,
        image_crc32(image),
        raw.get(Arm.ORIGINAL),
        raw.get(Arm.TWIN),
        raw.get(Arm.DEVICE),
        {
            arm.value: answer.failure
            for arm, answer in evaluated.outcome.answers.items()
            if answer.failure is not None
        },
        evaluated.seconds,
    )


def from_rows(decoders: Mapping[Arm, Decoder], rows: Sequence[Answers]) -> list[Evaluated]:
    """Return what was evaluated, read again from its rows."""
    answers: list[dict[Arm, Answer]] = [{} for _ in rows]
    raw: list[dict[Arm, bytes]] = [{} for _ in rows]
    for arm, decoder in decoders.items():
        blobs = {i: blob for i, row in enumerate(rows) if (blob := _raw(row, arm)) is not None}
        if not blobs:
            continue
        failures = {
            k: rows[i].failures[arm.value]
            for k, i in enumerate(blobs)
            if arm.value in rows[i].failures
        }
        outputs = np.frombuffer(b"".join(blobs.values()), decoder.tensor.dtype)
        batch = RawBatch(outputs.reshape(len(blobs), -1), failures)
        for i, answer in zip(blobs, read_answers(decoder, batch), strict=True):
            answers[i][arm] = answer
            raw[i][arm] = blobs[i]
    return [Evaluated(Outcome(answers[i]), raw[i], row.seconds) for i, row in enumerate(rows)]


def image_crc32(image: Image) -> int:
    """Return the checksum by which a replayed chain is held to what it asked before."""
    return zlib.crc32(image.tobytes())


def _raw(row: Answers, arm: Arm) -> bytes | None:
    if arm is Arm.ORIGINAL:
        return row.original
    return row.twin if arm is Arm.TWIN else row.device
