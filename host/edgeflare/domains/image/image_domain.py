"""The domain of images: HWC, uint8, with 1, 3 or 4 channels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import cv2
import numpy as np

from edgeflare.core.domain import Domain
from edgeflare.core.input_space import EIGHT_BIT
from edgeflare.core.input_view import ImageView
from edgeflare.core.seed_choice import ALL_SEEDS, SeedChoice
from edgeflare.core.seeds import Seeds
from edgeflare.core.tensor import Layout, Rounding, Tensor
from edgeflare.domains.image.image_file import decode_image
from edgeflare.domains.image.image_fingerprint import ImageFingerprint, count_near, fingerprint
from edgeflare.domains.image.image_seeds import image_files, load_image_seeds
from edgeflare.domains.image.image_tensor import image_tensor
from edgeflare.domains.image.preprocess import Channels, ImageEncoder, Preprocess, Resize
from edgeflare.domains.image.preprocess import preset as _preset
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

DEFAULT_LINF = 250.0
"""Gray levels. The 90th percentile of the published loop's triggers is 251 to 255 on all pairs."""

DEFAULT_RMS = 90.0
"""Gray levels, root mean square over an image's values. The 90th percentile of the published loop's
triggers lies between 97 (LeNet-5) and 145 (ResNet-20)."""


class ImageDomain(Domain):
    """Images of 8 bits, stored as PNG."""

    name = "image"
    suffix = ".png"
    space = EIGHT_BIT
    default_linf = DEFAULT_LINF
    default_rms = DEFAULT_RMS

    def __init__(
        self,
        scale: float | None = None,
        mean: tuple[float, ...] | float | None = None,
        std: tuple[float, ...] | float | None = None,
        resize: Resize | None = None,
        channels: Channels | None = None,
        layout: Layout | None = None,
        rounding: Rounding | None = None,
        preset: str = "unit",
    ) -> None:
        """Take images that are preprocessed as a `Preprocess` says.

        Args:
            scale: see `Preprocess`.
            mean: see `Preprocess`; one number stands for all channels.
            std: likewise.
            resize: see `Preprocess`.
            channels: see `Preprocess`.
            layout: see `Preprocess`.
            rounding: see `Preprocess`.
            preset: name of the preprocessing that has what is not given.

        Raises:
            UserError: a number is none that it may be, or there is no such preset.

        """
        given: dict[str, Any] = {
            "scale": scale,
            "mean": (mean,) if isinstance(mean, (int, float)) else mean,
            "std": (std,) if isinstance(std, (int, float)) else std,
            "resize": resize,
            "channels": channels,
            "layout": layout,
            "rounding": rounding,
        }
        changes = {key: value for key, value in given.items() if value is not None}
        self.preprocess: Preprocess = replace(_preset(preset), **changes)

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

    def input_shape(self, tensor: Tensor, model: str = "the model") -> tuple[int, ...]:
        """Return (height, width, channels)."""
        return image_tensor(tensor, self.preprocess.layout, model).shape

    @staticmethod
    def seed_files(path: Path) -> list[Path]:
        """Return an `.npz` itself, or the image files of a folder."""
        return image_files(path)

    def load_seeds(
        self, path: Path, shape: tuple[int, ...], array: str = "", choice: SeedChoice = ALL_SEEDS
    ) -> Seeds:
        """Load images: the array `images` of an `.npz` unless told otherwise, or a folder."""
        height, width, channels = shape
        resize = self.preprocess.resize
        return load_image_seeds(path, (height, width, channels), resize, choice, array or "images")

    def encoder(self, tensor: Tensor) -> ImageEncoder:
        """Return what preprocesses and quantizes images."""
        return ImageEncoder(self.preprocess, tensor)

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
    def view(one: Image) -> ImageView:
        """Return the image."""
        return ImageView(one)

    @staticmethod
    def fingerprint(one: Image) -> ImageFingerprint:
        """Return the perceptual hash of an image, and its mean colour."""
        return fingerprint(one)

    @staticmethod
    def count_near(fingerprints: Sequence[ImageFingerprint]) -> int:
        """Return how many images look like another one."""
        return count_near(fingerprints)
