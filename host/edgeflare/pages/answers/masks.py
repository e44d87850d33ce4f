"""Masks of classes, upon the picture, and the pixels in which those of the compared arms differ."""

from __future__ import annotations

from base64 import b64encode
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from colorsys import hls_to_rgb
from typing import TYPE_CHECKING, Annotated, ClassVar

import cv2
import msgspec
import numpy as np
from numpy.typing import NDArray

from edgeflare.pages.answers.answer_form import (
    ARMS,
    LARGEST_CLASS,
    SIDE,
    AnswerBlock,
    AnsweredInput,
    AnswerForm,
    AnswerWords,
    class_name,
)
from edgeflare.record.json_types import Count, CountFromOne

if TYPE_CHECKING:
    from typing_extensions import Self

OPACITY = 150
"""Opacity of a class upon the picture, of 255."""

DIFFERENT = (208, 0, 111, 255)
"""RGBA of a pixel in which the compared arms differ."""

LEGEND = 8
"""Classes that a legend names."""

NAMED = 3
"""Classes of a mask that are named in a line."""

SMALLEST = 16
"""Pixels of the longer side below which no mask is shrunk."""

Labels = NDArray[np.int64]
"""A class for each pixel, (rows, columns)."""


_Side = Annotated[int, msgspec.Meta(ge=1, le=1024)]
"""How many rows or columns a mask has as it is shown."""

_Runs = Annotated[str, msgspec.Meta(pattern=r"^([0-9]{1,10}( [0-9]{1,10})*)?(?!\n)$")]
"""A mask, row by row: a class, how many pixels in a row have it, the next class, and so on."""


class SegmentationView(AnswerForm, frozen=True, tag_field="form", tag="segmentation"):
    """The mask of each arm, and how far those of the compared arms are apart.

    Attributes:
        classes: names of the classes; empty where they are numbered.
        rows: rows of the masks as they are shown, which may have fewer than the model's.
        columns: columns of the masks, likewise.
        masks: masks by arm, row by row in runs: a class, how many pixels in a row have it, the next
            class, and so on, separated by spaces; null where the arm failed.
        mean_iou: mean IoU of the two compared arms, over the classes that either has; null where
            one failed.
        least_iou: the least that is no deviation.
        region: pixels of the largest connected region in which the two differ, at the model's own
            size; null where one failed.
        least_region: pixels of a region from which on it is a deviation; null where regions do not
            count.

    """

    task: ClassVar[str] = "segmentation"
    spoken: ClassVar[AnswerWords] = AnswerWords(
        "give masks that differ",
        strength="by how much the mean IoU falls below the least that is no deviation, or the mean"
        " margin of the region's pixels",
    )
    structured: ClassVar[bool] = True
    measures: ClassVar[bool] = True
    table_columns: ClassVar[tuple[str, ...]] = ("mean IoU", "region")
    csv_columns: ClassVar[tuple[str, ...]] = ("mean_iou", "least_iou", "region", "least_region")

    classes: tuple[str, ...]
    rows: _Side
    columns: _Side
    masks: Mapping[str, _Runs | None]
    mean_iou: float | None
    least_iou: float
    region: Count | None
    least_region: CountFromOne | None

    def wrong(self, place: str) -> Iterator[str]:
        """Yield runs that are not those of a mask, and numbers that are no class."""
        pixels = self.rows * self.columns
        for arm, mask in self.masks.items():
            if mask is None:
                continue
            runs = list(map(int, mask.split()))
            lengths = runs[1::2]
            if len(runs) % 2 or min(lengths, default=0) < 1 or sum(lengths) != pixels:
                yield f"{place}.masks.{arm} has runs that are not the {pixels:,} pixels of a mask"
            elif max(runs[::2]) > LARGEST_CLASS:
                yield f"{place}.masks.{arm} has a number that is not a class"

    def with_classes(self, classes: Sequence[str]) -> Self:
        """Return the view with the pair's names of classes, where the task has none."""
        return self if self.classes else msgspec.structs.replace(self, classes=tuple(classes))

    def decision(self, arm: str) -> str:
        """Return the share of each class of an arm's mask."""
        shares = class_shares(self.masks.get(arm) or "")
        named = [
            f"{class_name(self.classes, label)} {share:.1%}"
            for label, share in list(shares.items())[:NAMED]
        ]
        return ", ".join(named + (["…"] if len(shares) > NAMED else []))

    def apart(self, compared: tuple[str, str]) -> str | None:
        """Return mean IoU and largest region that differs, with what is a deviation."""
        if self.mean_iou is None:
            return None
        head = f" in {self.head}" if self.head else ""
        iou = f"mean IoU of {' and '.join(compared)} {self.mean_iou:.4g}{head}"
        region = f"largest region that differs {self.region or 0:,} pixels"
        least = "" if self.least_region is None else f", a deviation from {self.least_region:,} on"
        return f"{iou}, a deviation below {self.least_iou:g}; {region}{least}"

    @property
    def farness(self) -> float:
        """How much of the mean IoU is missing."""
        return 0.0 if self.mean_iou is None else 1.0 - self.mean_iou

    @property
    def title(self) -> str | None:
        """The mean IoU."""
        return None if self.mean_iou is None else f"mean IoU {self.mean_iou:.4g}"

    @property
    def tolerance_words(self) -> str:
        """The least mean IoU, and the region from which on a difference counts."""
        least = self.least_region
        region = "" if least is None else f", region from {least:,} pixels"
        return f"least mean IoU {self.least_iou:g}{region}"

    def cell(self, column: str) -> str:
        """Return the mean IoU, or the pixels of the region."""
        if column == "region":
            return "–" if self.region is None else f"{self.region:,}"
        return "–" if self.mean_iou is None else f"{self.mean_iou:.4g}"

    @property
    def pictures(self) -> int:
        """A mask for each arm, their difference, and the picture below them."""
        return 2 + len(self.masks)

    def block(self, shown: AnsweredInput) -> MaskGroup:
        """Return the masks of the arms upon the input; class 0 is left transparent."""
        runs = {arm: one for arm in ARMS if (one := self.masks.get(arm)) is not None}
        masks = {arm: _labels(run, self.rows, self.columns) for arm, run in runs.items()}
        panels = [
            MaskPanel(arm, _uri(_coloured(mask), shown.most), self.decision(arm))
            for arm, mask in masks.items()
        ]
        first, second = (masks.get(arm) for arm in shown.compared)
        if first is not None and second is not None:
            differs = first != second
            words = f"{differs.mean():.2%} of the pixels"
            pixels = differs[..., np.newaxis] * np.array(DIFFERENT, np.uint8)
            panels.append(MaskPanel("difference", _uri(pixels, shown.most), words))
        labels = dict.fromkeys(
            label for run in runs.values() for label in class_shares(run) if label
        )
        return MaskGroup(
            head=self.head,
            what=shown.what,
            words=self.apart(shown.compared) or "the mean IoU is not known",
            picture=shown.picture,
            width=self.columns if shown.picture is None else shown.width,
            height=self.rows if shown.picture is None else shown.height,
            panels=tuple(panels),
            legend=tuple(
                (class_name(self.classes, label), "#{:02x}{:02x}{:02x}".format(*colour(label)))
                for label in list(labels)[:LEGEND]
            ),
        )


