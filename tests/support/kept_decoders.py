"""Decoders as a journal gives them back."""

from __future__ import annotations

import msgspec

from edgeflare.core.task import Decoder, Task
from edgeflare.run.run_header import KeptDecoder


def kept_again(task: Task | type[Task], decoder: Decoder) -> Decoder:
    """Return the decoder that is read of what is written of one; the two are equal."""
    written = msgspec.json.encode(KeptDecoder.of(decoder))
    kind = task if isinstance(task, type) else type(task)
    read = msgspec.json.decode(written, type=KeptDecoder).decoder(kind)
    assert read == decoder
    return read
