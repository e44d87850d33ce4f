"""Inputs of operators with weights, unfolded: each output is then a product of a row and weights.

CONV_2D, DEPTHWISE_CONV_2D and FULLY_CONNECTED are one matrix product for each *group* of channels
that share their inputs: a plain convolution and a dense layer have one group, a grouped convolution
has several, and a depthwise one has a group for each input channel.
"""

from __future__ import annotations

from typing import TypeVar

import numpy as np
from ai_edge_litert import schema_py_generated as schema
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from edgeflare.models.tflite_graph import Graph

UNFOLDED = ("CONV_2D", "DEPTHWISE_CONV_2D", "FULLY_CONNECTED")
"""Names of the operators that can be unfolded."""

_Kind = TypeVar("_Kind", bound=np.generic)


def unfolded_inputs(
    graph: Graph, operator: int, values: NDArray[_Kind], every: int = 1
) -> NDArray[_Kind]:
    """Unfold the input of an operator, with the padding, strides and dilation that it has.

    Args:
        graph: the operator's.
        operator: position of the operator, which is one of `UNFOLDED`.
        values: real values of its input, (n, *shape of the tensor).
        every: of how many positions one is unfolded, beginning with the first.

    Returns:
        (groups, rows, weights of an output), in the dtype of the values. There is a row for each of
        the n inputs and each position; within it the values stand as the weights of
        `grouped_weights` do. `rows @ weights.T` is the operator's output without bias and
        activation.

    """
    one = graph.operators[operator]
    weights = graph.tensors[one.inputs[1]]
    if one.name == "FULLY_CONNECTED":
        return values.reshape(1, -1, weights.shape[-1])[:, ::every]
    height, width, channels = graph.tensors[one.inputs[0]].shape[-3:]
    images = values.reshape(-1, height, width, channels)
    options = graph.options(operator)
    strides = options["strideH"], options["strideW"]
    dilations = options["dilationHFactor"], options["dilationWFactor"]
    spans = [
        (size - 1) * dilation + 1
        for size, dilation in zip(weights.shape[1:3], dilations, strict=True)
    ]
    if options["padding"] == schema.Padding.SAME:
        around = [
            _padding(size, span, stride)
            for size, span, stride in zip((height, width), spans, strides, strict=True)
        ]
        images = np.pad(images, [(0, 0), *around, (0, 0)])
    patches = sliding_window_view(images, spans, axis=(1, 2))  # type: ignore[call-overload]
    patches = patches[:, :: strides[0], :: strides[1], :, :: dilations[0], :: dilations[1]]
    groups = _groups(graph, operator)
    apart = patches.reshape(*patches.shape[:3], groups, channels // groups, *patches.shape[4:])
    rows = apart.transpose(0, 1, 2, 3, 5, 6, 4)
    if every > 1:  # the others are never copied, which takes longer than all else
        rows = rows[np.unravel_index(np.arange(0, np.prod(rows.shape[:3]), every), rows.shape[:3])]
    by_group = np.ascontiguousarray(np.moveaxis(rows, -4, 0))
    return by_group.reshape(groups, -1, int(np.prod(rows.shape[-3:])))


def grouped_weights(graph: Graph, operator: int, weights: NDArray[_Kind]) -> NDArray[_Kind]:
    """Return weights as (groups, outputs of a group, weights of an output).

    Output o of group g is channel g × outputs + o of what the operator puts out.

    Args:
        graph: the operator's.
        operator: position of the operator, which is one of `UNFOLDED`.
        weights: weights in any dtype, as the file lays them out.

    """
    groups = _groups(graph, operator)
    if graph.operators[operator].name == "DEPTHWISE_CONV_2D":
        height, width, channels = weights.shape[1:]
        apart = weights.reshape(height * width, groups, channels // groups)
        return np.ascontiguousarray(apart.transpose(1, 2, 0))
    return weights.reshape(groups, weights.shape[0] // groups, -1)


def ungrouped_weights(graph: Graph, operator: int, grouped: NDArray[_Kind]) -> NDArray[_Kind]:
    """Return weights as the file lays them out, from what `grouped_weights` returns."""
    shape = graph.tensors[graph.operators[operator].inputs[1]].shape
    if graph.operators[operator].name == "DEPTHWISE_CONV_2D":
        return np.ascontiguousarray(grouped.transpose(2, 0, 1)).reshape(shape)
    return grouped.reshape(shape)


def _groups(graph: Graph, operator: int) -> int:
    one = graph.operators[operator]
    channels, weights = graph.tensors[one.inputs[0]].shape[-1], graph.tensors[one.inputs[1]]
    if one.name == "DEPTHWISE_CONV_2D":
        return channels
    return channels // weights.shape[-1] if one.name == "CONV_2D" else 1


def _padding(size: int, span: int, stride: int) -> tuple[int, int]:
    """Return the zeros before and behind a dimension for the padding SAME."""
    zeros = max(0, (-(-size // stride) - 1) * stride + span - size)
    return zeros // 2, zeros - zeros // 2
