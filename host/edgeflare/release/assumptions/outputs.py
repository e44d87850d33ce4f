"""Which task the outputs of a model are assumed to be for.

What nothing tells the meaning of is compared as numbers, so that there is a verdict all the same.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import prod
from typing import Any, Final, Literal, TypeAlias

from numpy.typing import NDArray

from edgeflare.core.joint_answer import MOST_SCORES
from edgeflare.domains.image.preprocess import CHANNELS
from edgeflare.errors import UserError
from edgeflare.models.pair_file import Settings
from edgeflare.models.tflite_graph import Graph, GraphTensor
from edgeflare.record.json_types import JsonValue
from edgeflare.release.assumptions.assumption import Assumption
from edgeflare.tasks.detection.box_matching import require_scipy

Meaning: TypeAlias = Literal["scores", "score", "mask", "values"]

_POST_PROCESS: Final = "TFLite_Detection_PostProcess"

_CHOOSING: Final = ("SOFTMAX", "LOG_SOFTMAX", "LOGISTIC", "ARG_MAX")
"""Operators behind which an output tells classes apart."""

_PLACING: Final = ("L2_NORMALIZATION", "TANH")
"""Operators behind which an output is no score, but a place or an embedding."""

_BOX: Final = 4
"""Values of a box."""

_GRIDS: Final = (
    ((8, 2), (16, 6)),
    ((16, 2), (32, 6)),
    ((4, 1),),
    ((8, 2), (16, 2), (32, 6)),
)
"""Grids of MediaPipe's detectors: for each the pixels along a cell, and the anchors in it.

