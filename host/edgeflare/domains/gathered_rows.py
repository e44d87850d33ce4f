"""Inputs of a large set in one array: in memory, or in a file that memory holds a part of."""

from __future__ import annotations

import mmap
import os
import tempfile
from collections.abc import Iterable
from math import prod

import numpy as np
from numpy.typing import NDArray

from edgeflare.errors import InfrastructureError

MOST_IN_MEMORY = 2**28
"""Bytes of an array up to which it is in memory: a quarter of a gigabyte."""

_RELEASED_BYTES = 2**25
"""Bytes after which the system may have the memory of what was written back."""


def gathered(
    count: int, shape: tuple[int, ...], dtype: str, rows: Iterable[NDArray[np.generic]]
) -> NDArray[np.generic]:
    """Return rows as one array, (count, *shape).

    A larger one than `MOST_IN_MEMORY` is in a file without a name in the temporary folder, which
    ends with the array.

    Args:
        count: how many rows there are.
        shape: shape of a row.
        dtype: numpy's name of their type.
        rows: the rows, each of which is read once.

    Raises:
        InfrastructureError: the temporary folder has no room for the file.

    """
    row_bytes = prod(shape) * np.dtype(dtype).itemsize
    if count * row_bytes <= MOST_IN_MEMORY:
        array: NDArray[np.generic] = np.empty((count, *shape), dtype)
        for at, row in enumerate(rows):
            array[at] = row
        return array
    memory = _file(count * row_bytes)
    array = np.frombuffer(memory, dtype).reshape(count, *shape)
    written = 0
    for at, row in enumerate(rows):
        array[at] = row
        written += row_bytes
        if written >= _RELEASED_BYTES:
            memory.madvise(mmap.MADV_DONTNEED)  # the file keeps it
            written = 0
    return array


def _file(size: int) -> mmap.mmap:
    """Return the memory of a file without a name."""
    folder = "a temporary folder"
    try:
        folder = tempfile.gettempdir()
        with tempfile.TemporaryFile(prefix="edgeflare-inputs-") as file:
            os.posix_fallocate(file.fileno(), 0, size)  # a page without room would be a signal
            return mmap.mmap(file.fileno(), size)
    except OSError as error:
        raise InfrastructureError(
            f"{size >> 20:,} MiB of inputs do not fit into {folder}"
            f" ({error.strerror or error}): name another folder by the environment variable TMPDIR,"
            " or take fewer with --limit"
        ) from error
