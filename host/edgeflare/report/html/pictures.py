"""The pictures of a finding on images, small enough to lie in the page itself.

What a picture may weigh is shared out over all of them, so that a page with a thousand findings
stays within what a browser opens at once. Small inputs are kept to the pixel; larger ones are shown
smaller, or with the losses of WebP. The exact files are those in the run directory.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import cv2
import numpy as np

from edgeflare.core.views import ImageView
from edgeflare.pages.answers.answer_form import SIDE, DrawnBox, DrawnPoint
from edgeflare.report.html.input_views import StoredView
from edgeflare_operators.operator_registry import Image

GAINS = (64, 32, 16, 8, 4, 2, 1, 0.5)
"""What a difference may be multiplied by."""

QUALITIES = (95, 85, 70, 50, 30)

_QUICK = 3
"""Compression of a PNG that takes an eighth of the time of the best one, and is 4 % larger."""

_BEYOND = 3
"""Times the allowance of a quick PNG beyond which no exact form fits, and none is made.

The smallest one of a photograph is two thirds of it. To make it takes 70 ms, of 80 for a picture.
"""


@dataclass(frozen=True, slots=True)
class Picture:
    """An image to show.

    Attributes:
        what: role of the picture: "seed", "trigger", "difference", "before", "input".
        uri: the picture as a `data:` address, or None if its file is gone or damaged.
        width: width of the image itself, in pixels.
        height: height of the image itself, in pixels.
        gain: what a difference was multiplied by, else None.
        boxes: boxes around the objects that the arms detected in it.
        points: points that the arms see in it.

    """

    kind: ClassVar[str] = "picture"
    what: str
    uri: str | None
    width: int = 0
    height: int = 0
    gain: float | None = None
    boxes: tuple[DrawnBox, ...] = ()
    points: tuple[DrawnPoint, ...] = ()


def pictures_of(stored: Sequence[StoredView], most: int) -> tuple[Picture, ...]:
    """Return the pictures of an entry's images, and of what changed from its seed to its trigger.

    No picture weighs more than `most` bytes, unless even the smallest does.
    """
    images = [
        (view.what, view.view.pixels if isinstance(view.view, ImageView) else None)
        for view in stored
    ]
    shown = [
        Picture(what, None) if image is None else picture(what, image, most)
        for what, image in images
    ]
    (_, seed), (_, trigger) = images[0], images[-1]
    if len(images) > 1 and seed is not None and trigger is not None and seed.shape == trigger.shape:
        image, gain = difference(seed, trigger)
        shown.append(picture("difference", image, most, gain))
    return tuple(shown)


def picture(what: str, image: Image, most: int, gain: float | None = None) -> Picture:
    """Return an image to show; see `Picture`.

    Args:
        what: role of the picture among a finding's.
        image: (rows, columns, channels), uint8.
        most: the bytes that it may weigh.
        gain: what a difference was multiplied by.

    """
    height, width = image.shape[:2]
    return Picture(what, image_uri(image, most), width, height, gain)


def image_uri(image: Image, most: int) -> str:
    """Return an image as a `data:` address, in the best form of at most so many bytes."""
    kind, data = _encoded(image, most)
    return f"data:image/{kind};base64,{b64encode(data).decode()}"


def difference(seed: Image, trigger: Image) -> tuple[Image, float]:
    """Return what changed, magnified, and by how much.

    Mid-gray is a pixel that did not change, lighter one that rose, darker one that fell. An alpha
    channel is left out. The gain is the largest of `GAINS` at which nothing is cut off.

    Args:
        seed: HWC uint8.
        trigger: likewise.

    """
    colours = 3 if seed.shape[2] == 4 else seed.shape[2]
    change = trigger[:, :, :colours].astype(np.int16) - seed[:, :, :colours]
    largest = int(np.abs(change).max())
    gain = next((gain for gain in GAINS if gain * largest <= 127.5), GAINS[-1])
    return np.clip(np.rint(128 + gain * change), 0, 255).astype(np.uint8), gain


def _encoded(image: Image, most: int) -> tuple[str, bytes]:
    """Return the best form of an image that is within the allowance, and its name."""
    image = _within(image, SIDE)
    # OpenCV writes the first channel as blue.
    order = {1: [0], 3: [2, 1, 0], 4: [2, 1, 0, 3]}[image.shape[2]]
    image = np.ascontiguousarray(image[:, :, order])
    if len(_png(image, _QUICK)) <= _BEYOND * most:
        exact = min(
            ("png", _png(image, 9)), ("webp", _webp(image, 101)), key=lambda form: len(form[1])
        )
        if len(exact[1]) <= most:
            return exact
    while True:
        best = _best_quality(image, most)
        if best is not None:
            return "webp", best
        if max(image.shape[:2]) <= 32:
            return "webp", _webp(image, QUALITIES[-1])
        image = _within(image, max(image.shape[:2]) * 3 // 4)


def _best_quality(image: Image, most: int) -> bytes | None:
    """Return an image in the highest quality that is within the allowance; None if none is.

    Sizes fall with the quality, so three of the five are tried at most.
    """
    best, low, high = None, 0, len(QUALITIES)
    while low < high:
        middle = (low + high) // 2
        data = _webp(image, QUALITIES[middle])
        if len(data) <= most:
            best, high = data, middle
        else:
            low = middle + 1
    return best


def _within(image: Image, side: int) -> Image:
    """Shrink an image whose longer side is too long."""
    height, width = image.shape[:2]
    scale = side / max(height, width)
    if scale >= 1:
        return image
    size = (max(1, round(width * scale)), max(1, round(height * scale)))
    shrunk = np.asarray(cv2.resize(image, size, interpolation=cv2.INTER_AREA), np.uint8)
    return shrunk if shrunk.ndim == 3 else shrunk[:, :, np.newaxis]


def _png(image: Image, compression: int) -> bytes:
    return cv2.imencode(".png", image, [cv2.IMWRITE_PNG_COMPRESSION, compression])[1].tobytes()


def _webp(image: Image, quality: int) -> bytes:
    """Encode as WebP; a quality above 100 is without loss."""
    if image.shape[2] == 1:
        image = np.asarray(cv2.cvtColor(image, cv2.COLOR_GRAY2BGR), np.uint8)
    return cv2.imencode(".webp", image, [cv2.IMWRITE_WEBP_QUALITY, quality])[1].tobytes()
