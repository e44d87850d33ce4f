"""The masks of the arms upon the picture, and the pixels in which the compared arms differ."""

from __future__ import annotations

from base64 import b64encode
from colorsys import hls_to_rgb
from dataclasses import dataclass
from typing import ClassVar

import cv2
import numpy as np
from numpy.typing import NDArray

from edgeflare.core.answer_view import SegmentationView
from edgeflare.report.entry_names import ARMS, class_name
from edgeflare.report.html.answered_input import AnsweredInput
from edgeflare.report.html.pictures import SIDE
from edgeflare.report.structured_answers import class_shares, in_words, masks_apart
from edgeflare.run.run_document import Finding

OPACITY = 150
"""Of a class upon the picture, of 255."""

DIFFERENT = (208, 0, 111, 255)
"""RGBA of a pixel in which the compared arms differ."""

NAMED = 8
"""Classes that a legend names."""

SMALLEST = 16
"""Pixels of the longer side below which no mask is shrunk."""

Labels = NDArray[np.int64]
"""A class for each pixel, (rows, columns)."""


@dataclass(frozen=True, slots=True)
class MaskPanel:
    """A mask upon the picture: whose it is, as a `data:` address, and what it shows in words."""

    name: str
    uri: str
    words: str


@dataclass(frozen=True, slots=True)
class MaskGroup:
    """The masks of the arms.

    Attributes:
        head: of the model; empty where it has only one.
        what: the input that they are of, "seed" or "trigger".
        words: how far the compared arms are apart.
        picture: the input as a `data:` address; None where it cannot be shown.
        width: of what is shown, in pixels of the picture, or of the mask without one.
        height: likewise.
        panels: a mask for each arm that answered, then the difference of the compared ones.
        legend: the classes that are coloured, each with its colour, the largest first.

    """

    kind: ClassVar[str] = "masks"
    head: str
    what: str
    words: str
    picture: str | None
    width: int
    height: int
    panels: tuple[MaskPanel, ...]
    legend: tuple[tuple[str, str], ...]


def mask_group(view: SegmentationView, answered: AnsweredInput) -> MaskGroup:
    """Return the masks of the arms upon the input; class 0 is left transparent.

    Args:
        view: of the answers.
        answered: the input.

    """
    runs = {arm: one for arm in ARMS if (one := view.masks.get(arm)) is not None}
    masks = {arm: _labels(one, view.rows, view.columns) for arm, one in runs.items()}
    panels = [
        MaskPanel(arm, _uri(_coloured(mask), answered.most), in_words(view, arm))
        for arm, mask in masks.items()
    ]
    first, second = (masks.get(arm) for arm in answered.compared)
    if first is not None and second is not None:
        differs = first != second
        words = f"{differs.mean():.2%} of the pixels"
        panels.append(MaskPanel("difference", _uri(_difference(differs), answered.most), words))
    labels = dict.fromkeys(label for one in runs.values() for label in class_shares(one) if label)
    picture = answered.picture
    return MaskGroup(
        head=view.head,
        what=answered.what,
        words=masks_apart(view, answered.compared) or "the mean IoU is not known",
        picture=None if picture is None else picture.uri,
        width=view.columns if picture is None else picture.width,
        height=view.rows if picture is None else picture.height,
        panels=tuple(panels),
        legend=tuple(
            (class_name(view.classes, label), "#{:02x}{:02x}{:02x}".format(*colour(label)))
            for label in list(labels)[:NAMED]
        ),
    )


def mask_pictures(entry: Finding) -> int:
    """Return how many pictures the masks of an entry are in a page, those below them included."""
    views = [one for views in (entry.answers, entry.seed_answers) for one in views or ()]
    return sum(2 + len(one.masks) for one in views if isinstance(one, SegmentationView))


def colour(label: int) -> tuple[int, int, int]:
    """Return the colour of a class, RGB: neighbours in number are far apart in hue."""
    hue = (label - 1) * 0.381966 % 1 + 0.58  # the golden angle, from blue on
    red, green, blue = hls_to_rgb(hue % 1, 0.5 if label % 2 else 0.38, 0.9)
    return round(255 * red), round(255 * green), round(255 * blue)


def _labels(runs: str, rows: int, columns: int) -> Labels:
    numbers = np.array(runs.split(), np.int64)
    return np.repeat(numbers[::2], numbers[1::2]).reshape(rows, columns)


def _coloured(mask: Labels) -> NDArray[np.uint8]:
    pixels = np.zeros((*mask.shape, 4), np.uint8)
    for label in np.unique(mask).tolist():
        if label:
            pixels[mask == label] = (*colour(label), OPACITY)
    return pixels


def _difference(differs: NDArray[np.bool_]) -> NDArray[np.uint8]:
    return np.asarray(differs[..., np.newaxis] * np.array(DIFFERENT, np.uint8), np.uint8)


def _uri(pixels: NDArray[np.uint8], most: int) -> str:
    """Return an RGBA picture as a PNG `data:` address, shrunk until it weighs at most `most`."""
    side = min(SIDE, max(pixels.shape[:2]))
    while True:
        data = cv2.imencode(".png", _within(pixels, side), [cv2.IMWRITE_PNG_COMPRESSION, 9])[1]
        if len(data) <= most or side <= SMALLEST:
            return f"data:image/png;base64,{b64encode(data.tobytes()).decode()}"
        side = max(SMALLEST, side * 3 // 4)


def _within(pixels: NDArray[np.uint8], side: int) -> NDArray[np.uint8]:
    """Return pixels as OpenCV writes them, the longer side at most so long; no colour is mixed."""
    height, width = pixels.shape[:2]
    scale = min(1.0, side / max(height, width))
    size = (max(1, round(width * scale)), max(1, round(height * scale)))
    shrunk = cv2.resize(pixels, size, interpolation=cv2.INTER_NEAREST)
    return np.ascontiguousarray(np.asarray(shrunk, np.uint8)[:, :, [2, 1, 0, 3]])
