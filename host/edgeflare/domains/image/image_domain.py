"""The domain of images: HWC, uint8, with 1, 3 or 4 channels."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from edgeflare.core.domain import Domain
from edgeflare.core.input_space import EIGHT_BIT
from edgeflare.core.seeds import ALL_SEEDS, SeedChoice, Seeds, ids_of, take
from edgeflare.core.tensor import Layout, Rounding, Tensor
from edgeflare.core.views import ImageView
from edgeflare.domains.gathered_rows import gathered
from edgeflare.domains.image.image_file import (
    decode_held_back,
    decode_image,
    held_back,
    pass_on,
)
from edgeflare.domains.image.image_fingerprint import ImageFingerprint, count_near, fingerprint
from edgeflare.domains.image.preprocess import (
    CHANNELS,
    Channels,
    ImageEncoder,
    Preprocess,
    Resize,
    image_tensor,
)
from edgeflare.domains.image.preprocess import preset as _preset
from edgeflare.domains.seed_files import (
    chosen_files,
    labels_of,
    read_npz,
    require_seeds,
    seed_content,
    seed_files,
)
from edgeflare.errors import UserError
from edgeflare_operators import MutationOperator, operators
from edgeflare_operators.operator_registry import Image
from edgeflare_operators.wrapping_noise import (
    wrapping_gaussian_noise,
    wrapping_multiplicative_noise,
)

IMAGE_SUFFIXES = (".png", ".jpg", ".jpeg", ".bmp", ".webp", ".tif", ".tiff", ".ppm", ".pgm")
"""Suffixes of files that are read as images; other files are ignored."""

_MOST_BYTES = 2**29
"""Most bytes of an image's file, as many as its pixels may take in 16 bits without compression."""

_AT_ONCE = 128
"""Images that are decoded before they are gathered: the messages of decoders are held back for as
many, and they are in memory twice."""

_COLORS = {1: "gray, 1-channel", 3: "RGB, 3-channel", 4: "RGBA, 4-channel"}

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
        return seed_files(path, IMAGE_SUFFIXES)

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
    def encode_file(image: Image) -> bytes:
        """Return the PNG file of an image."""
        if image.shape[2] == 3:
            image = np.asarray(cv2.cvtColor(image, cv2.COLOR_RGB2BGR), np.uint8)
        elif image.shape[2] == 4:
            image = np.asarray(cv2.cvtColor(image, cv2.COLOR_RGBA2BGRA), np.uint8)
        return cv2.imencode(".png", image)[1].tobytes()

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
    def view(image: Image) -> ImageView:
        """Return the image."""
        return ImageView(image)

    @staticmethod
    def fingerprint(image: Image) -> ImageFingerprint:
        """Return the perceptual hash of an image, and its mean colour."""
        return fingerprint(image)

    @staticmethod
    def count_near(fingerprints: Sequence[ImageFingerprint]) -> int:
        """Return how many images look like another one."""
        return count_near(fingerprints)


def load_image_seeds(
    path: Path,
    shape: tuple[int, int, int],
    resize: Resize = "none",
    choice: SeedChoice = ALL_SEEDS,
    array: str = "images",
) -> Seeds:
    """Load seed images.

    Args:
        path: an `.npz` with `images`, uint8 (N, H, W, C) or (N, H, W), and maybe `labels`, integers
            (N,); or a folder of image files, taken in the order of their names.
        shape: (height, width, channels) of the images that the model takes.
        resize: what to do with images of another height and width.
        choice: says which of them are taken.
        array: the name of the images in an `.npz`.

    Raises:
        UserError: there are none, or they are not images of that shape.

    """
    require_seeds(path, "images")
    if path.is_dir():
        return _from_folder(path, shape, resize, choice)
    return _from_npz(path, shape, resize, choice, array)


def resized(image: NDArray[np.uint8], height: int, width: int, how: Resize) -> NDArray[np.uint8]:
    """Return an image (H, W, C) in another size, stretched or cropped at its centre.

    Interpolation is by area where the image shrinks, bilinear where it grows.
    """
    if how == "center-crop":
        h, w = image.shape[:2]
        factor = min(h / height, w / width)
        crop_h, crop_w = max(1, round(height * factor)), max(1, round(width * factor))
        top, left = (h - crop_h) // 2, (w - crop_w) // 2
        image = image[top : top + crop_h, left : left + crop_w]
    shrinks = image.shape[0] * image.shape[1] > height * width
    method = cv2.INTER_AREA if shrinks else cv2.INTER_LINEAR
    size = cv2.resize(np.ascontiguousarray(image), (width, height), interpolation=method)
    return size.reshape(height, width, image.shape[2]).astype(np.uint8, copy=False)


