"""Front ends of sounds, and what TensorFlow and librosa made of one sound."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from edgeflare.domains.audio.log_mel import LogMel

VECTORS = Path(__file__).parents[1] / "domains" / "audio" / "front_end_vectors.npz"

SMALL = LogMel(8_000, 20, 10, 32, 4, 100.0, 3_000.0)


def as_librosa(
    sample_rate: int, frame: tuple[int, int, int], bands: tuple[int, float, float]
) -> LogMel:
    """Log-mel features in the conventions of librosa.

    `frame` is length, step and length of the transform; `bands` are how many, and their limits.
    """
    return LogMel(
        sample_rate,
        *frame,
        *bands,
        framing="centered",
        power=2,
        filters="slaney",
        logarithm="decibel",
        floor=1e-10,
        range_db=80.0,
    )


def recorded(name: str, sound: str) -> tuple[NDArray[np.float32], NDArray[np.int16]]:
    """What a library made of a sound, and the sound."""
    with np.load(VECTORS) as vectors:
        return vectors[name], vectors[sound]
