"""What the scripts of exports read and compare, against the tasks that found the deviations."""

from __future__ import annotations

from collections.abc import Iterator
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from detectors import batch, detector_outputs_of
from edgeflare.core.task import Decoder, Task
from edgeflare.core.tensor import Tensor, dequantize
from edgeflare.record.json_types import plain_json
from edgeflare.replay.reproduction_scripts import mask_outputs, object_outputs, text_outputs
from edgeflare.tasks.detection.detection_task import Detection
from edgeflare.tasks.segmentation.segmentation_task import Segmentation
from edgeflare.tasks.transcript.transcript_task import Transcript

Arrays = list[NDArray[Any]]

_SIZED = ((0.3, 0.3, 0.4, 0.4), (0.5, 0.5, 0.6, 0.3), (0.4, 0.4, 0.5, 0.5))
_BOXES, _SCORES = Tensor("boxes", (1, 3, 4), "float32"), Tensor("scores", (1, 3, 2), "float32")
_COARSE = Tensor("scores", (1, 3, 2), "int8", 0.25, -3)
_POST = (
    Tensor("boxes", (1, 3, 4), "float32"),
    Tensor("classes", (1, 3), "float32"),
    Tensor("scores", (1, 3), "float32"),
    Tensor("count", (1,), "float32"),
)
_TEXT = Tensor("steps", (1, 6, 4), "float32")
_SPACED = ("a", "b", " ")
CASES: dict[str, tuple[ModuleType, Task, tuple[Tensor, ...]]] = {
    "anchors with sizes": (object_outputs, Detection(anchors=_SIZED), (_BOXES, _SCORES)),
    "scores of int8": (object_outputs, Detection(cells=((1, 3),)), (_BOXES, _COARSE)),
    "probabilities behind a background": (
        object_outputs,
        Detection(cells=((1, 3),), scores="probabilities", class_offset=1),
        (_BOXES, _SCORES),
    ),
    "postprocess": (object_outputs, Detection(decoding="postprocess"), _POST),
    "objects": (
        object_outputs,
        Detection(decoding="objects", most_objects=2),
        (Tensor("objects", (1, 3, 6), "float32"),),
    ),
    "ctc": (text_outputs, Transcript(vocabulary=_SPACED, separator=" ", blank=1), (_TEXT,)),
    "argmax": (text_outputs, Transcript(vocabulary=(*_SPACED, "c"), decoding="argmax"), (_TEXT,)),
    "mask of one score": (
        mask_outputs,
        Segmentation(overlap=0.6, region=4),
        (Tensor("mask", (1, 3, 4, 1), "uint8", 1 / 256),),
    ),
    "mask of classes": (
        mask_outputs,
        Segmentation(overlap=0.0, region=3, layout="NHWC"),
        (Tensor("mask", (1, 3, 4, 3), "float32"),),
    ),
    "mask of classes that come first": (
        mask_outputs,
        Segmentation(overlap=0.0, region=3, layout="NCHW"),
        (Tensor("mask", (1, 3, 4, 3), "float32"),),
    ),
}


def outputs_of(task: Task, tensors: tuple[Tensor, ...], rng: np.random.Generator) -> Arrays:
    """Return raw outputs (1, *shape), which are boxes where the task wants some."""
    return [_output(task, tensor, rng) for tensor in tensors]


def _output(task: Task, tensor: Tensor, rng: np.random.Generator) -> NDArray[Any]:
    shape = (1, *tensor.shape)
    if not tensor.dtype.startswith("float"):
        bounds = np.iinfo(tensor.dtype)
        return rng.integers(bounds.min, bounds.max + 1, shape, tensor.dtype)
    if tensor.name == "count":
        return rng.integers(0, 4, shape).astype(np.float32)
    if tensor.name == "classes":
        return rng.integers(0, 2, shape).astype(np.float32)
    if tensor.name == "scores" and getattr(task, "scores", "") == "logits" and tensor.shape[2:]:
        return rng.normal(0.0, 2.0, shape).astype(np.float32)
    values = rng.uniform(0.0, 1.0, shape).astype(np.float32)
    if tensor.name == "objects" or tensor in _POST[:1]:
        values[..., :2] *= 0.4
        values[..., 2:4] = 0.5 + values[..., 2:4] * 0.4
    if tensor.name == "objects":
        values[..., 5] = np.rint(values[..., 5])
    return values


def tensors_of(tensors: tuple[Tensor, ...], arrays: Arrays) -> dict[str, NDArray[np.float64]]:
    """Return tensors as `reproduce_tensors.py` does, (1 frame, values)."""
    return {
        tensor.name: dequantize(array, tensor).reshape(1, -1)
        for tensor, array in zip(tensors, arrays, strict=True)
    }


def read_answers(
    decoder: Decoder, tensors: tuple[Tensor, ...], arms: list[Arrays]
) -> Iterator[Any]:
    for arrays in arms:
        (answer,) = decoder.read(batch(tensors, *arrays))
        assert answer.failure is None
        yield answer


@pytest.mark.parametrize("case", CASES)
@given(seed=st.integers(0, 2**32 - 1))
def test_a_script_deviates_where_the_task_does(case: str, seed: int) -> None:
    script, task, tensors = CASES[case]
    rng = np.random.default_rng(seed)
    first = outputs_of(task, tensors, rng)
    near = [one.copy() for one in first]
    place = int(rng.integers(len(near)))
    other = outputs_of(task, tensors, rng)
    near[place].flat[:] = np.where(
        rng.random(near[place].size) < 0.5, other[place].ravel(), near[place].ravel()
    )
    decoder = task.decoder(detector_outputs_of(*tensors, sample=first))
    said = plain_json(decoder)
    told = {"compared": ["original", "device"], "arms": {"device": {"decoder": said}}}
    arms = [first, near] if rng.random() < 0.7 else [first, other]
    one, two = read_answers(decoder, tensors, arms)
    answers = [[script.read(tensors_of(tensors, arrays), said)] for arrays in arms]
    deviates, _ = script.compare(*answers, told)
    assert deviates == one.differs(two)
