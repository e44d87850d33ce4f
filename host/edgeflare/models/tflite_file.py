"""Read a `.tflite` file with all its buffers, also those that lie outside of the flatbuffer.

A file may have constants behind its flatbuffer, each at the offset that its entry in the table of
buffers names (`Buffer.offset` and `size` of the schema), and options of custom operators likewise.
Converters write such files where the constants are large.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from ai_edge_litert import schema_py_generated as schema
from numpy.typing import NDArray

from edgeflare.errors import UserError

_NO_OFFSET = 1
"""The largest offset that names no place, as the schema says: 0 is the default, 1 a placeholder."""


def read_model(content: bytes, source: str = "the model") -> Any:
    """Return a file as an object tree.

    Args:
        content: the file.
        source: what the user calls it, for messages.

    Returns:
        A `ModelT` of the schema. Whatever lay outside of the flatbuffer is inside, so it can be
        packed as it is.

    Raises:
        UserError: it cannot be read, or is cut off.

    """
    try:
        model = schema.ModelT.InitFromPackedBuf(content)
        for buffer in model.buffers:
            if buffer.offset > _NO_OFFSET:
                buffer.data = _outside(content, buffer.offset, buffer.size, source)
                buffer.offset = buffer.size = 0
        for operator in (one for graph in model.subgraphs for one in graph.operators):
            if operator.largeCustomOptionsOffset > _NO_OFFSET:
                operator.customOptions = _outside(
                    content,
                    operator.largeCustomOptionsOffset,
                    operator.largeCustomOptionsSize,
                    source,
                )
                operator.largeCustomOptionsOffset = operator.largeCustomOptionsSize = 0
    except UserError:
        raise
    except Exception as error:  # whatever flatbuffers raises on a damaged file
        raise UserError(f"{source}: its graph cannot be read: {error}") from error
    return model


def _outside(content: bytes, offset: int, size: int, source: str) -> NDArray[np.uint8]:
    if offset + size > len(content):
        raise UserError(
            f"{source}: the file is cut off: it has {len(content)} bytes, and a constant ends at "
            f"{offset + size}; copy or convert the model again"
        )
    return np.frombuffer(content, np.uint8, size, offset)
