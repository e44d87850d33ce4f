"""Between what was evaluated and the rows of the journal, both ways."""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence

import numpy as np

from edgeflare.campaign.panel import Evaluated, Reading, read_answers
from edgeflare.campaign.rows import Answers, Role
from edgeflare.models.decode import Decoder
from edgeflare.models.evaluation import RawBatch
from edgeflare.search.outcome import Answer, Arm, Image, Outcome


def to_row(role: Role, seed_id: int, n: int, image: Image, evaluated: Evaluated) -> Answers:
    """Return the row that records what was evaluated."""
    raw = evaluated.raw
    outcome = evaluated.outcome
    answered = {**{arm.value: answer for arm, answer in outcome.answers.items()}, **outcome.members}
    return Answers(
        role,
        seed_id,
        n,
        image_crc32(image),
        raw.get(Arm.ORIGINAL),
        raw.get(Arm.TWIN),
        raw.get(Arm.DEVICE),
        b"".join(raw[name] for name in outcome.members) or None,
        {key: answer.failure for key, answer in answered.items() if answer.failure is not None},
        evaluated.seconds,
    )


def from_rows(reading: Reading, rows: Sequence[Answers]) -> list[Evaluated]:
    """Return what was evaluated, read again from its rows."""
    answers: list[dict[Arm, Answer]] = [{} for _ in rows]
    members: list[dict[str, Answer]] = [{} for _ in rows]
    raw: list[dict[Arm | str, bytes]] = [{} for _ in rows]
    for arm, decoder in reading.decoders.items():
        blobs = {i: blob for i, row in enumerate(rows) if (blob := row.raw(arm)) is not None}
        for i, answer in _read(decoder, arm.value, blobs, rows):
            answers[i][arm] = answer
            raw[i][arm] = blobs[i]
    for k, name in enumerate(reading.members):
        blobs = {i: _part(row.members, k, reading) for i, row in enumerate(rows) if row.members}
        for i, answer in _read(reading.decoders[Arm.TWIN], name, blobs, rows):
            members[i][name] = answer
            raw[i][name] = blobs[i]
    return [
        Evaluated(Outcome(answers[i], members[i]), raw[i], row.seconds)
        for i, row in enumerate(rows)
    ]


def image_crc32(image: Image) -> int:
    """Return the checksum by which a replayed chain is held to what it asked before."""
    return zlib.crc32(image.tobytes())


def _read(
    decoder: Decoder, key: str, blobs: Mapping[int, bytes], rows: Sequence[Answers]
) -> list[tuple[int, Answer]]:
    if not blobs:
        return []
    failures = {k: rows[i].failures[key] for k, i in enumerate(blobs) if key in rows[i].failures}
    outputs = np.frombuffer(b"".join(blobs.values()), decoder.tensor.dtype)
    batch = RawBatch(outputs.reshape(len(blobs), -1), failures)
    return list(zip(blobs, read_answers(decoder, batch), strict=True))


def _part(blob: bytes, k: int, reading: Reading) -> bytes:
    size = len(blob) // len(reading.members)
    return blob[k * size : (k + 1) * size]
