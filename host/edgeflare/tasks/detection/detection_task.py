"""Objects in a picture, each with a box, a class and a score."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from math import inf, prod
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from edgeflare.core.answer import Answer
from edgeflare.core.task import LEAST_SEEDS, Decoder, ModelOutputs, Task
from edgeflare.core.tensor import Tensor
from edgeflare.errors import UserError
from edgeflare.python_callable import is_callable
from edgeflare.tasks.detection.box_decodings import (
    AnchorDecoding,
    BoxDecoding,
    ObjectDecoding,
    PostProcessDecoding,
    grid_anchors,
)
from edgeflare.tasks.detection.box_matching import require_scipy
from edgeflare.tasks.detection.detection_answer import DetectionAnswer
from edgeflare.tasks.detection.detection_decoder import DetectionDecoder
from edgeflare.tasks.detection.detections import DetectionRule
from edgeflare.tasks.output_choice import (
    is_numeric,
    listed,
    named_output,
    open_outputs,
    output_values,
)

_DECODINGS = ("anchors", "postprocess", "objects")

_SEEDS = 128
"""Seeds on which boxes are checked."""


@dataclass(kw_only=True)
class Detection(Task):
    """Objects; two models deviate where their objects cannot be matched one to one.

    Attributes:
        decoding: "anchors", "postprocess", "objects", or a Python function that makes the rows of
            "objects" of the model's outputs; see `edgeflare.tasks.detection.box_decodings`.
        threshold: the least score of an object.
        overlap: the least IoU of two objects that are the same.
        outputs: names of the regressors and the scores for "anchors"; of boxes, classes, scores and
            their number for "postprocess"; of the one output for "objects". Each as in
            `named_output`; those that fit by shape and name where it is empty.
        anchors: centre x and y of each anchor as shares of the picture, or with width and height;
            in `pair.toml` the path of a file that has them.
        cells: instead of `anchors`, the cells along an axis and the anchors in a cell, of each
            grid.
        size: what the regressors are divided by.
        scores: whether "anchors" has scores before a sigmoid or behind it.
        suppression: IoU with a better object of its class, above which "anchors" drops one.
        class_offset: leading classes of the model that are background.
        most_objects: objects that are counted at most, the best.

    """

    name: ClassVar[str] = "detection"
    class_labels: ClassVar[bool] = False
    expects: ClassVar[str] = "boxes and their scores, such as (1, n, 4) and (1, n, classes)"
    decoders: ClassVar[tuple[type[Decoder], ...]] = (DetectionDecoder,)

    decoding: str = "anchors"
    threshold: float = 0.5
    overlap: float = 0.5
    outputs: tuple[str, ...] = ()
    anchors: tuple[tuple[float, ...], ...] = ()
    cells: tuple[tuple[int, int], ...] = ()
    size: float = 1.0
    scores: Literal["logits", "probabilities"] = "logits"
    suppression: float = 0.3
    class_offset: int = 0
    most_objects: int = 100

    def __post_init__(self) -> None:
        self.post_processing = self.decoding if is_callable(self.decoding) else ""
        if self.decoding not in _DECODINGS and not self.post_processing:
            raise UserError(
                f"decoding is {self.decoding!r}; expected {', '.join(map(repr, _DECODINGS))}, or "
                "module:function"
            )
        for key in ("threshold", "overlap", "suppression"):
            if not 0.0 < getattr(self, key) < 1.0:
                raise UserError(f"{key} is {getattr(self, key)}; expected a number between 0 and 1")
        if not 0.0 < self.size < inf:
            raise UserError(f"size is {self.size}; expected a number above 0")
        for key, least in (("class_offset", 0), ("most_objects", 1)):
            if getattr(self, key) < least:
                raise UserError(f"{key} is {getattr(self, key)}; expected {least} or more")
        self._places = _anchors(self.decoding, self.anchors, self.cells)
        by_anchors = self.decoding == "anchors"
        self._logits = by_anchors and self.scores == "logits"
        self._rule = DetectionRule(
            self.threshold, self.overlap, self.suppression if by_anchors else 1.0, self.most_objects
        )
        self.processed = Tensor("objects", (1, self.most_objects, 6), "float32")

    @classmethod
    def fits(cls, tensor: Tensor) -> bool:
        """Whether an output holds boxes."""
        return is_numeric(tensor) and len(tensor.shape) == 3 and tensor.shape[-1] >= 4

    def decoder(self, model: ModelOutputs) -> DetectionDecoder:
        """Return the decoder of the outputs that hold boxes and scores."""
        require_scipy()
        if model.frames:
            raise UserError(
                f"{model.name}: the task detection reads one picture, no clip of {model.frames} "
                "frames: remove frames and [state]"
            )
        decoding = self._box_decoding(model)
        decoder = DetectionDecoder(model.outputs, decoding, self._rule, self._logits)
        if model.before is None:
            for seed, answer in enumerate(decoder.read(model.sample(_SEEDS))):
                if answer.failure == "invalid-output":
                    raise UserError(
                        f"{model.name}: seed {seed} has a box that is none (NaN, its right before"
                        " its left or its bottom above its top): check outputs, the order of"
                        " coordinates, anchors and size"
                    )
        return decoder

    def require_pair(
        self, original: Decoder | None, compressed: Decoder, classes: Sequence[str]
    ) -> None:
        """Refuse two models of which one tells more classes apart, and names that do not fit."""
        counts = [
            _scored_classes(decoder) for decoder in (original, compressed) if decoder is not None
        ]
        if all(counts) and len({*counts}) > 1:
            raise UserError(
                f"the original has scores of {counts[0]} classes and the compressed model of "
                f"{counts[1]}: they are no pair, or outputs names the wrong ones"
            )
        known = counts[-1] and counts[-1] - self.class_offset
        if classes and known and len(classes) != known:
            raise UserError(
                f"classes has {len(classes)} names, but the classes of objects that the compressed "
                f"model tells apart are {known}: give one name for each; where its first class is "
                "the background, say class_offset = 1"
            )

    def model_warnings(self, name: str, answers: Sequence[Answer]) -> list[str]:
        """Return a line for each sign that a model's outputs are not read as they are meant."""
        found = [
            answer.detected.objects
            for answer in answers
            if isinstance(answer, DetectionAnswer) and answer.failure is None
        ]
        lines = []
        if len(found) >= LEAST_SEEDS and not any(map(len, found)):
            lines.append(
                f"{name} detects no object on any of {len(found)} seeds: the search would only find"
                " appearing ones; check the threshold, and the preprocessing"
            )
        most = self.most_objects
        if len(found) >= LEAST_SEEDS and all(len(candidates) == most for candidates in found):
            lines.append(
                f"{name} detects {most} objects, the most that are counted, on all {len(found)} "
                "seeds: check the threshold and most_objects"
            )
        boxes = np.concatenate([candidates.boxes for candidates in found] or [np.empty((0, 4))])
        outside = int(((boxes[:, 2:] <= 0.0) | (boxes[:, :2] >= 1.0)).any(axis=1).sum())
        if outside:
            lines.append(
                f"{name} gives {outside} of {len(boxes)} boxes outside of the picture: check size "
                "and anchors; boxes are shares of the picture, from 0 to 1"
            )
        return lines

    def _box_decoding(self, model: ModelOutputs) -> BoxDecoding:
        if self.decoding == "anchors":
            at = _anchor_outputs(model, self.outputs, len(self._places), self.class_offset)
            anchors = tuple(map(tuple, self._places.tolist()))
            return AnchorDecoding(*at, anchors, self.size, self.class_offset)
        if self.decoding == "postprocess":
            return PostProcessDecoding(
                *_post_process_outputs(model, self.outputs), self.class_offset
            )
        return ObjectDecoding(_object_output(model, self.outputs), self.class_offset)


