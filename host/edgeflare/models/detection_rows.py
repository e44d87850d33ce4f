"""The rows of a detector's own post-processing, of which it fills as many as it finds objects.

The operator leaves the others as the memory was, so they differ from run to run.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from edgeflare.core.task import OutputMaker
from edgeflare.core.tensor import RawBatch, Tensor, dequantize, pack_rows, unpack_rows
from edgeflare.models.tflite_graph import Graph

POST_PROCESSING = "TFLite_Detection_PostProcess"
"""A custom operator whose outputs are boxes, classes, scores and the number of objects."""

_WIDTHS = (4, 1, 1)
"""Values of an object in each of its outputs but the last."""

_COUNT = len(_WIDTHS)
"""Position of the output that is the number of objects."""

Number = TypeVar("Number", bound=np.generic)


def with_unused_rows_zeroed(
    graph: Graph, values: Mapping[int, NDArray[Number]]
) -> dict[int, NDArray[Number]]:
    """Return values of tensors in which rows without an object are zeros.

    Args:
        graph: the model's graph.
        values: values by tensor, raw or real ones; those of a post-processing whose number of
            objects is not among them stay as they are.

    """
    found = dict(values)
    if not any(operator.name == POST_PROCESSING for operator in graph.operators):
        return found
    for tensor, array in values.items():
        maker = graph.origin(tensor)
        if maker is None or not _has_rows(maker):
            continue
        count = values.get(graph.operators[maker.operator].outputs[_COUNT])
        if count is not None:
            found[tensor] = _filled(array, maker, count)
    return found


def batch_with_unused_rows_zeroed(
    outputs: Sequence[Tensor], makers: Sequence[OutputMaker | None], batch: RawBatch
) -> RawBatch:
    """Return a model's raw outputs in which rows without an object are zeros.

    Args:
        outputs: outputs of the model.
        makers: as `HostModel.makers` returns them.
        batch: the raw outputs; those of a post-processing whose number of objects is not among
            them stay as they are.

    """
    counts = {
        operator.operator: at
        for at, operator in enumerate(makers)
        if operator is not None and operator.name == POST_PROCESSING and operator.at == _COUNT
    }
    if not counts or not len(batch.outputs):
        return batch
    arrays = list(unpack_rows(outputs, batch.outputs))
    for at, maker in enumerate(makers):
        if maker is not None and _has_rows(maker) and maker.operator in counts:
            known = counts[maker.operator]
            arrays[at] = _filled(arrays[at], maker, dequantize(arrays[known], outputs[known]))
    return replace(batch, outputs=pack_rows(outputs, arrays))


def _has_rows(maker: OutputMaker) -> bool:
    return maker.name == POST_PROCESSING and maker.at < _COUNT


def _filled(
    array: NDArray[Number], maker: OutputMaker, count: NDArray[np.generic]
) -> NDArray[Number]:
    """Return boxes, classes or scores of one inference or several, each with its count."""
    rows = array.reshape(count.size, -1, _WIDTHS[maker.at]).copy()
    # Nothing is below a count that is NaN.
    rows[~(np.arange(rows.shape[1]) < count.reshape(-1, 1))] = 0
    filled: NDArray[Number] = rows.reshape(array.shape)
    return filled
