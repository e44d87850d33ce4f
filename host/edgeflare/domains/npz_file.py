"""One array in a file, in numpy's format of archives."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
from numpy.typing import NDArray

from edgeflare.domains.npz_errors import NOT_AN_NPZ


def encode_npz(name: str, one: NDArray[Any]) -> bytes:
    """Return the content of an archive with one array, by its name."""
    buffer = io.BytesIO()
    arrays: dict[str, Any] = {name: one}
    np.savez_compressed(buffer, **arrays)
    return buffer.getvalue()


def decode_npz(name: str, data: bytes) -> NDArray[Any] | None:
    """Return the array of that name in an archive; None where it has none, or is damaged."""
    try:
        with np.load(io.BytesIO(data), allow_pickle=False) as file:
            return np.asarray(file[name])
    except NOT_AN_NPZ:
        return None
