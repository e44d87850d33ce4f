"""Channels that are scaled so that each makes use of the steps that all of an activation share.

Nagel, van Baalen, Blankevoort and Welling, "Data-Free Quantization Through Weight Equalization and
Bias Correction", ICCV 2019, §4.1: for s > 0, ReLU(s x) = s ReLU(x). So what a layer puts out in a
channel may be multiplied by s where all that reads it divides its weights by s, and the network
computes the same. An activation has one step for all of its channels: a channel that spans less
than the widest one is rounded more finely once it is scaled up.

Differences from the original
    Ranges of activations are equalized, and those of weights are not, which have a step for each
    channel. Channels of sums, pools and means are scaled alike on all sides of these.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

import numpy as np
from ai_edge_litert import schema_py_generated as schema
from numpy.typing import NDArray

from edgeflare.errors import UserError
from edgeflare.models.in_place_edit import InPlaceEdit
from edgeflare.models.tflite_graph import Graph, GraphOp
from edgeflare.repair.fitting.activation_ranges import activation_limits, counterparts
from edgeflare.repair.fitting.im2col import UNFOLDED
from edgeflare.repair.fitting.quantized_network import (
    MatchedLayer,
    QuantizedNetwork,
    constant_of,
)
from edgeflare.repair.fitting.tensor_capture import captured, each_captured
from edgeflare.repair.fitting.weight_restoration import restore_weights
from edgeflare.repair.repair_candidate import CandidatePlan, Effort, StepProgress
from edgeflare.repair.repair_method import FitChains, RepairMethod

Real = NDArray[np.float64]

_MOST = 16.0
"""The largest factor of a channel, so that weights that read it keep steps enough."""

_MOVING = frozenset({"QUANTIZE", "RESHAPE"})
_KEEPING_CHANNELS = _MOVING | {"ADD", "AVERAGE_POOL_2D", "MAX_POOL_2D", "MEAN", "RELU"}
"""Operators that give s times as much for s times as much, in each channel."""

_KEEPING_SCALES = (schema.ActivationFunctionType.NONE, schema.ActivationFunctionType.RELU)

_COMPARED, _TOLERANCE = 8, 1e-3
"""Inputs on which the scaled original has to give what it gave, and how exactly, as a share."""


class Equalization(RepairMethod):
    """Scales channels, in the original too, to which further methods are fitted.

    Ranges and biases are those of before, so that `ranges` has to follow.
    """

    in_place = integers = True

    def fit(self, network: QuantizedNetwork, progress: StepProgress) -> QuantizedNetwork:
        """Return the network with scaled channels; it takes a moment, and `progress` hears none."""
        del progress
        return equalize_channels(network)

    def write(self, network: QuantizedNetwork, fitted: QuantizedNetwork) -> bytes:
        """Return the scaled network's file."""
        del network
        return fitted.content

    def changed(self, network: QuantizedNetwork, fitted: QuantizedNetwork) -> QuantizedNetwork:
        """Return the scaled network."""
        del network
        return fitted

    def plans(self, name: str, chains: FitChains) -> Sequence[CandidatePlan]:
        """Return a plan with new ranges and rounded weights behind, which it needs.

        Those of `rewrites` have one with the same steps behind.
        """
        plan = chains.plan(f"{name}+ranges+rounding", name, Effort.ROUNDING)
        return (replace(plan, instead_of="rewrites"),)


def equalize_channels(network: QuantizedNetwork) -> QuantizedNetwork:
    """Return the network with another original, which computes the same with channels alike.

    The compressed model has its weights, rounded to the nearest steps. Ranges and biases are those
    of before: `fit_ranges` has to follow.

    Args:
        network: has at least one input to fit with.

    """
    layers = {layer.operator: layer for layer in network.layers if _takes_scales(network, layer)}
    groups = _groups(network, layers)
    if not groups:
        raise UserError("no channels between two layers with weights can be scaled")
    scales = _scales(network, groups)
    scaled = replace(network, original=_scaled(network, layers.values(), scales))
    _require_equal(network, scaled)
    return scaled.with_content(restore_weights(scaled, everywhere=True))


def _takes_scales(network: QuantizedNetwork, layer: MatchedLayer) -> bool:
    """Whether a layer's weights can take in scales of its input and of its output."""
    values = layer.float_weights
    if layer.name not in UNFOLDED or len(layer.inputs) != 1:
        return False
    if values is None or layer.float_bias is None:
        return False
    graph, original = network.graph, network.original_graph
    there = constant_of(original, original.operators[layer.original], 0)
    if there is None or original.tensors[there].dtype != "float32":
        return False
    given, made = (graph.tensors[at].shape[-1] for at in (layer.inputs[0], layer.output))
    return layer.name == "FULLY_CONNECTED" or (
        values.shape[-1] == given and (layer.name == "CONV_2D" or made == given)
    )


