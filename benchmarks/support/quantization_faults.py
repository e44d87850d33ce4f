"""Faults of quantization, planted in a file in its place: wrong scales, biases, weights, ranges."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from edgeflare.diagnose.tensor_ties import TiedTensors, tied_tensors
from edgeflare.models.in_place_edit import InPlaceEdit
from edgeflare.models.quantized_range import QuantizedRange, range_of
from edgeflare.models.tflite_graph import Graph
from edgeflare.repair.fitting.biases import has_integer_bias, write_bias
from edgeflare.repair.fitting.quantized_network import MatchedLayer, matched_layers

RISE = 1.5
"""Times as many inputs deviate with a harmful fault as without, at least."""


@dataclass(frozen=True, slots=True)
class QuantizationFault:
    """A planted fault.

    Attributes:
        kind: a key of `FAULTS`.
        operator: the position of the operator that it is in, or whose output is clipped.
        amount: how much of it there is; see `FAULTS`.
        content: the file with the fault, as long as without.

    """

    kind: str
    operator: int
    amount: float
    content: bytes


def harmful_fault(
    draw: Callable[[], QuantizationFault], deviating: Callable[[bytes], int], healthy: int
) -> tuple[QuantizationFault, int]:
    """Draw faults until one makes enough more inputs deviate.

    Args:
        draw: draws a fault; see `drawn_fault`.
        deviating: returns how many inputs deviate with a file.
        healthy: how many do without a fault.

    Returns:
        The fault, and how many inputs deviate with it.

    """
    while True:
        fault = draw()
        count = deviating(fault.content)
        if count >= RISE * healthy:
            return fault, count


def drawn_fault(
    content: bytes, original: bytes, kind: str, rng: np.random.Generator
) -> QuantizationFault:
    """Plant a fault at a drawn place, by a drawn amount.

    Args:
        content: an int8 model.
        original: its float model.
        kind: a key of `FAULTS`.
        rng: the generator.

    Raises:
        UserError: the two do not match.

    """
    network = Network(content, original)
    return FAULTS[kind](network, rng)


class Network:
    """A file to plant faults in."""

    def __init__(self, content: bytes, original: bytes) -> None:
        self.content, self.graph = content, Graph(content)
        layers = matched_layers(self.graph, Graph(original, "the original"))
        self.layers = [one for one in layers if has_integer_bias(self.graph, one)]

    def drawn_layer(self, rng: np.random.Generator) -> MatchedLayer:
        """Return one of the layers."""
        return self.layers[int(rng.integers(len(self.layers)))]


def _wrong_scale(network: Network, rng: np.random.Generator) -> QuantizationFault:
    layer, graph = network.drawn_layer(rng), network.graph
    amount = float(rng.choice([rng.uniform(0.6, 0.95), rng.uniform(1.05, 1.6)]))
    edit = InPlaceEdit(network.content)
    for tensor in (layer.weights, layer.bias):
        if tensor is not None:
            known = graph.tensors[tensor]
            scales = [amount * one for one in known.scales]
            edit.set_quantization(tensor, scales, known.zero_points)
    return QuantizationFault("scale", layer.operator, amount, edit.content())


def _no_bias(network: Network, rng: np.random.Generator) -> QuantizationFault:
    layer = network.drawn_layer(rng)
    edit = InPlaceEdit(network.content)
    if layer.bias is not None:
        edit.set_values(layer.bias, np.zeros_like(network.graph.values(layer.bias)))
    return QuantizationFault("bias", layer.operator, 0.0, edit.content())


def _clipped_channel(network: Network, rng: np.random.Generator) -> QuantizationFault:
    layer, graph = network.drawn_layer(rng), network.graph
    amount = float(rng.uniform(0.05, 0.5))
    edit = InPlaceEdit(network.content)
    if layer.weights is not None:
        values = graph.values(layer.weights).copy()
        axis = 3 if layer.name == "DEPTHWISE_CONV_2D" else 0
        channel = np.moveaxis(values, axis, 0)[int(rng.integers(values.shape[axis]))]
        limit = int(amount * np.abs(channel.astype(np.int16)).max())
        channel[...] = np.clip(channel, -limit, limit)
        edit.set_values(layer.weights, values)
    return QuantizationFault("channel", layer.operator, amount, edit.content())


def _clipped_range(network: Network, rng: np.random.Generator) -> QuantizationFault:
    """Clip the output of an operator, as if its range had been calibrated on unlike inputs."""
    groups = tied_tensors(network.graph)
    group = groups[int(rng.integers(len(groups)))]
    amount = float(rng.uniform(0.15, 0.7))
    return with_range(network, group, scaled_range(network, group, amount), "ranges", amount)


def scaled_range(network: Network, group: TiedTensors, amount: float) -> QuantizedRange:
    """Return the range of activations, so many times as wide."""
    first = network.graph.tensors[group.sources[0]]
    known = range_of(first)
    assert known is not None
    return QuantizedRange(known.low * amount, known.high * amount)


def with_range(
    network: Network, group: TiedTensors, wanted: QuantizedRange, kind: str, amount: float
) -> QuantizationFault:
    """Give activations another range, and derive the biases of the layers that read them anew."""
    graph = network.graph
    scale, zero_point = wanted.quantization
    edit = InPlaceEdit(network.content)
    for tensor in group.tensors:
        edit.set_quantization(tensor, [scale], [zero_point])
    content = edit.content()
    edit, changed = InPlaceEdit(content), Graph(content)
    for layer in network.layers:
        if layer.bias is not None and layer.inputs[0] in group.tensors:
            real = graph.tensors[layer.bias].real(graph.values(layer.bias))
            write_bias(edit, changed, layer, real.ravel())
    operator = graph.made_by[group.sources[0]]
    return QuantizationFault(kind, operator, amount, edit.content())


FAULTS: dict[str, Callable[[Network, np.random.Generator], QuantizationFault]] = {
    "scale": _wrong_scale,
    "bias": _no_bias,
    "channel": _clipped_channel,
    "ranges": _clipped_range,
}
"""One layer's scales times .6 to 1.6; its biases zero; the weights of one channel clipped at .05 to
.5 of the largest; the range of one activation at .15 to .7 of what it was, biases derived anew."""
