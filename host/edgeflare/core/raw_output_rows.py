"""Rows of raw outputs as a run keeps them, compressed where they are large, and what reads them."""

from __future__ import annotations

import zlib
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from edgeflare.core.query import Arm
from edgeflare.core.task import Decoder
from edgeflare.core.tensor import RawBatch, row_layout, tensor_bytes

_LEVEL = 1
"""Level of zlib. 6 takes three times as long on the masks of two models for 5 % less."""

_LENGTH_BYTES = 4


class UnreadableRowError(ValueError):
    """What a run has kept is no row of the model's outputs; says why."""


def kept_row(decoder: Decoder, row: NDArray[np.generic]) -> bytes:
    """Return what a run keeps of a row; `restored_row` makes a row of it that is read alike."""
    if not decoder.compresses:
        return row.tobytes()
    return zlib.compress(decoder.reduced(row).tobytes(), _LEVEL)


def kept_rows(decoder: Decoder, rows: NDArray[np.generic]) -> list[bytes]:
    """Return what a run keeps of the rows of a batch, (batch, *row); see `kept_row`."""
    if decoder.compresses or not rows.size:
        return [kept_row(decoder, row) for row in rows]
    whole = rows.tobytes()
    size = len(whole) // len(rows)
    return [whole[begin : begin + size] for begin in range(0, len(whole), size)]


def restored_row(decoder: Decoder, kept: bytes) -> bytes:
    """Return the bytes of a row.

    Raises:
        UnreadableRowError: they are not what `kept_row` returned.

    """
    size, row = sum(map(tensor_bytes, decoder.outputs)), kept
    if decoder.compresses:
        try:
            row = zlib.decompressobj().decompress(kept, size + 1)
        except zlib.error as error:
            raise UnreadableRowError(f"an answer cannot be decompressed: {error}") from None
    if len(row) != size:
        raise UnreadableRowError(f"an answer has not the {size} bytes of the model's outputs")
    return row


def joined(decoder: Decoder, kept: Iterable[bytes]) -> bytes:
    """Return several kept rows of one decoder as one; see `parted`."""
    if not decoder.compresses:
        return b"".join(kept)
    return b"".join(len(content).to_bytes(_LENGTH_BYTES, "big") + content for content in kept)


def parted(decoder: Decoder, whole: bytes, count: int) -> list[bytes]:
    """Return the kept rows that were joined.

    Args:
        decoder: decoder of the rows.
        whole: what `joined` returned.
        count: how many there are.

    Raises:
        UnreadableRowError: it is not that many rows.

    """
    parts, start = [], 0
    for _ in range(count):
        begin, size = start, sum(map(tensor_bytes, decoder.outputs))
        if decoder.compresses:
            begin = start + _LENGTH_BYTES
            size = int.from_bytes(whole[start:begin], "big")
        start = begin + size
        parts.append(whole[begin:start])
    if start != len(whole):
        raise UnreadableRowError(f"the answers of an ensemble are not those of {count} models")
    return parts


@dataclass(frozen=True, slots=True)
class OutputDecoders:
    """The decoders of the raw outputs of a panel, or of a journal.

    Attributes:
        decoders: decoders by arm.
        members: kernel sets of the twin's ensemble, in the order of their outputs in a row.

    """

    decoders: Mapping[Arm, Decoder]
    members: tuple[str, ...] = ()


def batch_from_bytes(
    decoder: Decoder, outputs: Collection[bytes], failures: Mapping[int, str]
) -> RawBatch:
    """Return raw outputs as the batch that a model gave.

    Args:
        decoder: decoder of the model, whose rows they are.
        outputs: the row of each input, as `kept_row` returned it.
        failures: why an input has no answer, by its position.

    Raises:
        UnreadableRowError: a row is none of the model's.

    """
    _, dtype = row_layout(decoder.outputs)
    rows = np.frombuffer(b"".join(restored_row(decoder, output) for output in outputs), dtype)
    return RawBatch(rows.reshape(len(outputs), -1), failures)