def _groups(network: QuantizedNetwork, layers: Mapping[int, MatchedLayer]) -> list[tuple[int, ...]]:
    """Return the tensors that have to be scaled alike, of each group first one that layers make."""
    graph, known = network.graph, counterparts(network)
    groups: dict[int, tuple[int, ...]] = {}
    kept = {*graph.inputs, *graph.outputs}
    for layer in graph.layers:
        fed = graph.fed(layer)
        if not layer.outputs:  # it writes a variable
            kept.update(fed)
            continue
        made = layer.outputs[0]
        if layer.index in layers:
            groups[made] = (made,)
        elif _keeps_channels(graph, layer, groups):
            shared = dict.fromkeys(tensor for at in fed for tensor in groups[at])
            joined = (*shared, made)
            groups.update(dict.fromkeys(joined, joined))
        else:
            kept.update(layer.outputs, fed)
        keeps = graph.options(layer.index).get("fusedActivationFunction", 0) in _KEEPING_SCALES
        if not keeps or (made not in known and layer.name not in _MOVING):
            kept.add(made)
    return [group for group in dict.fromkeys(groups.values()) if kept.isdisjoint(group)]


def _keeps_channels(graph: Graph, operator: GraphOp, groups: Collection[int]) -> bool:
    """Whether an operator puts out channels that layers have written, each by itself."""
    fed, made = graph.fed(operator), graph.tensors[operator.outputs[0]]
    if operator.name not in _KEEPING_CHANNELS or any(tensor not in groups for tensor in fed):
        return False
    shapes = [graph.tensors[tensor].shape for tensor in fed]
    if operator.name == "ADD":
        return len(fed) == len(operator.inputs) and shapes == [made.shape] * len(fed)
    if operator.name == "MEAN":
        axes, rank = graph.values(operator.inputs[1]), len(shapes[0])
        if rank - 1 in axes % rank:
            return False
    return made.shape[-1] % shapes[0][-1] == 0


def _scales(network: QuantizedNetwork, groups: Sequence[tuple[int, ...]]) -> dict[int, Real]:
    """Return by how much channels are multiplied, (channels,), 1 at least, by the tensor.

    Each is multiplied by what its span lacks of the widest channel's, in that tensor of its group
    where it lacks least.
    """
    known = counterparts(network)
    layers = [known[tensor] for group in groups for tensor in group if tensor in known]
    spans: dict[int, Real] = {}
    wanted = [layer.original_output for layer in layers]
    for row in each_captured(network.original, network.original_rows, wanted):
        for layer in layers:
            limits = activation_limits(network.graph, layer.operator)
            made = np.abs(np.clip(row[layer.original_output], *limits))
            largest = made.reshape(-1, made.shape[-1]).max(axis=0)
            spans[layer.output] = np.maximum(spans.get(layer.output, 0.0), largest)
    scales = {}
    for group in groups:
        channels = network.graph.tensors[group[0]].shape[-1]
        sizes = [spans[at].reshape(-1, channels).max(axis=0) for at in group if at in spans]
        filled = np.max([size / max(size.max(), 1e-30) for size in sizes], axis=0)
        scales.update(dict.fromkeys(group, 1 / np.maximum(filled, 1 / _MOST)))
    return scales


def _scaled(
    network: QuantizedNetwork, layers: Collection[MatchedLayer], scales: Mapping[int, Real]
) -> bytes:
    """Return the original's file with scaled outputs of layers, and weights that take them back."""
    graph, edit = network.original_graph, InPlaceEdit(network.original, "the original")
    for layer in layers:
        weights, bias = (constant_of(graph, graph.operators[layer.original], at) for at in (0, 1))
        made, given = scales.get(layer.output), scales.get(layer.inputs[0])
        if weights is None or (made is None and given is None):
            continue
        values = np.asarray(layer.float_weights, np.float64)
        if given is not None:
            values = values / np.tile(given, values.shape[-1] // len(given))
        if made is not None:
            depthwise = layer.name == "DEPTHWISE_CONV_2D"
            values = values * (made if depthwise else made.reshape(-1, *[1] * (values.ndim - 1)))
            if bias is not None:
                moved = np.asarray(layer.float_bias, np.float64) * made
                edit.set_values(bias, moved.astype(np.float32).reshape(graph.tensors[bias].shape))
        edit.set_values(weights, values.astype(np.float32).reshape(graph.tensors[weights].shape))
    return edit.content()


def _require_equal(network: QuantizedNetwork, scaled: QuantizedNetwork) -> None:
    """Raise UserError where the original does not compute the same as before."""
    rows, outputs = network.original_rows[:_COMPARED], network.original_graph.outputs
    before, after = (captured(side.original, rows, outputs) for side in (network, scaled))
    for tensor in outputs:
        wanted, made = (np.asarray(values[tensor], np.float64) for values in (before, after))
        if not np.allclose(made, wanted, rtol=0, atol=_TOLERANCE * np.abs(wanted).max()):
            raise UserError("the original has operators between layers that are not linear")