def class_shares(runs: str) -> dict[int, float]:
    """Return the share of a mask's pixels that each class has, the largest first.

    Args:
        runs: runs of the mask, as in `SegmentationView`.

    """
    pixels: Counter[int] = Counter()
    numbers = list(map(int, runs.split()))
    for label, length in zip(numbers[::2], numbers[1::2], strict=True):
        pixels[label] += length
    return {label: count / pixels.total() for label, count in pixels.most_common()}


class MaskPanel(msgspec.Struct, frozen=True):
    """A mask upon the picture: whose it is, as a `data:` address, and what it shows in words."""

    name: str
    uri: str
    words: str


class MaskGroup(AnswerBlock, msgspec.Struct, frozen=True):
    """The masks of the arms.

    Attributes:
        head: output of the model; empty where it has only one.
        what: the input that they are of, "seed" or "trigger", or "input" of one as it came.
        words: how far the compared arms are apart.
        picture: the input as a `data:` address; None where it cannot be shown.
        width: width of what is shown, in pixels of the picture, or of the mask without one.
        height: height of it, likewise.
        panels: a mask for each arm that answered, then the difference of the compared ones.
        legend: the classes that are coloured, each with its colour, the largest first.

    """

    template: ClassVar[str] = "answers/masks.html.j2"
    head: str
    what: str
    words: str
    picture: str | None
    width: int
    height: int
    panels: tuple[MaskPanel, ...]
    legend: tuple[tuple[str, str], ...]


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


def _uri(pixels: NDArray[np.uint8], most: int) -> str:
    """Return an RGBA picture as a PNG `data:` address, shrunk until it weighs at most `most`."""
    height, width = pixels.shape[:2]
    side = min(SIDE, max(height, width))
    while True:
        scale = min(1.0, side / max(height, width))
        size = (max(1, round(width * scale)), max(1, round(height * scale)))
        # The nearest pixel stands for those around it, so that no colour is mixed.
        shrunk = np.asarray(cv2.resize(pixels, size, interpolation=cv2.INTER_NEAREST), np.uint8)
        bgra = np.ascontiguousarray(shrunk[:, :, [2, 1, 0, 3]])
        data = cv2.imencode(".png", bgra, [cv2.IMWRITE_PNG_COMPRESSION, 9])[1]
        if len(data) <= most or side <= SMALLEST:
            return f"data:image/png;base64,{b64encode(data.tobytes()).decode()}"
        side = max(SMALLEST, side * 3 // 4)
