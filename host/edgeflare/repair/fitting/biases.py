"""Biases in whole steps, which follow from the scales of a layer's input and weights.

They are int32 of a layer that computes in 8 bits, and int64 where its activations have 16.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from edgeflare.diagnose.tensor_ties import consumers
from edgeflare.models.in_place_edit import InPlaceEdit
from edgeflare.models.tflite_graph import Graph, GraphTensor
from edgeflare.repair.fitting.quantized_network import MatchedLayer

Real = NDArray[np.float64]

_MOST: Final = {"int32": 2**31 - 1, "int64": 2**53}
"""The most steps of a bias, by its type: as many as it holds, and as are whole in float64."""


def write_bias(edit: InPlaceEdit, graph: Graph, layer: MatchedLayer, real: Real) -> None:
    """Write a layer's biases, and their scales: the input's times the weights'.

    Args:
        edit: edit of the graph's file.
        graph: has the scales of input and weights that the biases are to fit.
        layer: one with biases.
        real: their real values, (channels,).

    """
    if layer.bias is None or layer.weights is None or not has_integer_bias(graph, layer):
        return
    write_in_steps(edit, graph.tensors[layer.bias], real, _steps(graph, layer))


def write_in_steps(edit: InPlaceEdit, bias: GraphTensor, real: Real, steps: Real) -> None:
    """Write real biases in whole steps, and as their scales these steps.

    Args:
        edit: edit of the file.
        bias: the tensor that holds them, of int32 or int64.
        real: real values, (channels,).
        steps: the step of all, or (channels,).

    """
    most = _MOST[bias.dtype]
    raw = np.clip(np.rint(real / steps), -most, most)
    edit.set_values(bias.index, raw.astype(bias.dtype).reshape(bias.shape))
    if len(bias.scales) in (1, len(real)):
        scales = np.broadcast_to(steps, len(real))[: len(bias.scales)]
        edit.set_quantization(bias.index, scales.tolist(), bias.zero_points)


def has_integer_bias(graph: Graph, layer: MatchedLayer) -> bool:
    """Whether a layer computes in integers, with biases in whole steps."""
    return (
        layer.bias is not None
        and layer.float_bias is not None
        and graph.tensors[layer.bias].dtype in _MOST
        and bool(graph.tensors[layer.inputs[0]].scales)
    )


_RESHAPING = frozenset({"EXPAND_DIMS", "RESHAPE", "SQUEEZE"})
"""Operators that leave values in their order."""


def softmax_choices(graph: Graph, layer: MatchedLayer) -> int | None:
    """Return how many values of a layer in a row are the choices of a softmax.

    It gives the same for choices that are all shifted by one amount. None where something else
    sees the values, or sees them in another order than the layer puts them out.
    """
    if graph.options(layer.operator).get("fusedActivationFunction", 0):
        return None
    waiting, found = [layer.output], set[int]()
    while waiting:
        tensor = waiting.pop()
        if tensor in graph.outputs:
            return None
        for consumer in consumers(graph, tensor):
            if consumer.name in _RESHAPING:
                waiting.extend(consumer.outputs)
            elif consumer.name == "SOFTMAX":
                found.add(graph.tensors[tensor].shape[-1])
            elif consumer.name != "SHAPE":
                return None
    return found.pop() if len(found) == 1 else None


def real_bias(graph: Graph, layer: MatchedLayer) -> Real:
    """Return the biases that a layer is to have: the original's, shifted as the file's are.

    Only the logits of a softmax may be shifted, as `fit_ranges` does. The shift is the median of
    the differences, so that a few wrong biases do not change it.

    Args:
        graph: graph of the compressed model, whose bias has the scale that the kernels take it to
            have.
        layer: one with biases in whole steps.

    """
    if layer.bias is None or layer.float_bias is None:
        raise ValueError(f"operator {layer.operator} has no biases")
    wanted = layer.float_bias.astype(np.float64)
    if softmax_choices(graph, layer) is None:
        return wanted
    stored = graph.values(layer.bias).astype(np.float64).ravel() * _steps(graph, layer)
    return wanted + float(np.median(stored - wanted))


def _steps(graph: Graph, layer: MatchedLayer) -> Real:
    """Return the real value of one step of a layer's biases: one for all, or (channels,)."""
    given = graph.tensors[layer.inputs[0]].scales[0]
    scales = () if layer.weights is None else graph.tensors[layer.weights].scales
    return np.asarray(scales, np.float64) * given
