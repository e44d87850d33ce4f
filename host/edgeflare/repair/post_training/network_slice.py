"""A slice of a network: the synapses and neurons that contribute most to some of its outputs.

NNSlicer as §3.1.1 of the paper describes it. The contribution of a neuron is passed backward: a
synapse contributes the sign of its neuron's contribution, times how far both of its neurons are
from their means over all inputs (Equations 6 and 7), times its weight.

Differences from the text: contributions are added up over single inputs, not computed once from the
mean of a group, which would leave each synapse of a convolution with -1, 0 or 1; and the share that
is kept is taken of each layer, whose sums are not alike. What only moves or picks values passes
contributions on, and what adds or multiplies two tensors does so by the sign of both.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import prod

import numpy as np
from numpy.typing import NDArray

from edgeflare.diagnose.rounding_noise import WEIGHTED
from edgeflare.models.tflite_graph import Graph, GraphOp
from edgeflare.repair.fitting.fake_quantization import FakeQuantizedNetwork
from edgeflare.repair.fitting.tensor_capture import network_inputs
from edgeflare.whitebox.differentiable_network import needed_layers

Real = NDArray[np.float64]

_MOVING = frozenset({"RESHAPE", "TRANSPOSE"})
"""Operators whose output has the values of their first input at other places."""


@dataclass(frozen=True, slots=True, eq=False)
class NetworkSlice:
    """What is kept of a network.

    Attributes:
        synapses: the kept weights as a mask in their shape, by the tensor of the weights.
        neurons: the channels to which a kept synapse leads, by the tensor of the output.

    """

    synapses: Mapping[int, NDArray[np.bool_]]
    neurons: Mapping[int, NDArray[np.bool_]]


def group_slices(
    graph: Graph,
    rows: NDArray[np.generic],
    groups: NDArray[np.int64],
    criterion: tuple[int, Real],
    share: float,
) -> dict[int, NetworkSlice]:
    """Return the slice of each group of inputs.

    Args:
        graph: the network.
        rows: all inputs, as it takes them, (n, ...).
        groups: the group of each, (n,).
        criterion: a tensor, and the contributions of its channels for each input, (n, channels).
        share: of the synapses of each layer, above 0 and at most 1.

    """
    layers = needed_layers(graph, criterion[:1])
    network = FakeQuantizedNetwork(graph, [layer.outputs[0] for layer in layers])
    batches = [
        neuron_values(graph, layers, dict(zip(network.outputs, values, strict=True)))
        for values in network.each_batch(rows)
    ]
    given = {
        at: graph.tensors[at].real(raw.reshape(-1, *graph.tensors[at].shape))
        for at, raw in network_inputs(graph, rows).items()
    }
    neurons = {
        **{at: np.concatenate([batch[at] for batch in batches]) for at in network.outputs},
        **neuron_values(graph, layers, given),
    }
    reactions = {at: neuron - neuron.mean(axis=0) for at, neuron in neurons.items()}
    found = {}
    for group in np.unique(groups).tolist():
        its = groups == group
        found[group] = network_slice(
            graph,
            layers,
            {at: reaction[its] for at, reaction in reactions.items()},
            (criterion[0], criterion[1][its]),
            share,
        )
    return found


def network_slice(
    graph: Graph,
    layers: Sequence[GraphOp],
    neurons: Mapping[int, Real],
    criterion: tuple[int, Real],
    share: float,
) -> NetworkSlice:
    """Return the share of each layer's synapses that contributes most.

    Args:
        graph: the network.
        layers: its operators from the input to the criterion, in execution order.
        neurons: how far the channels of each tensor are from their means on the inputs of the
            slice, by tensor, (inputs, channels); see `neuron_values`.
        criterion: a tensor, and the contributions of its channels, (inputs, channels).
        share: of the synapses of each layer, above 0 and at most 1.

    """
    contributions = dict([criterion])
    synapses, kept = {}, {}
    for layer in reversed(layers):
        made = layer.outputs[0]
        if made not in contributions:
            continue
        of_channels = _of_channels(contributions[made], neurons[made])
        ends = np.sign(of_channels * neurons[made])
        if layer.name in _MOVING:
            found = list(_moved_back(graph, layer, contributions[made], neurons))
        elif layer.name in WEIGHTED and graph.tensors[layer.inputs[1]].constant:
            weights = np.sign(graph.tensors[layer.inputs[1]].real(graph.values(layer.inputs[1])))
            scores, passed = _weighted(layer, weights, ends, np.sign(neurons[layer.inputs[0]]))
            synapses[layer.inputs[1]] = _largest(scores, share)
            kept[made] = _led_to(layer, synapses[layer.inputs[1]])
            found = [(layer.inputs[0], passed)]
        else:
            found = list(_passed_on(graph, layer, of_channels, ends, neurons))
        for tensor, of in found:
            contributions[tensor] = _sum(of, contributions.get(tensor), neurons[tensor])
    return NetworkSlice(synapses, kept)


def neuron_values(
    graph: Graph, layers: Sequence[GraphOp], values: Mapping[int, NDArray[np.floating]]
) -> dict[int, Real]:
    """Return what neurons are on inputs: the means of the channels of tensors, along the last axis.

    What a FULLY_CONNECTED reads has as many neurons as it has weights for each output.

    Args:
        graph: the network.
        layers: those that read the tensors.
        values: values of the tensors, (inputs, *shape).

    Returns:
        (inputs, channels), by tensor.

    """
    flat = {
        layer.inputs[0]: graph.tensors[layer.inputs[1]].shape[-1]
        for layer in layers
        if layer.name == "FULLY_CONNECTED"
    }
    return {
        tensor: np.asarray(
            made.reshape(len(made), -1, flat.get(tensor) or made.shape[-1]).mean(axis=1),
            np.float64,
        )
        for tensor, made in values.items()
    }


def _weighted(one: GraphOp, signs: Real, ends: Real, starts: Real) -> tuple[Real, Real]:
    """Return the contributions of synapses, and those of the neurons that they begin at.

    Args:
        one: the operator.
        signs: signs of its weights, (outputs, ..., inputs); (1, ..., outputs) of a depthwise one.
        ends: contributions of its outputs, (rows, outputs), as signs.
        starts: signs of what its inputs are, (rows, inputs).

    """
    if one.name != "DEPTHWISE_CONV_2D":
        groups = starts.shape[1] // signs.shape[-1]
        if groups == 1:
            each = (ends.T @ starts).reshape(-1, *[1] * (signs.ndim - 2), starts.shape[1])
            by_pair = signs.reshape(len(signs), -1, starts.shape[1]).sum(axis=1)
            return signs * each, starts * (ends @ by_pair)
        parts = [
            _weighted(one, *part)
            for part in zip(
                np.split(signs, groups),
                np.split(ends, groups, axis=1),
                np.split(starts, groups, axis=1),
                strict=True,
            )
        ]
        return (
            np.concatenate([scores for scores, _ in parts]),
            np.concatenate([passed for _, passed in parts], axis=1),
        )
    times = ends.shape[1] // starts.shape[1]
    both = ends * np.repeat(starts, times, axis=1)
    passed = both * signs.reshape(-1, ends.shape[1]).sum(axis=0)
    return signs * both.sum(axis=0), passed.reshape(len(ends), -1, times).sum(axis=2)


def _of_channels(made: Real, neurons: Real) -> Real:
    """Return contributions of channels, given those, or those of all values of a tensor."""
    return np.asarray(made.reshape(len(made), -1, neurons.shape[1]).sum(axis=1))


def _sum(one: Real, other: Real | None, neurons: Real) -> Real:
    """Return the contributions by two readers of a tensor, of which the other one may be none."""
    if other is None or one.shape == other.shape:
        return one if other is None else one + other
    return _of_channels(one, neurons) + _of_channels(other, neurons)


def _moved_back(
    graph: Graph, one: GraphOp, made: Real, neurons: Mapping[int, Real]
) -> Iterator[tuple[int, Real]]:
    """Yield the contributions of what RESHAPE or TRANSPOSE reads; none where they are not known.

    Those of all values are moved back. Those of channels are passed on where these stay the last.
    """
    given, shape = one.inputs[0], graph.tensors[one.outputs[0]].shape
    whole, channels = made.shape[1] == prod(shape), neurons[given].shape[1]
    if one.name == "RESHAPE":
        if whole:
            yield given, made
        elif made.shape[1] % channels == 0:
            yield given, made.reshape(len(made), -1, channels).sum(axis=1)
    elif graph.tensors[one.inputs[1]].constant:
        order = graph.values(one.inputs[1]).astype(int)
        if whole:
            axes = 0, *(np.argsort(order) + 1)
            yield given, made.reshape(-1, *shape).transpose(axes).reshape(len(made), -1)
        elif order[-1] == len(order) - 1 and made.shape[1] == channels:
            yield given, made


def _passed_on(
    graph: Graph, one: GraphOp, made: Real, ends: Real, neurons: Mapping[int, Real]
) -> Iterator[tuple[int, Real]]:
    """Yield the contributions that an operator without weights passes to what it reads."""
    fed = [tensor for tensor in graph.fed(one) if tensor in neurons]
    for tensor in fed:
        channels = neurons[tensor].shape[1]
        if len(fed) > 1 and channels == made.shape[1]:
            yield tensor, np.sign(ends * neurons[tensor])
        elif len(fed) > 1 and channels == 1:  # broadcast along the channels
            yield tensor, np.sign(ends * neurons[tensor]).sum(axis=1, keepdims=True)
        elif len(fed) == 1 and made.shape[1] % channels == 0:
            yield tensor, made.reshape(len(made), -1, channels).sum(axis=1)


def _largest(scores: Real, share: float) -> NDArray[np.bool_]:
    """Return where the largest values are; of equal ones the first."""
    kept = np.zeros(scores.size, bool)
    order = np.argsort(-scores, axis=None, kind="stable")
    kept[order[: max(1, round(share * scores.size))]] = True
    return kept.reshape(scores.shape)


def _led_to(one: GraphOp, synapses: NDArray[np.bool_]) -> NDArray[np.bool_]:
    if one.name == "DEPTHWISE_CONV_2D":
        return np.asarray(synapses.reshape(-1, synapses.shape[-1]).any(axis=0))
    return np.asarray(synapses.reshape(len(synapses), -1).any(axis=1))