def _anchors(
    decoding: str, anchors: Sequence[Sequence[float]], cells: Sequence[tuple[int, int]]
) -> NDArray[np.float64]:
    if bool(anchors) == bool(cells) and decoding == "anchors":
        raise UserError(
            "the decoding 'anchors' needs one of anchors, the path of a file, and cells, such as "
            "[[16, 2], [8, 6]]"
        )
    if decoding != "anchors" and (anchors or cells):
        raise UserError(
            f"anchors or cells are given, but the decoding is {decoding!r}: remove them; under"
            " [device.task], where they are the pair's, say cells = []"
        )
    if any(side < 1 for grid in cells for side in grid):
        raise UserError(f"cells is {[list(cell) for cell in cells]}; expected numbers of 1 or more")
    if len({len(row) for row in anchors}) > 1 or any(len(row) not in (2, 4) for row in anchors):
        raise UserError("anchors has rows of other lengths; expected 2 or 4 numbers for each")
    values = grid_anchors(cells) if cells else np.array(anchors, np.float64)
    if not np.isfinite(values).all():
        raise UserError("anchors has values that are not finite; expected shares of the picture")
    return values


_POST_PROCESS = "TFLite_Detection_PostProcess"

_SEEDS_TO_TELL = 16
"""Seeds that tell classes from scores where names do not."""


def _anchor_outputs(
    model: ModelOutputs, named: Sequence[str], anchors: int, class_offset: int
) -> tuple[int, int]:
    """Return the positions of regressors (1, n, 4 or more) and scores (1, n, classes).

    Args:
        model: the model.
        named: both, as the user names them; empty to find them by shape.
        anchors: how many there are.
        class_offset: leading classes that are the background.

    """
    places = _named(model, named, "its regressors and its scores", 2)
    if not places:
        pairs = [
            (first, second)
            for first in open_outputs(model)
            for second in open_outputs(model)
            if first != second and _rows(model, first) == _rows(model, second) > 0
            if _columns(model, first) >= 4
        ]
        # Regressors of four have no more than a box; scores of four classes are seldom.
        exact = [pair for pair in pairs if _columns(model, pair[0]) == 4 or len(pairs) == 1]
        places = list(exact[0]) if len(exact) == 1 else []
    if not places:
        raise _not_found(model, "regressors (1, n, 4 or more) and scores (1, n, classes)", 2)
    for at in places:
        if _rows(model, at) != anchors:
            raise UserError(
                f"{model.name}: output {listed([model.outputs[at]])} is of {_rows(model, at)} "
                f"boxes, but there are {anchors} anchors: correct anchors or outputs"
            )
    first, second = places
    if _columns(model, first) < 4 or _columns(model, second) <= class_offset:
        raise _not_found(model, "regressors (1, n, 4 or more) and scores (1, n, classes)", 2)
    return first, second


