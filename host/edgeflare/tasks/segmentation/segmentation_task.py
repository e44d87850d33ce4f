"""A class for each pixel: persons before their background, roads, organs."""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite
from operator import eq
from typing import Literal, get_args

from edgeflare.core.answer import Answer
from edgeflare.core.task import LEAST_SEEDS, Decoder, ModelOutputs, Task
from edgeflare.core.tensor import Layout, Tensor
from edgeflare.errors import UserError
from edgeflare.tasks.frame_pooling import ClipFrames
from edgeflare.tasks.output_choice import chosen_output, is_numeric, one_frame
from edgeflare.tasks.segmentation.mask_answer import MaskAnswer, MaskRule
from edgeflare.tasks.segmentation.mask_decoder import (
    MOST_CLASSES,
    MaskDecoder,
    Pixels,
    mask_size,
)

_DEFAULT_THRESHOLD = 0.5


class Segmentation(Task):
    """A class for each pixel; two models deviate where their masks overlap too little."""

    name = "segmentation"
    class_labels = False
    strategy = "climb"
    expects = (
        "scores or classes of pixels, (1, rows, columns, classes), (1, classes, rows, columns) or"
        " (1, rows, columns)"
    )
    decoders = (MaskDecoder,)

    def __init__(
        self,
        *,
        output: str = "",
        pixels: Literal["auto", "scores", "classes"] = "auto",
        threshold: float | None = None,
        overlap: float = 0.9,
        region: int = 0,
        layout: Layout | None = None,
    ) -> None:
        """Make the task.

        Args:
            output: the output that is read; see `chosen_output`.
            pixels: what it holds of each pixel: "scores", one for each class or a single one; or
                "classes", numbered from 0. "auto" takes whole numbers without quantization for
                classes, and all else for scores.
            threshold: threshold of a single score: pixels above it are of class 1, all others of
                class 0; .5 where it is not given.
            overlap: the least mean IoU of two masks that is no deviation, over the classes that
                either has; 0 where it does not count.
            region: pixels of a connected region that differs from which on it is a deviation; 0
                where regions do not count. Pixels that touch by a corner are connected.
            layout: whether the scores of a pixel come last or first, where the shape may be either;
                None where the pictures that the model takes say it.

        """
        if pixels not in ("auto", "scores", "classes"):
            raise UserError(f"pixels is {pixels!r}; expected 'auto', 'scores' or 'classes'")
        if layout not in (None, *get_args(Layout)):
            raise UserError(f"layout is {layout!r}; expected 'NHWC' or 'NCHW'")
        if threshold is not None and not isfinite(threshold):
            raise UserError(f"threshold is {threshold}; expected a finite number")
        if not 0.0 <= overlap <= 1.0:
            raise UserError(f"overlap is {overlap}; expected a mean IoU from 0 to 1, such as 0.9")
        if region < 0:
            raise UserError(f"region is {region}; expected a number of pixels, or 0 for none")
        if not overlap and not region:
            raise UserError("overlap and region are both 0, so no masks deviate: give one of them")
        self._output, self._pixels, self._threshold = output, pixels, threshold
        self._rule, self._layout = MaskRule(float(overlap), region), layout

    @classmethod
    def fits(cls, tensor: Tensor) -> bool:
        """Whether an output has at least 2 x 2 pixels, and at most 256 scores for each."""
        return is_numeric(tensor) and bool(_readings(tensor))

    def decoder(self, model: ModelOutputs) -> MaskDecoder:
        """Return the decoder of the only output that fits, or the one that is named."""
        at = chosen_output(type(self), model, self._output)
        tensor = one_frame(model.outputs[at], model.frames)
        layout = _layout(model, tensor, self._layout)
        rows, columns, scores = mask_size(tensor.shape, layout)
        pixels = self._meaning(model, tensor, scores)
        if self._rule.region > rows * columns:
            raise UserError(
                f"{model.name}: region is {self._rule.region}, but a mask has {rows} x {columns} = "
                f"{rows * columns} pixels: give fewer"
            )
        threshold = _DEFAULT_THRESHOLD if self._threshold is None else float(self._threshold)
        if pixels == "scores" and scores == 1:
            _require_range(model.name, tensor, threshold)
        frames = ClipFrames.of_model(model.frames, "last", 0, model.name)
        return MaskDecoder(model.outputs, at, pixels, threshold, self._rule, frames, layout)

    def require_pair(
        self, original: Decoder | None, compressed: Decoder, classes: Sequence[str]
    ) -> None:
        """Refuse masks of other sizes or classes, and names that do not fit the classes."""
        assert isinstance(compressed, MaskDecoder)  # noqa: S101 - both are of this task
        if classes and compressed.pixels == "scores" and len(classes) != compressed.classes:
            raise UserError(
                f"classes has {len(classes)} names, but the compressed model tells "
                f"{compressed.classes} classes apart: give one name for each, in the order of its "
                "scores; of a single score, first that of the pixels below the threshold"
            )
        if original is None:
            return
        assert isinstance(original, MaskDecoder)  # noqa: S101 - both are of this task
        sizes = [decoder.size for decoder in (original, compressed)]
        if sizes[0][:2] != sizes[1][:2]:
            raise UserError(
                f"the original gives masks of {sizes[0][0]} x {sizes[0][1]} pixels and the "
                f"compressed model of {sizes[1][0]} x {sizes[1][1]}: they are no pair, or output "
                "names another output of each; write its shape"
            )
        known = "classes" not in (original.pixels, compressed.pixels)
        if known and original.classes != compressed.classes:
            raise UserError(
                f"the original tells {original.classes} classes apart and the compressed model "
                f"{compressed.classes}: they are no pair"
            )

    def model_warnings(self, name: str, answers: Sequence[Answer]) -> list[str]:
        """Return a line where a model gives all pixels of at least 8 seeds one class."""
        masks = [
            answer.mask
            for answer in answers
            if isinstance(answer, MaskAnswer) and answer.failure is None
        ]
        found = {int(end) for mask in masks for end in (mask.min(), mask.max())}
        if len(answers) < LEAST_SEEDS or len(found) != 1:
            return []
        return [
            f"{name} gives every pixel of all {len(answers)} seeds the class {found.pop()}: check "
            "the threshold, and the preprocessing"
        ]

    def _meaning(self, model: ModelOutputs, tensor: Tensor, scores: int) -> Pixels:
        """Return what an output holds of each pixel, of which it has so many numbers."""
        several = scores > 1
        whole = not tensor.dtype.startswith("float") and not tensor.scale
        pixels: Pixels = "classes" if whole and not several else "scores"
        if self._pixels != "auto":
            pixels = self._pixels
        if pixels == "classes" and several:
            raise UserError(
                f"{model.name}: pixels is 'classes', but output {tensor.name!r} {tensor.shape} has "
                f'{scores} numbers for each pixel: write pixels = "scores"'
            )
        if self._threshold is not None and (pixels == "classes" or several):
            raise UserError(
                f"{model.name}: threshold is given, but output {tensor.name!r} {tensor.shape} has "
                f"{'classes' if pixels == 'classes' else 'a score for each class'}: remove the key "
                "threshold"
            )
        return pixels


