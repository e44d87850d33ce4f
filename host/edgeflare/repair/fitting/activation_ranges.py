"""Ranges of activations, fitted to the tensors of the original.

Each range is chosen for the least squared error against the float tensor on the inputs to fit with,
that of a residual branch behind its sum. The logits of a softmax get the range of `logit_range`,
and are shifted by their biases so that it begins at -128. Biases are derived anew from the
original's, since their scales follow from the ranges, and damaged weights are restored.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence

import numpy as np
from ai_edge_litert import schema_py_generated as schema
from numpy.typing import NDArray

from edgeflare.diagnose.tied_tensors import TiedTensors, consumers, tied_tensors
from edgeflare.models.in_place_edit import InPlaceEdit
from edgeflare.models.quantized_range import QuantizedRange, least_error_range, range_of
from edgeflare.models.tflite_graph import Graph
from edgeflare.repair.fitting.captured_tensors import each_captured
from edgeflare.repair.fitting.derived_biases import (
    feeds_softmax_alone,
    has_integer_bias,
    write_bias,
)
from edgeflare.repair.fitting.logit_range import logit_range
from edgeflare.repair.fitting.matched_layers import MatchedLayer
from edgeflare.repair.fitting.quantized_network import QuantizedNetwork
from edgeflare.repair.fitting.summand_range import summand_range
from edgeflare.repair.fitting.weight_restoration import restore_weights

Floats = NDArray[np.float32]

_KEPT_VALUES = 200_000
"""Of a tensor, over all inputs: what its range is fitted to."""

_NO_ACTIVATION = schema.ActivationFunctionType.NONE
_ALL = (-np.inf, np.inf)
_CLIPPED_BY = {
    schema.ActivationFunctionType.RELU: (0.0, np.inf),
    schema.ActivationFunctionType.RELU_N1_TO_1: (-1.0, 1.0),
    schema.ActivationFunctionType.RELU6: (0.0, 6.0),
}
"""What fused activations leave of values; the original may have them as operators of their own."""


def fit_ranges(network: QuantizedNetwork, progress: Callable[[int, int], None]) -> bytes:
    """Return the compressed model with fitted ranges, biases and sound weights.

    Activations whose counterpart the original does not have keep their range; so do the model's
    inputs and outputs, and outputs whose quantization the format prescribes. Call `fit_biases` and
    `fit_rounding` afterwards: their changes to biases are not kept.

    Args:
        network: has at least one input to fit with.
        progress: is told how many inputs the original has evaluated and how many ranges are
            fitted, and of how many.

    Returns:
        A file of the same length, with the same operators.

    Raises:
        UserError: an operator with weights has no counterpart, constants are shared, or the
            original does not run.
        InfrastructureError: no worker process can be started, or it is lost.

    """
    network = network.with_content(restore_weights(network))
    graph = network.graph
    known = counterparts(network)
    groups = [group for group in tied_tensors(graph) if known.keys() >= set(group.sources)]
    logits = _logit_layers(graph, network.layers)
    layers = [known[one] for group in groups for one in group.sources]
    evaluated = len(network.original_rows) if layers else 0
    total = evaluated + len(groups)
    values = _values(network, layers, logits, lambda done: progress(done, total))
    edit = InPlaceEdit(network.content, graph.source)
    shifts: dict[int, float] = {}
    for done, group in enumerate(groups, evaluated):
        progress(done, total)
        found = None
        if group.sources[0] in logits and len(group.sources) == 1:
            found = logit_range(values[group.sources[0]])
        if found is not None:
            shifts[logits[group.sources[0]]] = found.low
            found = QuantizedRange(0.0, found.high - found.low)
        else:
            found = _fitted(graph, group, values)
        scale, zero_point = found.quantization
        for tensor in group.tensors:
            edit.set_quantization(tensor, [scale], [zero_point])
    progress(total, total)
    return _with_biases(network.with_content(edit.content()), shifts)


def _fitted(graph: Graph, group: TiedTensors, values: Mapping[int, Floats]) -> QuantizedRange:
    """Return the range of tied tensors that has the least squared error."""
    first = graph.tensors[group.sources[0]]
    known = range_of(first)
    assert known is not None  # noqa: S101 - tied tensors have one scale
    readers = consumers(graph, first.index)
    if len(group.tensors) == len(readers) == 1 and readers[0].name == "ADD":
        others = [one for one in readers[0].inputs if one != first.index and one in values]
        clipped_by = _CLIPPED_BY.get(_activation(graph, readers[0].index))
        if clipped_by is not None and others and len(values[others[0]]) == len(values[first.index]):
            return summand_range(values[first.index], values[others[0]], clipped_by, known)
    seen = np.concatenate([values[one].ravel() for one in group.sources])
    return least_error_range(seen, known)


def counterparts(network: QuantizedNetwork) -> dict[int, MatchedLayer]:
    """Return the layers whose output has a counterpart of the same meaning, by that output."""
    return {
        one.output: one
        for one in network.layers
        if network.original_graph.tensors[one.original_output].dtype == "float32"
        and _activation(network.original_graph, one.original)
        in (_NO_ACTIVATION, _activation(network.graph, one.operator))
    }


def activation_limits(graph: Graph, operator: int) -> tuple[float, float]:
    """Return what an operator's fused activation clips values to; infinite where it does not."""
    return _CLIPPED_BY.get(_activation(graph, operator), _ALL)


