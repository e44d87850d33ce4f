"""Biases, corrected by what rounding changes.

Rounded weights, and inputs that are clipped to their range, move the mean of each channel. The
biases take that back: a layer's new bias is the original's plus the mean of the float layer's
output less that of the rounded one, before the activation (Nagel et al., "Data-Free Quantization
Through Weight Equalization and Bias Correction", ICCV 2019, §4.2, with means that are measured).

Differences from the original: layers are corrected in execution order, each on what the corrected
ones before it put out, so that the changed means of its input count too; and a layer's mean output
is computed from its mean input, which is the same for an operator that is linear.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import closing

import numpy as np
from numpy.typing import NDArray

from edgeflare.core.tensor import pack_rows
from edgeflare.models.graph_parts import extract, isolate
from edgeflare.models.in_place_edit import InPlaceEdit
from edgeflare.models.model_probe import HostProbe
from edgeflare.models.tflite_graph import Graph
from edgeflare.repair.fitting.biases import has_integer_bias, real_bias, write_bias
from edgeflare.repair.fitting.quantized_network import MatchedLayer, QuantizedNetwork
from edgeflare.repair.fitting.tensor_capture import each_captured, network_inputs
from edgeflare.repair.repair_candidate import StepProgress
from edgeflare.repair.repair_method import RepairMethod
from edgeflare_protos.kernel_sets import Kernels

Real = NDArray[np.float64]

_MOST_ROWS = 128
"""Inputs whose mean is taken. Float and rounded layers see the same ones, so that the differences
of their means vary little."""


class Bias(RepairMethod):
    """Corrects biases; see `fit_biases`."""

    in_place = integers = True

    def fit(self, network: QuantizedNetwork, progress: StepProgress) -> bytes:
        """Return the file with corrected biases."""
        return fit_biases(network, progress)


def fit_biases(network: QuantizedNetwork, progress: Callable[[int, int], None]) -> bytes:
    """Return the compressed model with corrected biases.

    Args:
        network: has at least one input to fit with; its first 128 are used.
        progress: is told how many layers are corrected, and of how many.

    Returns:
        A file of the same length, with the same operators.

    """
    layers = [
        matched_layer for matched_layer in network.layers if _correctable(network, matched_layer)
    ]
    if not layers:
        return network.content
    means = _means(
        network.original,
        network.original_graph,
        network.original_rows[:_MOST_ROWS],
        [matched_layer.original_inputs[0] for matched_layer in layers],
    )
    inputs = [means[matched_layer.original_inputs[0]] for matched_layer in layers]
    with closing(_linear_layers(network, layers, rounded=False)) as exact:
        wanted = [_channel_means(made) for made in exact.run(_floats(inputs))]
    none = [np.zeros_like(input_) for input_ in inputs]
    with closing(_linear_layers(network, layers, rounded=True)) as rounded:
        for at, layer in enumerate(layers):
            progress(at, len(layers))
            graph, given = network.graph, layer.inputs[0]
            seen = _mean_input(network, given)
            made = rounded.run(_floats([*none[:at], seen, *none[at + 1 :]]))[at]
            edit = InPlaceEdit(network.content, graph.source)
            corrected = real_bias(graph, layer) + wanted[at] - _channel_means(made)
            write_bias(edit, graph, layer, corrected)
            network = network.with_content(edit.content())
    progress(len(layers), len(layers))
    return network.content


def _correctable(network: QuantizedNetwork, layer: MatchedLayer) -> bool:
    """Whether a layer has biases in int32, and the original's has constants to be replaced."""
    original = network.original_graph
    return (
        has_integer_bias(network.graph, layer)
        and layer.float_weights is not None
        and all(original.tensors[tensor].constant for tensor in _constants(original, layer))
    )


def _mean_input(network: QuantizedNetwork, tensor: int) -> Real:
    """Return the mean of a tensor of the compressed model, run no further than it is made."""
    graph, rows = network.graph, network.rows[:_MOST_ROWS]
    if tensor in graph.inputs:
        return _means(network.content, graph, rows, [tensor])[tensor]
    part = extract(graph, 0, graph.made_by[tensor], expose=[tensor])
    there, values = Graph(part.content), network_inputs(graph, rows)
    place = there.outputs[part.outputs.index(tensor)]
    given = [graph.tensors[input_].as_interface for input_ in part.inputs]
    rows = pack_rows(given, [values[input_] for input_ in part.inputs])
    return _means(part.content, there, rows, [place], "xnnpack")[place]


def _means(
    content: bytes,
    graph: Graph,
    rows: NDArray[np.generic],
    tensors: Sequence[int],
    kernels: Kernels = "builtin",
) -> dict[int, Real]:
    """Return the mean of real values of tensors over inputs, each in the tensor's shape."""
    sums: dict[int, Real] = {}
    for row in each_captured(content, rows, sorted(set(tensors)), kernels):
        for tensor, raw in row.items():
            known = graph.tensors[tensor]
            sums[tensor] = sums.get(tensor, 0.0) + known.real(raw.reshape(known.shape))
    return {tensor: total / len(rows) for tensor, total in sums.items()}


def _linear_layers(
    network: QuantizedNetwork, layers: Sequence[MatchedLayer], *, rounded: bool
) -> HostProbe:
    """Open the original's layers, independent of each other, without biases and activations.

    Args:
        network: network whose original it is.
        layers: layers to open, in execution order; each has one input.
        rounded: whether they have the weights of the compressed model in the place of their own.

    """
    graph, compressed = network.original_graph, network.graph
    constants: dict[int, NDArray[np.generic]] = {}
    for layer in layers:
        weights, *biases = _constants(graph, layer)
        for bias in biases:
            constants[bias] = np.zeros(graph.tensors[bias].shape, np.float32)
        if rounded and layer.weights is not None:
            real = compressed.tensors[layer.weights].real(compressed.values(layer.weights))
            constants[weights] = real.reshape(graph.tensors[weights].shape).astype(np.float32)
    part = isolate(
        graph, [matched_layer.original for matched_layer in layers], constants, linear=True
    )
    return HostProbe(part.content, "builtin")


def _constants(original: Graph, layer: MatchedLayer) -> list[int]:
    """Return the tensors with a layer's weights and biases in the original."""
    one = original.operators[layer.original]
    fed = original.fed(one)
    return [
        tensor
        for tensor in one.inputs
        if tensor not in fed and original.tensors[tensor].dtype == "float32"
    ]


def _floats(inputs: Sequence[Real]) -> list[NDArray[np.float32]]:
    return [input_.astype(np.float32) for input_ in inputs]


def _channel_means(made: NDArray[np.generic]) -> Real:
    """Return the mean of each channel, the last dimension."""
    return np.asarray(made.reshape(-1, made.shape[-1]).astype(np.float64).mean(axis=0))
