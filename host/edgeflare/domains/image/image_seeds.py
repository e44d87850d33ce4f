"""Seed images: an `.npz` file, or a folder of image files."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import cv2
import numpy as np
from numpy.typing import NDArray

from edgeflare.core.seed_choice import ALL_SEEDS, SeedChoice, ids_of, take
from edgeflare.core.seeds import Seeds
from edgeflare.domains.image.image_file import decode_image
from edgeflare.domains.image.image_tensor import CHANNELS
from edgeflare.domains.image.preprocess import Resize
from edgeflare.domains.npz_arrays import labels_of, read_npz
from edgeflare.domains.seed_files import chosen_files, require_seeds, seed_files
from edgeflare.errors import UserError
from edgeflare.regular_file import read_regular

SUFFIXES = (".png", ".jpg", ".jpeg", ".bmp", ".webp", ".tif", ".tiff", ".ppm", ".pgm")
"""Suffixes of files that are read as images; other files are ignored."""

_MOST_BYTES = 2**29
"""Of an image's file, as many as its pixels may take in 16 bits without compression."""

_COLORS = {1: "gray, 1-channel", 3: "RGB, 3-channel", 4: "RGBA, 4-channel"}


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
        choice: which of them are taken.
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
    if not len(images):
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
    return "save pixels of 0 to 255, images.astype('uint8')"


def _from_folder(
    path: Path, shape: tuple[int, int, int], resize: Resize, choice: SeedChoice
) -> Seeds:
    files, ids = chosen_files(path, SUFFIXES, choice)
    if not files:
        raise UserError(f"seeds {path}: the folder has no image files ({', '.join(SUFFIXES)})")
    images = []
    for file in files:
        image = _decode(file, shape[2])
        if image.shape != shape:
            _refuse_misfit(str(file), image.shape, shape, resize)
            image = resized(image, *shape[:2], resize)
        images.append(image)
    return Seeds(np.stack(images), None, tuple(file.name for file in files), ids=ids)


def image_files(path: Path) -> list[Path]:
    """Return a file itself, or the image files of a folder, sorted by name."""
    return seed_files(path, SUFFIXES)


def _decode(file: Path, channels: int) -> NDArray[np.uint8]:
    """Return a file's image (H, W, channels): gray, RGB, or RGBA.

    RGBA is opaque unless the file is an 8-bit RGBA image.
    """
    encoded = np.frombuffer(_content(file), np.uint8)
    if channels == 1:
        return _imdecode(file, encoded, cv2.IMREAD_GRAYSCALE)[..., None]
    if channels == 4:
        image = _imdecode(file, encoded, cv2.IMREAD_UNCHANGED)
        if image.dtype == np.uint8 and image.shape[2:] == (4,):
            return image[..., [2, 1, 0, 3]]
    image = _imdecode(file, encoded, cv2.IMREAD_COLOR)[..., ::-1]
    if channels == 3:
        return image
    return np.dstack([image, np.full(image.shape[:2], 255, np.uint8)])


def _content(file: Path) -> bytes:
    try:
        return read_regular(file, _MOST_BYTES)
    except OSError as error:
        raise UserError(f"seeds: {file} cannot be read: {error.strerror or error}") from error


def _imdecode(file: Path, encoded: NDArray[np.uint8], mode: int) -> NDArray[np.uint8]:
    try:
        image = decode_image(encoded, mode)
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
