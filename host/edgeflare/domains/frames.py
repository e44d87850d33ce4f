"""The domain of clips: frames of images, which a model is given one after the other."""

from __future__ import annotations

import io
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from edgeflare.core.domain import Domain
from edgeflare.core.input import Input
from edgeflare.core.input_space import InputSpace
from edgeflare.domains.image import TABLE_3
from edgeflare.domains.image_fingerprint import ImageFingerprint, count_near, fingerprint
from edgeflare.domains.npz_errors import NOT_AN_NPZ
from edgeflare_operators import MutationOperator, operators

Frames = NDArray[np.uint8]
"""A clip: (frames, H, W, C), uint8, with 1, 3 or 4 channels."""


class FramesDomain(Domain):
    """Clips of images of 8 bits, stored as an archive of numpy's."""

    name = "frames"
    suffix = ".frames"
    space = InputSpace("uint8", 0, 255, cell_axes=3)

    @staticmethod
    def paper_operators() -> tuple[MutationOperator, ...]:
        """Return those of Table 3, which the paper has for images."""
        return operators("frames", TABLE_3)

    @staticmethod
    def encode_file(one: Frames) -> bytes:
        """Return the file of a clip: what `.npz` files are, with the array `frames`."""
        buffer = io.BytesIO()
        np.savez_compressed(buffer, frames=one)
        return buffer.getvalue()

    @staticmethod
    def decode_file(data: bytes) -> Input | None:
        """Return the clip of a file; None where it holds none."""
        try:
            with np.load(io.BytesIO(data), allow_pickle=False) as file:
                one: Input = file["frames"]
        except NOT_AN_NPZ:
            return None
        return one if one.dtype == np.uint8 and one.ndim == 4 else None

    @staticmethod
    def fingerprint(one: Frames) -> ImageFingerprint:
        """Return the perceptual hashes of the frames, one behind the other, and their means."""
        each = [fingerprint(frame) for frame in one]
        return ImageFingerprint(
            np.concatenate([frame.signs for frame in each]),
            tuple(mean for frame in each for mean in frame.colour),
        )

    @staticmethod
    def count_near(fingerprints: Sequence[ImageFingerprint]) -> int:
        """Return how many clips look like another one; all have as many frames."""
        return count_near(fingerprints)
