"""The domain of images: HWC, uint8, with 1, 3 or 4 channels."""

from __future__ import annotations

from collections.abc import Sequence

import cv2
import numpy as np

from edgeflare.core.domain import Domain
from edgeflare.core.input_space import EIGHT_BIT
from edgeflare.domains.image_file import decode_image
from edgeflare.domains.image_fingerprint import ImageFingerprint, count_near, fingerprint
from edgeflare_operators import MutationOperator, operators
from edgeflare_operators.image.noise import (
    wrapping_gaussian_noise,
    wrapping_multiplicative_noise,
)
from edgeflare_operators.operator_registry import Image

TABLE_3 = (
    "pixel-change",
    "gaussian-noise",
    "multiplicative-noise",
    "average-blur",
    "gaussian-blur",
    "median-blur",
)
"""Names of the operators of DFlare's paper."""

PUBLISHED = ("salt-and-pepper", "pixel-change", "average-blur", "gaussian-blur", "median-blur")
"""Names of the operators of its published code, beside two that are not registered."""


class ImageDomain(Domain):
    """Images of 8 bits, stored as PNG."""

    name = "image"
    suffix = ".png"
    space = EIGHT_BIT

    @staticmethod
    def paper_operators() -> tuple[MutationOperator, ...]:
        """Return those of Table 3."""
        return operators("image", TABLE_3)

    @staticmethod
    def published_operators() -> tuple[MutationOperator, ...]:
        """Return those of the published code, of which two wrap around instead of clipping."""
        return (
            wrapping_gaussian_noise,
            wrapping_multiplicative_noise,
            *operators("image", PUBLISHED),
        )

    @staticmethod
    def encode_file(one: Image) -> bytes:
        """Return the PNG file of an image."""
        if one.shape[2] == 3:
            one = np.asarray(cv2.cvtColor(one, cv2.COLOR_RGB2BGR), np.uint8)
        elif one.shape[2] == 4:
            one = np.asarray(cv2.cvtColor(one, cv2.COLOR_RGBA2BGRA), np.uint8)
        return cv2.imencode(".png", one)[1].tobytes()

    @staticmethod
    def decode_file(data: bytes) -> Image | None:
        """Return the image of a PNG file, or None."""
        pixels = decode_image(np.frombuffer(data, np.uint8), cv2.IMREAD_UNCHANGED)
        if pixels is None:
            return None
        if pixels.ndim == 2:
            return np.asarray(pixels[:, :, np.newaxis], np.uint8)
        code = cv2.COLOR_BGR2RGB if pixels.shape[2] == 3 else cv2.COLOR_BGRA2RGBA
        return np.asarray(cv2.cvtColor(np.asarray(pixels, np.uint8), code), np.uint8)

    @staticmethod
    def fingerprint(one: Image) -> ImageFingerprint:
        """Return the perceptual hash of an image, and its mean colour."""
        return fingerprint(one)

    @staticmethod
    def count_near(fingerprints: Sequence[ImageFingerprint]) -> int:
        """Return how many images look like another one."""
        return count_near(fingerprints)
