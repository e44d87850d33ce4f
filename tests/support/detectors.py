"""Detectors without a model: outputs from which the task detection reads what a test wants."""

from __future__ import annotations

from collections.abc import Sequence
from math import log
from typing import Any

import numpy as np
from numpy.typing import NDArray

from edgeflare.core.task import ModelOutputs
from edgeflare.core.tensor import RawBatch, Tensor, pack_rows, row_layout
from edgeflare.tasks.detection.detection_answer import DetectionAnswer
from edgeflare.tasks.detection.detection_decoder import DetectionDecoder
from edgeflare.tasks.detection.detection_task import Detection

ROWS = 8
"""Rows of an output of objects."""

Row = tuple[float, float, float, float, float, float]
"""Left, top, right, bottom, score, class."""


def detector_outputs_of(
    *tensors: Tensor, sample: Sequence[NDArray[Any]] | None = None
) -> ModelOutputs:
    """Return the outputs of a detector.

    Args:
        tensors: its outputs.
        sample: what each gives on the seeds, (seeds, *shape); zeros where not given.

    """
    shape, dtype = row_layout(tensors)

    def on_seeds(_seeds: int) -> RawBatch:
        return RawBatch(np.zeros((1, *shape), dtype)) if sample is None else batch(tensors, *sample)

    return ModelOutputs("detector.tflite", tensors, frozenset(), 0, (), on_seeds)


def batch(tensors: Sequence[Tensor], *arrays: NDArray[Any]) -> RawBatch:
    """Return a batch of outputs."""
    return RawBatch(pack_rows(tensors, arrays))


def objects_decoder(**settings: Any) -> DetectionDecoder:
    """Return the decoder of a detector whose only output has rows of objects."""
    tensor = Tensor("objects", (1, ROWS, 6), "float32")
    task = Detection(decoding="objects", **settings)
    unused = np.full((1, *tensor.shape), -1.0, np.float32)
    return task.decoder(detector_outputs_of(tensor, sample=[unused]))


def answer_of(decoder: DetectionDecoder, *rows: Row) -> DetectionAnswer:
    """Return the answer to an input on which a detector gives these rows."""
    given = np.full((1, 1, ROWS, 6), -1.0, np.float32)
    given[0, 0, : len(rows)] = np.array(rows).reshape(-1, 6)
    (answer,) = decoder.read(RawBatch(given.reshape(1, ROWS, 6)))
    assert isinstance(answer, DetectionAnswer)
    return answer


def log_odds(probability: float) -> float:
    return log(probability / (1.0 - probability))
