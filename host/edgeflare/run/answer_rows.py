"""Between what was evaluated and the rows of the journal, both ways."""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence

from edgeflare.core.answer import Answer
from edgeflare.core.input_space import Input
from edgeflare.core.query import Arm, EvaluatedQuery, Outcome
from edgeflare.core.raw_output_rows import OutputDecoders, batch_from_bytes, joined, parted
from edgeflare.core.task import Decoder
from edgeflare.run.journal_rows import AnswerRow, Role


def to_row(
    reading: OutputDecoders,
    role: Role,
    seed_id: int,
    n: int,
    asked: Input,
    evaluated: EvaluatedQuery,
) -> AnswerRow:
    """Return the row that records what was evaluated.

    Args:
        reading: how the raw outputs are read.
        role: what the input was.
        seed_id: the seed that it came from.
        n: number of the input in that role.
        asked: the input.
        evaluated: what was answered about it.

    """
    raw, outcome = evaluated.raw, evaluated.outcome
    members = None
    if outcome.members:
        kept = (raw[name] for name in outcome.members)
        members = joined(reading.decoders[Arm.TWIN], kept) or None
    failures = {
        arm.value: answer.failure
        for arm, answer in outcome.answers.items()
        if answer.failure is not None
    }
    failures |= {
        name: answer.failure
        for name, answer in outcome.members.items()
        if answer.failure is not None
    }
    return AnswerRow(
        role=role,
        seed_id=seed_id,
        n=n,
        image_crc32=input_crc32(asked),
        original=raw.get(Arm.ORIGINAL),
        twin=raw.get(Arm.TWIN),
        device=raw.get(Arm.DEVICE),
        members=members,
        failures=failures,
        seconds=evaluated.seconds,
    )


def from_rows(reading: OutputDecoders, rows: Sequence[AnswerRow]) -> list[EvaluatedQuery]:
    """Return what was evaluated, read again from its rows."""
    answers: list[dict[Arm, Answer]] = [{} for _ in rows]
    members: list[dict[str, Answer]] = [{} for _ in rows]
    raw: list[dict[Arm | str, bytes]] = [{} for _ in rows]
    for arm, decoder in reading.decoders.items():
        blobs = {i: blob for i, row in enumerate(rows) if (blob := row.raw(arm)) is not None}
        for i, answer in _read(decoder, arm.value, blobs, rows):
            answers[i][arm] = answer
            raw[i][arm] = blobs[i]
    twin, count = reading.decoders[Arm.TWIN], len(reading.members)
    parts = {i: parted(twin, row.members, count) for i, row in enumerate(rows) if row.members}
    for k, name in enumerate(reading.members):
        blobs = {i: parts[i][k] for i in parts}
        for i, answer in _read(twin, name, blobs, rows):
            members[i][name] = answer
            raw[i][name] = blobs[i]
    return [
        EvaluatedQuery(Outcome(answers[i], members[i]), raw[i], row.seconds)
        for i, row in enumerate(rows)
    ]


def input_crc32(input_: Input) -> int:
    """Return the checksum by which a replayed chain is held to what it asked before."""
    return zlib.crc32(input_.tobytes())


def _read(
    decoder: Decoder, key: str, blobs: Mapping[int, bytes], rows: Sequence[AnswerRow]
) -> list[tuple[int, Answer]]:
    if not blobs:
        return []
    failures = {k: rows[i].failures[key] for k, i in enumerate(blobs) if key in rows[i].failures}
    batch = batch_from_bytes(decoder, blobs.values(), failures)
    return list(zip(blobs, decoder.read(batch), strict=True))
