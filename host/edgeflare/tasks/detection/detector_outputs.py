"""Which outputs of a detector hold what; converters reorder and rename them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from math import prod

import numpy as np

from edgeflare.core.task import Decoder, ModelOutputs
from edgeflare.core.tensor import Tensor
from edgeflare.errors import UserError
from edgeflare.tasks.output_choice import is_numeric, listed, named_output, open_outputs
from edgeflare.tasks.output_values import output_values

_POST_PROCESS = "TFLite_Detection_PostProcess"

_SEEDS_TO_TELL = 16
"""Seeds that tell classes from scores where names do not."""


def anchor_outputs(
    model: ModelOutputs, named: Sequence[str], anchors: int, class_offset: int
) -> tuple[int, int]:
    """Return the positions of regressors (1, n, 4 or more) and scores (1, n, classes).

    Args:
        model: the model.
        named: both, as the user names them; empty to find them by shape.
        anchors: how many there are.
        class_offset: leading classes that are the background.

    Raises:
        UserError: there are none, several, or of another number than the anchors.

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
        exact = [one for one in pairs if _columns(model, one[0]) == 4 or len(pairs) == 1]
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


def post_process_outputs(model: ModelOutputs, named: Sequence[str]) -> tuple[int, int, int, int]:
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


def object_output(model: ModelOutputs, named: Sequence[str]) -> int:
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


def scored_classes(decoder: Decoder) -> int:
    """Return how many classes scores are given for, the background among them; 0 if unknown."""
    said = decoder.to_json()["decoding"]
    if said["decoding"] != "anchors":
        return 0
    tensor: Tensor = decoder.tensor
    return prod(tensor.shape) // len(said["anchors"])


def _named(model: ModelOutputs, named: Sequence[str], what: str, count: int) -> list[int]:
    if named and len(named) != count:
        raise UserError(f"outputs names {len(named)}; expected {count}: {what}, in this order")
    return [named_output(model, one) for one in named]


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
