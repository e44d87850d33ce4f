"""The domain of clips: frames of images, which a model is given one after the other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from edgeflare.array_file import decode_npz, encode_npz
from edgeflare.core.domain import Domain, Encoder
from edgeflare.core.input_space import Input, InputSpace
from edgeflare.core.seeds import ALL_SEEDS, SeedChoice, Seeds
from edgeflare.core.tensor import Layout, Rounding, Tensor
from edgeflare.core.views import PartsView
from edgeflare.domains.array_domain import ARRAY_SUFFIXES, load_array_seeds
from edgeflare.domains.image.image_domain import TABLE_3, ImageDomain
from edgeflare.domains.image.image_fingerprint import ImageFingerprint, count_near, fingerprint
from edgeflare.domains.image.preprocess import Channels, ImageEncoder
from edgeflare.domains.seed_files import seed_files
from edgeflare.domains.windows import FeatureWindows, Windows
from edgeflare.record.json_types import JsonValue
from edgeflare_operators import MutationOperator, operators

Frames = NDArray[np.uint8]
"""A clip: (frames, H, W, C), uint8, with 1, 3 or 4 channels."""


class FramesDomain(Domain):
    """Clips of images of 8 bits, stored as an archive of numpy's."""

    name = "frames"
    suffix = ".frames"
    space = InputSpace("uint8", 0, 255, cell_axes=3)

    def __init__(
        self,
        scale: float | None = None,
        mean: tuple[float, ...] | float | None = None,
        std: tuple[float, ...] | float | None = None,
        channels: Channels | None = None,
        layout: Layout | None = None,
        rounding: Rounding | None = None,
        preset: str = "unit",
        windows: Mapping[str, JsonValue] | None = None,
    ) -> None:
        """Take clips whose frames are preprocessed as images are; see `ImageDomain`.

        A model may be given several frames at a time, (1, length, H, W, C): `windows` has the
        `length` and the `step`, see `Windows`.

        Raises:
            UserError: see `ImageDomain`; or windows are described wrongly.

        """
        self._windows = Windows.of(windows)
        self._image = ImageDomain(scale, mean, std, None, channels, layout, rounding, preset)

    @staticmethod
    def paper_operators() -> tuple[MutationOperator, ...]:
        """Return those of Table 3, which the paper has for images."""
        return operators("frames", TABLE_3)

    def input_shape(self, tensor: Tensor, model: str = "the model") -> tuple[int, ...]:
        """Return (frames, height, width, channels)."""
        whole = self._whole(tensor, model)
        return whole.shape[0], *self._image.input_shape(_of_frame(whole), model)

    @staticmethod
    def seed_files(path: Path) -> list[Path]:
        """Return an `.npz` itself, or the `.npy` files of a folder."""
        return seed_files(path, ARRAY_SUFFIXES)

    def load_seeds(
        self, path: Path, shape: tuple[int, ...], array: str = "", choice: SeedChoice = ALL_SEEDS
    ) -> Seeds:
        """Load clips: the array `clips` of an `.npz` unless told otherwise, or a folder."""
        return load_array_seeds(path, self.space, shape, choice, array or "clips")

    def encoder(self, tensor: Tensor) -> Encoder:
        """Return what preprocesses and quantizes the frames."""
        whole = self._whole(tensor, "the model")
        encoder = ClipEncoder(self._image.encoder(_of_frame(whole)), whole)
        if self._windows is None:
            return encoder
        return _ClipWindows(self._windows, encoder, whole.shape[0], tensor)

    def _whole(self, tensor: Tensor, model: str) -> Tensor:
        """Return the input as it would be of one frame at a time: (frames, 1, *shape of one)."""
        if self._windows is None:
            return tensor
        rows, *row = self._windows.whole(tensor, model).shape
        return replace(tensor, shape=(rows, 1, *row))

    @staticmethod
    def encode_file(frames: Frames) -> bytes:
        """Return the file of a clip: what `.npz` files are, with the array `frames`."""
        return encode_npz({"frames": frames})

    @staticmethod
    def decode_file(data: bytes) -> Input | None:
        """Return the clip of a file; None where it holds none."""
        one = decode_npz("frames", data)
        return one if one is not None and one.dtype == np.uint8 and one.ndim == 4 else None

    def view(self, frames: Frames) -> PartsView:
        """Return the frames below each other."""
        return PartsView({f"frame {n}": self._image.view(frame) for n, frame in enumerate(frames)})

    @staticmethod
    def fingerprint(frames: Frames) -> ImageFingerprint:
        """Return the perceptual hashes of the frames, one behind the other, and their means."""
        each = [fingerprint(frame) for frame in frames]
        return ImageFingerprint(
            np.concatenate([frame.signs for frame in each]),
            tuple(mean for frame in each for mean in frame.colour),
        )

    @staticmethod
    def count_near(fingerprints: Sequence[ImageFingerprint]) -> int:
        """Return how many clips look like another one; all have as many frames."""
        return count_near(fingerprints)


class ClipEncoder:
    """Encodes clips as a model takes them: each frame as an image."""

    def __init__(self, frames: ImageEncoder, tensor: Tensor) -> None:
        """Take the encoder of a frame, and the input of a whole clip."""
        self._frames, self._row = frames, tensor.shape

    def describe(self) -> str:
        """Return what the model is given in one frame; see `ImageEncoder.describe`."""
        return self._frames.describe()

    def encode(self, inputs: Frames) -> NDArray[np.generic]:
        """Encode clips: (batch, frames, H, W, C) to (batch, frames, *shape of one frame)."""
        encoded = self._frames.encode(inputs.reshape(-1, *inputs.shape[2:]))
        return encoded.reshape(len(inputs), *self._row)


class _ClipWindows(FeatureWindows):
    """Encodes clips frame by frame, and cuts windows of several frames out of them."""

    def __init__(self, windows: Windows, encoder: ClipEncoder, rows: int, tensor: Tensor) -> None:
        super().__init__(windows, encoder, rows, tensor)
        self._clip = encoder

    def describe(self) -> str:
        """Return what the model is given in one frame; see `ImageEncoder.describe`."""
        return self._clip.describe()


def _of_frame(tensor: Tensor) -> Tensor:
    return replace(tensor, shape=tensor.shape[1:])