def _from_npz(
    path: Path, shape: tuple[int, int, int], resize: Resize, choice: SeedChoice, array: str
) -> Seeds:
    arrays = read_npz(path, (array, "labels"))
    images = arrays[array]
    if images.dtype != np.uint8:
        raise UserError(f"seeds {path}: images are {images.dtype}, expected uint8: {_cast(images)}")
    if images.ndim == 3:
        images = images[..., None]
    if images.ndim != 4 or images.shape[3] not in CHANNELS:
        raise UserError(
            f"seeds {path}: images have shape {arrays[array].shape}, expected (N, height, "
            "width, channels) with 1, 3 or 4 channels, or (N, height, width)"
        )
    if not images.size:
        raise UserError(f"seeds {path}: there are no images in it, {images.shape}")
    labels = labels_of(path, arrays, len(images), "images")
    places = choice.places(len(images), labels)
    images, labels = take(images, places), labels if labels is None else take(labels, places)
    if images.shape[1:] == (shape[1], shape[2], shape[0]) != shape:
        raise UserError(
            f"seeds {path}: images have shape {images.shape[1:]}, but the model is taken to take "
            f'{shape} (height, width, channels): say layout = "NCHW" under [preprocess] or '
            "[inputs.NAME] where its input has its channels first"
        )
    if images.shape[3] != shape[2]:
        raise UserError(
            f"seeds {path}: images have shape {images.shape[1:]}, but the model takes {shape} "
            f"(height, width, channels): convert them to {_COLORS[shape[2]]} images"
        )
    if images.shape[1:] != shape:
        _refuse_misfit(str(path), images.shape[1:], shape, resize)
        images = np.stack([resized(image, *shape[:2], resize) for image in images])
    names = tuple(map(str, places.tolist()))
    return Seeds(np.ascontiguousarray(images), labels, names, ids=ids_of(places))


def _cast(images: NDArray[np.generic]) -> str:
    if np.issubdtype(images.dtype, np.floating):
        return "save pixels of 0 to 255, (images * 255).round().astype('uint8') if they are 0 to 1"
    if images.dtype == np.bool_:
        return "save pixels of 0 to 255, images.astype('uint8') * 255"
    return "save pixels of 0 to 255, images.astype('uint8')"


def _from_folder(
    path: Path, shape: tuple[int, int, int], resize: Resize, choice: SeedChoice
) -> Seeds:
    found = chosen_files(path, IMAGE_SUFFIXES, choice)
    if not found.files:
        raise UserError(
            f"seeds {path}: the folder has no image files ({', '.join(IMAGE_SUFFIXES)})"
        )
    images = gathered(len(found.files), shape, "uint8", _decoded(found.files, shape, resize))
    return Seeds(images, None, found.names, ids=found.ids, folders=found.folders)


def _decoded(
    files: Sequence[Path], shape: tuple[int, int, int], resize: Resize
) -> Iterator[NDArray[np.uint8]]:
    """Yield the images of files in the size of a model, decoded on all cores."""

    def decode(file: Path) -> NDArray[np.uint8]:
        image = _decode(file, shape[2])
        if image.shape != shape:
            _refuse_misfit(str(file), image.shape, shape, resize)
            image = resized(image, *shape[:2], resize)
        return image

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for begin in range(0, len(files), _AT_ONCE):
            with held_back() as told:
                images = list(pool.map(decode, files[begin : begin + _AT_ONCE]))
            pass_on(told())
            yield from images


def _decode(file: Path, channels: int) -> NDArray[np.uint8]:
    """Return a file's image (H, W, channels): gray, RGB, or RGBA.

    RGBA is opaque unless the file is an 8-bit RGBA image.
    """
    encoded = np.frombuffer(seed_content(file, _MOST_BYTES), np.uint8)
    if channels == 1:
        return _imdecode(file, encoded, cv2.IMREAD_GRAYSCALE)[..., None]
    image = _imdecode(file, encoded, cv2.IMREAD_COLOR)[..., ::-1]
    if channels == 3:
        return image
    whole = _imdecode(file, encoded, cv2.IMREAD_UNCHANGED)
    if whole.dtype == np.uint8 and whole.shape[2:] == (4,):
        return _turned_like(image, whole[..., [2, 1, 0, 3]])
    return np.dstack([image, np.full(image.shape[:2], 255, np.uint8)])


def _turned_like(colours: NDArray[np.uint8], image: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Return an RGBA image turned as its colours are.

    OpenCV turns what it decodes as the file's EXIF data say, but for images with an opacity.
    """
    for quarters, mirrored in product(range(4), (False, True)):
        turned = np.rot90(image, quarters)
        turned = turned[:, ::-1] if mirrored else turned
        if np.array_equal(turned[..., :3], colours):
            return turned
    return image


def _imdecode(file: Path, encoded: NDArray[np.uint8], mode: int) -> NDArray[np.uint8]:
    try:
        image = decode_held_back(encoded, mode)
    except UserError as error:
        raise UserError(f"seeds: {file}: {error}") from None
    if image is None:
        raise UserError(f"seeds: {file} cannot be decoded as an image: correct or remove it")
    return image


def _refuse_misfit(what: str, shape: Sequence[int], model: Sequence[int], resize: Resize) -> None:
    if resize == "none":
        raise UserError(
            f"seeds {what}: images have shape {tuple(shape)}, but the model takes {tuple(model)} "
            "(height, width, channels): say --resize stretch or --resize center-crop, or resize "
            "in pair.toml, or give seeds of that size"
        )
