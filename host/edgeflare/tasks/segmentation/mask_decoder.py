"""The decoder of a class for each pixel."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from edgeflare.core.answer import Answer, Failure
from edgeflare.core.answer_view import SegmentationView
from edgeflare.core.task import Decoder
from edgeflare.core.tensor import RawBatch, Tensor
from edgeflare.tasks.clip_frames import ClipFrames
from edgeflare.tasks.output_choice import one_frame
from edgeflare.tasks.output_values import (
    output_values,
    row_fields,
    row_from_json,
    tensor_from_json,
    tie_width,
)
from edgeflare.tasks.segmentation.mask_answer import MaskAnswer, MaskRule, is_tied
from edgeflare.tasks.segmentation.mask_overlap import Mask
from edgeflare.tasks.segmentation.mask_runs import runs_to_show

Pixels = Literal["scores", "classes"]
"""What an output holds of each pixel: a score for each class or a single one, or a class."""

MOST_CLASSES = 256

MOST_DESCRIBED = 3
"""Classes of a mask that are named, those with the most pixels."""

_NOTHING = np.empty(0)

_LEAST_MARGIN = np.finfo(np.float16).smallest_subnormal
_MOST_MARGIN = np.finfo(np.float16).max


class MaskDecoder(Decoder):
    """Reads a class for each pixel.

    Attributes:
        classes: how many the model knows; 256 where it gives classes alone.
        rows: of a mask.
        columns: of a mask.

    """

    choices = 0
    shows_seeds = True
    compresses = True
    answer_noun = "mask"

    def __init__(
        self,
        outputs: tuple[Tensor, ...],
        at: int,
        pixels: Pixels,
        threshold: float,
        rule: MaskRule,
        frames: ClipFrames,
    ) -> None:
        """Make a decoder.

        Args:
            outputs: all tensors of a row.
            at: the position of the one that is read.
            pixels: what it holds.
            threshold: of a single score: a pixel above it is of class 1.
            rule: when two masks deviate.
            frames: of a clip; the last one counts.

        """
        self.outputs, self.tensor = outputs, outputs[at]
        shape = one_frame(self.tensor, frames.count).shape
        self.rows, self.columns = shape[1:3]
        self._scores = shape[3] if len(shape) == 4 else 1
        self.pixels = pixels
        self.classes = MOST_CLASSES if pixels == "classes" else max(2, self._scores)
        self.meaning = "classes of pixels" if pixels == "classes" else "scores of pixels"
        self._at, self._frames = at, frames
        self._threshold, self._rule = threshold, rule
        self._nearly = tie_width(self.tensor)

    def read(self, batch: RawBatch) -> Iterator[Answer]:
        """Yield the mask of each row."""
        values = output_values(batch, self.outputs, self._at)
        shape = self.rows, self.columns, self._scores
        for at, real in enumerate(self._frames.values(values.real)):
            yield self._answer(real.reshape(shape), values.failures.get(at))

    def views(
        self, answers: Mapping[str, Answer], compared: tuple[str, str]
    ) -> tuple[SegmentationView, ...]:
        """Return the masks, and how far those of the compared arms are apart."""
        given = {arm: one for arm, one in answers.items() if isinstance(one, MaskAnswer)}
        known = {arm: one for arm, one in given.items() if one.failure is None}
        rows, columns, runs = runs_to_show(
            (self.rows, self.columns), {arm: one.mask for arm, one in known.items()}
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
            least_iou=self._rule.overlap,
            region=region,
            least_region=self._rule.region or None,
        )
        return (view,)

    def describe_answer(self, answer: Answer, classes: Sequence[str] = ()) -> str:
        """Return the shares of the classes with the most pixels, such as "person 34 %"."""
        if not isinstance(answer, MaskAnswer) or answer.failure is not None:
            return super().describe_answer(answer, classes)
        counts = np.bincount(answer.mask.ravel())
        most = np.argsort(-counts, kind="stable")[:MOST_DESCRIBED].tolist()
        return ", ".join(
            f"{classes[one] if one < len(classes) else f'class {one}'} "
            f"{counts[one] / answer.mask.size:.0%}".replace("%", " %")
            for one in most
            if counts[one]
        )

    def to_json(self) -> dict[str, Any]:
        """Return the tensors, how they are read, and when two masks deviate."""
        return {
            "tensor": asdict(self.tensor),
            "at": self._at,
            "pixels": self.pixels,
            "threshold": self._threshold,
            "mask": asdict(self._rule),
            **row_fields(self.outputs),
            **self._frames.to_json(),
        }

    @classmethod
    def from_json(cls, fields: Mapping[str, Any]) -> MaskDecoder:
        """Return the decoder that `to_json` described."""
        return cls(
            row_from_json(fields) or (tensor_from_json(fields["tensor"]),),
            fields["at"],
            fields["pixels"],
            fields["threshold"],
            MaskRule(**fields["mask"]),
            ClipFrames.from_json(fields),
        )

    def _answer(self, real: NDArray[np.float64], failure: Failure | None) -> MaskAnswer:
        mask, margins = self._classified(real)
        if mask is None:
            failure = failure or "invalid-output"
            mask = np.zeros(real.shape[:2], np.uint8)
        return MaskAnswer(
            None if failure else 0,
            not failure and is_tied(mask, margins, self._rule),
            _NOTHING,
            _NOTHING,
            failure,
            mask=mask,
            margins=margins,
            classes=self.classes,
            rule=self._rule,
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
        if self._scores == 1:
            beyond = real[..., 0] - self._threshold
            margins = np.abs(beyond)
            margins[margins <= self._nearly] = 0.0
            return ((beyond > 0.0) & (margins > 0.0)).astype(np.uint8), _kept(margins)
        mask = real.argmax(axis=2)[..., None]
        best = np.take_along_axis(real, mask, axis=2)[..., 0]
        others = real.copy()
        np.put_along_axis(others, mask, -np.inf, axis=2)
        return mask[..., 0].astype(np.uint8), _kept(best - others.max(axis=2))


def _kept(margins: NDArray[np.float64]) -> NDArray[np.float16]:
    """Return margins in half precision; only those that are 0 become 0."""
    clipped = np.where(margins > 0.0, np.clip(margins, _LEAST_MARGIN, _MOST_MARGIN), 0.0)
    return clipped.astype(np.float16)
