"""Files whose constants lie behind the flatbuffer, as converters write large ones."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import numpy as np

from edgeflare.models.tflite_file import read_model
from edgeflare.models.tflite_writer import written

_ALIGNMENT = 16


def with_buffers_outside(content: bytes, among: Collection[int] | None = None) -> bytes:
    """Return a file whose buffers, or those among some, are moved out of the flatbuffer."""
    model = read_model(content)
    moved = {
        index: bytes(np.asarray(buffer.data, np.uint8))
        for index, buffer in enumerate(model.buffers)
        if buffer.data is not None
        and len(buffer.data)
        and (index in among if among is not None else True)
    }
    # The offsets are of one width, so the flatbuffer is as long with the right ones.
    start = len(_packed(model, dict.fromkeys(moved, 2), moved))
    places = {}
    for index, data in moved.items():
        start += -start % _ALIGNMENT
        places[index] = start
        start += len(data)
    whole = bytearray(_packed(model, places, moved))
    for index, data in moved.items():
        whole += bytes(places[index] - len(whole)) + data
    return bytes(whole)


def _packed(model: Any, places: dict[int, int], moved: dict[int, bytes]) -> bytes:
    for index, place in places.items():
        buffer = model.buffers[index]
        buffer.data, buffer.offset, buffer.size = None, place, len(moved[index])
    return written(model)