def _logit_layers(graph: Graph, layers: Sequence[MatchedLayer]) -> dict[int, int]:
    """Return the operators that compute logits which may be shifted, by their outputs."""
    return {
        one.output: one.operator
        for one in layers
        if has_integer_bias(graph, one) and feeds_softmax_alone(graph, one)
    }


def _values(
    network: QuantizedNetwork,
    layers: Sequence[MatchedLayer],
    whole: Collection[int],
    progress: Callable[[int], None],
) -> dict[int, Floats]:
    """Return values of the original's tensors on all inputs, by the compressed model's tensor.

    Those of the tensors `whole` are (n, ..., classes); of all others some are kept, flat.
    `progress` is told how many inputs are evaluated.
    """
    if not layers:
        return {}
    kept: dict[int, list[Floats]] = {one.output: [] for one in layers}
    tensors = [one.original_output for one in layers]
    budget = max(1, _KEPT_VALUES // len(network.original_rows))
    rows = each_captured(network.original, network.original_rows, tensors)
    for number, row in enumerate(rows):
        progress(number)
        for one in layers:
            made = row[one.original_output].astype(np.float32)
            made = np.clip(made, *activation_limits(network.graph, one.operator))
            kept[one.output].append(
                made[None] if one.output in whole else _some(made.ravel(), budget, number)
            )
    return {tensor: np.concatenate(values) for tensor, values in kept.items()}


def _some(values: Floats, budget: int, number: int) -> Floats:
    """Return values at equal distances, beginning elsewhere for each input.

    So those of tensors of one shape are from the same places.
    """
    stride = -(-len(values) // budget) | 1  # an odd number meets all channels in turn
    return values[number % stride :: stride]


def _activation(graph: Graph, operator: int) -> int:
    return int(graph.options(operator).get("fusedActivationFunction", _NO_ACTIVATION))


def _with_biases(network: QuantizedNetwork, shifts: Mapping[int, float]) -> bytes:
    """Return the file with the original's biases in the steps of the new ranges, some shifted."""
    edit = InPlaceEdit(network.content, network.graph.source)
    for layer in network.layers:
        if has_integer_bias(network.graph, layer):
            real = np.asarray(layer.float_bias, np.float64) - shifts.get(layer.operator, 0.0)
            write_bias(edit, network.graph, layer, real)
    return edit.content()