def _readings(tensor: Tensor) -> list[Layout]:
    """Return in which layouts an output is a mask."""
    shape = tensor.shape
    if len(shape) not in (3, 4) or shape[0] != 1:
        return []
    known: tuple[Layout, ...] = get_args(Layout) if len(shape) == 4 else ("NHWC",)
    sizes = {layout: mask_size(shape, layout) for layout in known}
    return [
        layout
        for layout, (rows, columns, scores) in sizes.items()
        if min(rows, columns) > 1 and scores <= MOST_CLASSES
    ]


def _layout(model: ModelOutputs, tensor: Tensor, said: Layout | None) -> Layout:
    """Return the layout of a mask.

    It is the only one that the output may have, the one that is said, or that in which a mask is as
    large as a picture that the model takes, or has its ratio of height and width up to a pixel.
    """
    known = _readings(tensor)
    if len(known) > 1 and said is not None:
        return said
    for alike in (eq, _of_one_ratio):
        found = [
            layout
            for layout in known
            if any(alike(mask_size(tensor.shape, layout)[:2], size) for size in model.picture_sizes)
        ]
        known = found or known
    if len(known) > 1:
        _, first, second, third = tensor.shape
        raise UserError(
            f"{model.name}: output {tensor.name!r} {tensor.shape} may be {first} x {second} pixels"
            f" with {third} scores each, or {second} x {third} with {first}, and the model's inputs"
            ' do not say which: write layout = "NHWC" for the former, layout = "NCHW" for the'
            " latter, under [task]"
        )
    return known[0]


def _of_one_ratio(mask: tuple[int, ...], picture: tuple[int, ...]) -> bool:
    """Whether a mask has the ratio of a picture's height and width, up to a pixel."""
    return abs(mask[0] * picture[1] - mask[1] * picture[0]) <= max(picture)


def _require_range(name: str, tensor: Tensor, threshold: float) -> None:
    """Refuse a threshold that a quantized score can never exceed, or always does."""
    if tensor.range is None:
        return
    least, most = tensor.range
    if not least <= threshold < most:
        raise UserError(
            f"{name}: threshold is {threshold:g}, but output {tensor.name!r} gives {least:g} to "
            f"{most:g}: give a threshold between them"
        )