def _post_process_outputs(model: ModelOutputs, named: Sequence[str]) -> tuple[int, int, int, int]:
    """Return the positions of boxes (1, n, 4), classes (1, n), scores (1, n) and their number.

    The operator TFLite_Detection_PostProcess has them in this order. Where something else makes
    them, classes and scores have one shape. They are told apart by their names then, and otherwise
    by what they are on the seeds: classes are whole numbers.

    Raises:
        UserError: there are none, or they cannot be told apart.

    """
    places = _named(model, named, "its boxes, classes, scores and their number", 4)
    if not places:
        places = _of_operator(model)
    if not places:
        known = open_outputs(model)
        boxes = [at for at in known if _columns(model, at) == 4]
        counts = [at for at in known if prod(model.outputs[at].shape) == 1]
        rows = [at for at in known if at not in (*boxes[:1], *counts[:1])]
        if len(boxes) == len(counts) == 1 and len(rows) == 2:
            places = [boxes[0], *_classes_first(model, rows), counts[0]]
    sizes = [prod(model.outputs[at].shape) for at in places]
    if not places or sizes != [4 * sizes[1], sizes[1], sizes[1], 1]:
        raise _not_found(
            model, "boxes (1, n, 4), classes (1, n), scores (1, n) and their number (1)", 4
        )
    boxes_at, classes, scores, count = places
    return boxes_at, classes, scores, count


def _object_output(model: ModelOutputs, named: Sequence[str]) -> int:
    """Return the position of the output (1, n, 6) of objects.

    Raises:
        UserError: there is none, or there are several.

    """
    known = _named(model, named, "the objects", 1) or open_outputs(model)
    fitting = [at for at in known if _columns(model, at) == 6 and is_numeric(model.outputs[at])]
    if len(fitting) != 1:
        raise _not_found(
            model, "objects (1, n, 6), rows of left, top, right, bottom, score and class", 1
        )
    return fitting[0]


def _scored_classes(decoder: Decoder) -> int:
    """Return how many classes scores are given for, the background among them; 0 if unknown."""
    assert isinstance(decoder, DetectionDecoder)  # noqa: S101 - it is of this task
    if not isinstance(decoder.decoding, AnchorDecoding):
        return 0
    return prod(decoder.tensor.shape) // len(decoder.decoding.anchors)


def _named(model: ModelOutputs, named: Sequence[str], what: str, count: int) -> list[int]:
    if named and len(named) != count:
        raise UserError(f"outputs names {len(named)}; expected {count}: {what}, in this order")
    return [named_output(model, name) for name in named]


def _of_operator(model: ModelOutputs) -> list[int]:
    """Return the positions of the four outputs of the only operator of the name; else none."""
    found: dict[int, dict[int, int]] = {}
    for place, maker in enumerate(model.makers()):
        if maker is not None and maker.name == _POST_PROCESS:
            found.setdefault(maker.operator, {}).setdefault(maker.at, place)
    whole = [places for places in found.values() if places.keys() == {0, 1, 2, 3}]
    return [whole[0][at] for at in range(4)] if len(whole) == 1 else []


def _rows(model: ModelOutputs, at: int) -> int:
    shape = model.outputs[at].shape
    return shape[1] if len(shape) in (2, 3) and shape[0] == 1 else 0


def _columns(model: ModelOutputs, at: int) -> int:
    shape = model.outputs[at].shape
    return shape[2] if len(shape) == 3 else 1


def _classes_first(model: ModelOutputs, places: list[int]) -> list[int]:
    """Return the positions of classes and scores in this order; none where nothing tells."""
    for known in (r"class|label|categor", r"^TFLite_Detection_PostProcess:1$"):
        fitting = [at for at in places if re.search(known, model.outputs[at].name, re.IGNORECASE)]
        if len(fitting) == 1:
            return [*fitting, *(at for at in places if at not in fitting)]
    batch = model.sample(_SEEDS_TO_TELL)
    whole = [
        at
        for at in places
        if np.array_equal(real := output_values(batch, model.outputs, at).real, np.rint(real))
    ]
    return [*whole, *(at for at in places if at not in whole)] if len(whole) == 1 else []


def _not_found(model: ModelOutputs, wanted: str, count: int) -> UserError:
    names = ", ".join('"…"' for _ in range(count))
    return UserError(
        f"{model.name}: no outputs can be told to be {wanted}; its outputs are "
        f"{listed([model.outputs[at] for at in open_outputs(model)])}: name them by name or shape, "
        f"outputs = [{names}], or choose another decoding"
    )
