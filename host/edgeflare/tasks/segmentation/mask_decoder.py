"""The decoder of a class for each pixel."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import Literal, TypeVar

import numpy as np
from numpy.typing import NDArray

from edgeflare.core.answer import NO_VALUES, Answer, Failure
from edgeflare.core.task import Decoder, target_name
from edgeflare.core.tensor import Layout, RawBatch, Tensor, pack_rows, unpack_rows
from edgeflare.errors import UserError
from edgeflare.pages.answers.masks import SegmentationView
from edgeflare.tasks.frame_pooling import ClipFrames
from edgeflare.tasks.output_choice import one_frame, output_values, tie_width
from edgeflare.tasks.segmentation.mask_answer import Mask, MaskAnswer, MaskRule, is_tied

_SHOWN_SIZES = (128, 96, 64, 48, 32, 16)
"""Rows and columns of a mask at most, as it is shown."""

MOST_RUNS = 600
"""Runs of all masks of an input together, above which fewer pixels are shown: a finding has those
of its seed too, and its JSON is to stay under 10 KB."""

Pixels = Literal["scores", "classes"]
"""What an output holds of each pixel: a score for each class or a single one, or a class."""

_Scores = TypeVar("_Scores", bound=np.generic)

MOST_CLASSES = 256

MOST_DESCRIBED = 3
"""Classes of a mask that are named, those with the most pixels."""

_LEAST_MARGIN = np.finfo(np.float16).smallest_subnormal
_MOST_MARGIN = np.finfo(np.float16).max


@dataclass(frozen=True)
class MaskDecoder(Decoder):
    """Reads a class for each pixel.

    Attributes:
        pixels: what the output holds.
        threshold: threshold of a single score: a pixel above it is of class 1.
        rule: when two masks deviate.
        frames: frames of a clip; the last one counts.
        layout: where the scores of a pixel stand: last, or first.

    """

    choices = 0
    shows_seeds = True
    compresses = True
    answer_noun = "mask"

    outputs: tuple[Tensor, ...]
    at: int
    pixels: Pixels
    threshold: float
    rule: MaskRule
    frames: ClipFrames
    layout: Layout = "NHWC"

    @property
    def meaning(self) -> str:
        """What the output holds."""
        return f"{self.pixels} of pixels"

    @cached_property
    def size(self) -> tuple[int, int, int]:
        """Rows and columns of a mask, and how many scores there are for each pixel."""
        return mask_size(one_frame(self.tensor, self.frames.count).shape, self.layout)

    @property
    def classes(self) -> int:
        """How many the model knows; 256 where it gives classes alone."""
        return MOST_CLASSES if self.pixels == "classes" else max(2, self.size[2])

    def read(self, batch: RawBatch) -> Iterator[Answer]:
        """Yield the mask of each row."""
        values = output_values(batch, self.outputs, self.at)
        for at, real in enumerate(self.frames.values(values.real)):
            (mask,) = self._scores_last(real)
            yield self._answer(mask, values.failures.get(at))

    def reduced(self, row: NDArray[np.generic]) -> NDArray[np.generic]:
        """Return a row in which all but the best score of a pixel are its second best, unless tied.

        With 21 classes in float32 it is compressed in a fifth of the time to a ninth of the room.
        """
        arrays = list(unpack_rows(self.outputs, row[None]))
        read = arrays[self.at]
        if self.pixels == "classes" or self.size[2] <= 2 or not np.isfinite(read).all():
            return row
        whole = self._scores_last(read)
        scores = whole.reshape(-1, self.size[2])
        best = scores.argmax(axis=1)[:, None]
        largest = np.take_along_axis(scores, best, axis=1)
        others = scores.copy()
        np.put_along_axis(others, best, scores.min(), axis=1)
        second = others.max(axis=1, keepdims=True)
        # Of equal scores the first counts, so these stay where they are.
        kept = np.where(second < largest, second, scores)
        np.put_along_axis(kept, best, largest, axis=1)
        kept = kept.reshape(whole.shape)
        held = kept if self.layout == "NHWC" else np.moveaxis(kept, -1, 1)
        arrays[self.at] = held.reshape(read.shape)
        (reduced,) = pack_rows(self.outputs, arrays)
        return np.asarray(reduced)

    def target(self, target: NDArray[np.generic]) -> MaskAnswer | None:
        """Return the mask of a target; None where no pixel of it has a class.

        Args:
            target: (rows, columns) whole numbers; those that are no class are not known.

        """
        rows, columns, _ = self.size
        shape = rows, columns
        if target.dtype.kind not in "iub" or target.squeeze().shape != shape:
            raise UserError(
                f"{target_name(target)}, expected a class for each of {rows} x {columns}"
                " pixels: whole numbers, of which those that are no class are left out"
            )
        classes = target.reshape(shape).astype(np.int64)
        known = (classes >= 0) & (classes < self.classes)
        if not known.any():
            return None
        return MaskAnswer(
            0,
            False,
            NO_VALUES,
            NO_VALUES,
            mask=np.where(known, classes, 0).astype(np.uint8),
            margins=np.ones(shape, np.float16),
            classes=self.classes,
            rule=self.rule,
            known=None if known.all() else known,
        )

    def views(
        self, answers: Mapping[str, Answer], compared: tuple[str, str]
    ) -> tuple[SegmentationView, ...]:
        """Return the masks, and how far those of the compared arms are apart."""
        given = {arm: answer for arm, answer in answers.items() if isinstance(answer, MaskAnswer)}
        known = {arm: answer for arm, answer in given.items() if answer.failure is None}
        rows, columns, runs = runs_to_show(
            self.size[:2], {arm: answer.mask for arm, answer in known.items()}
        )
        mean_iou, region = None, None
        if all(arm in known for arm in compared):
            first, second = (known[arm] for arm in compared)
            mean_iou = round(first.measured(second), 9)
            region = first.region_size(second)
        view = SegmentationView(
            head="",
            classes=(),
            rows=rows,
            columns=columns,
            masks={arm: runs.get(arm) for arm in given},
            mean_iou=mean_iou,
            least_iou=self.rule.overlap,
            region=region,
            least_region=self.rule.region or None,
        )
        return (view,)

    def describe_answer(self, answer: Answer, classes: Sequence[str] = ()) -> str:
        """Return the shares of the classes with the most pixels, such as "person 34 %"."""
        if not isinstance(answer, MaskAnswer) or answer.failure is not None:
            return super().describe_answer(answer, classes)
        counts = np.bincount(answer.mask.ravel())
        most = np.argsort(-counts, kind="stable")[:MOST_DESCRIBED].tolist()
        return ", ".join(
            f"{classes[class_] if class_ < len(classes) else f'class {class_}'} "
            f"{counts[class_] / answer.mask.size:.0%}".replace("%", " %")
            for class_ in most
            if counts[class_]
        )

    def _scores_last(self, held: NDArray[_Scores]) -> NDArray[_Scores]:
        """Return masks as the output holds them as (masks, rows, columns, scores)."""
        rows, columns, scores = self.size
        if self.layout == "NHWC":
            return held.reshape(-1, rows, columns, scores)
        first = held.reshape(-1, scores, rows, columns)
        return np.ascontiguousarray(np.moveaxis(first, 1, -1))

    def _answer(self, real: NDArray[np.float64], failure: Failure | None) -> MaskAnswer:
        mask, margins = self._classified(real)
        if mask is None:
            failure = failure or "invalid-output"
            mask = np.zeros(real.shape[:2], np.uint8)
        return MaskAnswer(
            None if failure else 0,
            not failure and is_tied(mask, margins, self.rule),
            NO_VALUES,
            NO_VALUES,
            failure,
            mask=mask,
            margins=margins,
            classes=self.classes,
            rule=self.rule,
        )

    def _classified(self, real: NDArray[np.float64]) -> tuple[Mask | None, NDArray[np.float16]]:
        """Return the class and the margin of each pixel; no classes where they are none.

        Args:
            real: (rows, columns, scores).

        """
        if self.pixels == "classes":
            classes = real[..., 0]
            valid = (classes >= 0.0) & (classes < MOST_CLASSES) & (classes == np.floor(classes))
            mask = classes.astype(np.uint8) if valid.all() else None
            return mask, np.ones(classes.shape, np.float16)
        if self.size[2] == 1:
            beyond = real[..., 0] - self.threshold
            margins = np.abs(beyond)
            margins[margins <= tie_width(self.tensor)] = 0.0
            return ((beyond > 0.0) & (margins > 0.0)).astype(np.uint8), _kept(margins)
        mask = real.argmax(axis=2)[..., None]
        best = np.take_along_axis(real, mask, axis=2)[..., 0]
        others = real.copy()
        np.put_along_axis(others, mask, -np.inf, axis=2)
        return mask[..., 0].astype(np.uint8), _kept(best - others.max(axis=2))


def mask_size(shape: tuple[int, ...], layout: Layout) -> tuple[int, int, int]:
    """Return rows, columns and scores of a mask.

    Args:
        shape: (1, rows, columns), or with the scores behind the columns or before the rows.
        layout: says which.

    """
    if len(shape) == 3:
        return shape[1], shape[2], 1
    _, first, second, third = shape
    return (first, second, third) if layout == "NHWC" else (second, third, first)


def _kept(margins: NDArray[np.float64]) -> NDArray[np.float16]:
    """Return margins in half precision; only those that are 0 become 0."""
    clipped = np.where(margins > 0.0, np.clip(margins, _LEAST_MARGIN, _MOST_MARGIN), 0.0)
    return clipped.astype(np.float16)


def runs_to_show(
    shape: tuple[int, int], masks: Mapping[str, Mask]
) -> tuple[int, int, dict[str, str]]:
    """Return the size of masks as they are shown, and their runs.

    Of each square of pixels the nearest to its centre is shown.

    Args:
        shape: rows and columns of each mask.
        masks: masks by arm.

    Returns:
        Rows, columns, and by arm the runs, separated by spaces.

    """
    for most in _SHOWN_SIZES:
        scale = min(1.0, most / max(shape))
        rows, columns = (max(1, round(size * scale)) for size in shape)
        places = (
            ((np.arange(count) + 0.5) * size / count).astype(np.int64)
            for size, count in zip(shape, (rows, columns), strict=True)
        )
        centres = np.ix_(*places)
        runs = {arm: mask_runs(mask[centres]) for arm, mask in masks.items()}
        if sum(map(len, runs.values())) <= 2 * MOST_RUNS:
            break
    return rows, columns, {arm: " ".join(map(str, numbers)) for arm, numbers in runs.items()}


def mask_runs(mask: Mask) -> tuple[int, ...]:
    """Return a mask in runs: a class, how many pixels have it, the next class, and so on."""
    pixels = mask.ravel()
    starts = np.flatnonzero(np.concatenate(([True], pixels[1:] != pixels[:-1])))
    lengths = np.diff(np.append(starts, pixels.size))
    return tuple(chain.from_iterable(zip(pixels[starts].tolist(), lengths.tolist(), strict=True)))