These are what `SsdAnchorsCalculatorOptions` of its graphs comes to, with anchors of fixed size:
face_detection_short_range and palm_detection; face_detection_back; face_detection_full_range;
pose_detection."""


def assumed_outputs(
    graph: Graph,
    state: Mapping[str, str],
    picture: tuple[int, int] | None,
    arrays: Mapping[str, NDArray[Any]],
) -> Assumption:
    """Return the task that the outputs of a model are assumed to be for.

    Args:
        graph: graph of the compressed model.
        state: the outputs that only feed an input, by the input's name.
        picture: height and width of the pictures that the model takes; None where it takes none.
        arrays: what an `.npz` of inputs has; its `targets` tell values from scores.

    """
    known = [graph.tensors[at] for at in graph.outputs]
    tensors = [tensor for tensor in known if tensor.name not in state.values()]
    detection = _detection(graph, tensors, picture)
    if detection is not None:
        return detection
    meanings = [_meaning(graph, tensor, picture, arrays) for tensor in tensors]
    by_meaning = {
        meaning: [tensor for tensor, its in zip(tensors, meanings, strict=True) if its == meaning]
        for meaning in meanings
    }
    scores, masks = by_meaning.get("scores", []), by_meaning.get("mask", [])
    if len(scores) == 1 and not masks:
        return _classes(scores[0], tensors)
    if len(scores) == len(tensors) and _tell_apart(scores):
        return _heads(scores)
    if len(masks) == 1 and not scores:
        return _masks(masks[0], tensors)
    if len(tensors) == 1 and meanings == ["score"]:
        return _threshold(tensors[0])
    return _values(tensors, boxes=_are_boxes(tensors, picture))


def _meaning(
    graph: Graph,
    tensor: GraphTensor,
    picture: tuple[int, int] | None,
    arrays: Mapping[str, NDArray[Any]],
) -> Meaning:
    """Return what an output holds, by its shape and the operator that makes it."""
    maker = graph.origin(tensor.index)
    name = "" if maker is None else maker.name
    targets = arrays.get("targets")
    if targets is not None and targets.dtype.kind == "f" and _each(targets) == prod(tensor.shape):
        return "values"
    if prod(tensor.shape) == 1:
        return "score" if name == "LOGISTIC" else "values"
    if prod(tensor.shape) == tensor.shape[-1]:
        whole = tensor.dtype.startswith("int") and not tensor.scales
        return "values" if name in _PLACING or whole else "scores"
    return "mask" if _is_mask(tensor, name, picture) else "values"


def _each(targets: NDArray[Any]) -> int:
    """Return how many numbers are right for an input; 0 where there are none."""
    return int(targets[0].size) if targets.ndim and len(targets) else 0


def _is_mask(tensor: GraphTensor, maker: str, picture: tuple[int, int] | None) -> bool:
    """Whether an output has a class or its scores for each pixel, or each of some pixels."""
    if picture is None or len(tensor.shape) not in (3, 4) or tensor.shape[0] != 1:
        return False
    rows, columns, scores = (*tensor.shape[1:], 1)[:3]
    whole = all(size % part == 0 for size, part in zip(picture, (rows, columns), strict=True))
    if min(rows, columns) < 2 or not whole or picture[0] // rows != picture[1] // columns:
        return False
    classes = tensor.dtype.startswith(("int", "uint")) and not tensor.scales
    return classes or maker in _CHOOSING or scores not in CHANNELS


def _classes(tensor: GraphTensor, tensors: Sequence[GraphTensor]) -> Assumption:
    count = tensor.shape[-1]
    task: dict[str, JsonValue] = {"name": "classification", **_output(tensor, tensors)}
    note = f"{_called(tensor)} is a score for each of {count} classes{_task('classification')}"
    # Of a single output nothing need be said: pairs are of classes unless they say otherwise.
    found = _assumed(None if len(tensors) == 1 else task, note, tensors, 1)
    return replace(found, classes=count)


def _heads(tensors: Sequence[GraphTensor]) -> Assumption:
    task: dict[str, JsonValue] = {
        "name": "classification",
        "heads": [_key(tensor, tensors) for tensor in tensors],
    }
    heads = " and ".join(map(_called, tensors))
    note = f"{heads} are each a score for each of some classes{_task('classification')}"
    return _assumed(task, note, tensors, len(tensors))


def _masks(tensor: GraphTensor, tensors: Sequence[GraphTensor]) -> Assumption:
    scores = (*tensor.shape[1:], 1)[2]
    per_pixel = f"{scores} scores" if scores > 1 else "a score, above .5 or not,"
    if tensor.dtype.startswith(("int", "uint")) and not tensor.scales:
        per_pixel = "a class"
    note = (
        f"{_called(tensor)} has {per_pixel} for each pixel of a mask, and two masks are the same"
        f" from a mean IoU of .9 on{_task('segmentation')}"
    )
    return _assumed({"name": "segmentation", **_output(tensor, tensors)}, note, tensors, 1)


def _threshold(tensor: GraphTensor) -> Assumption:
    note = f"{_called(tensor)} is a probability, and decides at .5{_task('threshold')}"
    task: dict[str, JsonValue] = {"name": "threshold", "threshold": 0.5, "spread": _SPREAD}
    return _assumed(task, note, [tensor], 1)


_SPREAD: Final = 0.1
"""What distances of a probability from its threshold are divided by. Of detectors of rare events
most scores are 0, so that their own spread gives no unit."""


def _values(tensors: Sequence[GraphTensor], *, boxes: bool) -> Assumption:
    """Return that the output with the most values is compared as numbers.

    Its tolerance is measured later.
    """
    tensor = max(tensors, key=lambda output: prod(output.shape))
    task: dict[str, JsonValue] = {"name": "regression", "distance": "l2"}
    task |= _output(tensor, tensors)
    note = f"nothing tells what {_called(tensor)} means, so its numbers are compared"
    if prod(tensor.shape) == 1:
        note = f"{_called(tensor)} is a number{_task('regression')}"
    if boxes:
        note += (
            '; boxes need the anchors, which are not in the file: [task] name = "detection",'
            ' anchors = "anchors.npz" (docs/detection.md)'
        )
    return _assumed(task, note, tensors, 1)


def _detection(
    graph: Graph, tensors: Sequence[GraphTensor], picture: tuple[int, int] | None
) -> Assumption | None:
    """Return how objects are read, where the file alone says it; None elsewhere."""
    makers = [graph.origin(tensor.index) for tensor in tensors]
    task: dict[str, JsonValue]
    if [operator for operator in makers if operator is not None and operator.name == _POST_PROCESS]:
        task = {"name": "detection", "decoding": "postprocess"}
        note = f"the outputs are those of {_POST_PROCESS}: boxes, classes, scores and their number"
    elif _are_boxes(tensors, picture) and picture is not None:
        regressors, scores = sorted(tensors, key=lambda tensor: -tensor.shape[2])
        cells = _cells(regressors.shape[1], picture)
        if cells is None:
            return None
        maker = graph.origin(scores.index)
        known = "probabilities" if maker is not None and maker.name == "LOGISTIC" else "logits"
        size = float(picture[0])
        task = {"name": "detection", "cells": [list(cell) for cell in cells], "size": size}
        task |= {
            "scores": known,
            "outputs": [_key(tensor, tensors) for tensor in (regressors, scores)],
        }
        note = (
            f"{_called(regressors)} has as many boxes as MediaPipe's detectors of"
            f" {picture[0]} x {picture[1]} pixels, and so their anchors; {_called(scores)} has the"
            f" scores, {known}"
        )
    else:
        return None
    try:
        require_scipy()
    except UserError as missing:
        note = f"{note}; only numbers are compared, since {missing}"
        values = _values(tensors, boxes=False)
        return Assumption(values.settings, (note, *values.notes))
    note += f", and an object has a score of .5 and an IoU of .5{_task('detection')}"
    return _assumed(task, note, tensors, len(tensors))


def _are_boxes(tensors: Sequence[GraphTensor], picture: tuple[int, int] | None) -> bool:
    """Whether two outputs are boxes (1, n, 4 or more) and scores (1, n, classes) of a picture."""
    if picture is None or len(tensors) != 2:
        return False
    one, other = (tensor.shape for tensor in tensors)
    alike = len(one) == len(other) == 3 and one[:2] == other[:2] and one[0] == 1
    return alike and max(one[2], other[2]) >= _BOX and one[2] != other[2]


def _cells(boxes: int, picture: tuple[int, int]) -> list[tuple[int, int]] | None:
    """Return the grids of which a square picture has so many boxes; None where it is none."""
    side = picture[0]
    if picture != (side, side):
        return None
    for grids in _GRIDS:
        cells = [(side // stride, repeats) for stride, repeats in grids]
        if sum(along * along * repeats for along, repeats in cells) == boxes:
            return cells
    return None


def _assumed(
    task: dict[str, JsonValue] | None, note: str, tensors: Sequence[GraphTensor], read: int
) -> Assumption:
    left = len(tensors) - read
    also = f"; {left} other outputs are compared as numbers alone" if left > 1 else ""
    also = also or ("; the other output is compared as numbers alone" if left else "")
    return Assumption(Settings(task=task), (note + also,))


def _task(name: str) -> str:
    return f' ([task] name = "{name}")'


def _called(tensor: GraphTensor) -> str:
    return f'the output "{tensor.name}" {tensor.shape}'


def _output(tensor: GraphTensor, tensors: Sequence[GraphTensor]) -> dict[str, JsonValue]:
    """Return the key that chooses an output, where there are several."""
    return {} if len(tensors) == 1 else {"output": _key(tensor, tensors)}


def _key(tensor: GraphTensor, tensors: Sequence[GraphTensor]) -> str:
    """Return what names an output: its shape, which both models have, or else its name."""
    alike = [other for other in tensors if other.shape == tensor.shape]
    return "x".join(map(str, tensor.shape)) if len(alike) == 1 else tensor.name


def _tell_apart(tensors: Sequence[GraphTensor]) -> bool:
    """Whether the shapes of heads say which is which, and their joint decisions can be counted."""
    shapes = Counter(tensor.shape for tensor in tensors)
    few = prod(tensor.shape[-1] for tensor in tensors) <= MOST_SCORES
    return few and max(shapes.values()) == 1 < len(tensors)
