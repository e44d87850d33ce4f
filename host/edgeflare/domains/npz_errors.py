"""What numpy raises where a file is not the `.npz` that it should be."""

from __future__ import annotations

import zipfile
import zlib

NOT_AN_NPZ = (
    AttributeError,
    EOFError,
    KeyError,
    NotImplementedError,
    OSError,
    RuntimeError,
    TypeError,
    ValueError,
    zipfile.BadZipFile,
    zlib.error,
)
"""Raised for what is no `.npz`, one without its end or an array, a pickle, or a bare `.npy`."""
