"""Ranges of activations, fitted to the tensors of the original.

Each range is chosen for the least squared error against the float tensor on the inputs to fit with,
that of a residual branch behind its sum, and that of a picture behind its mean where both have to
have the same steps. The logits of a softmax get the range of `logit_range`,
and are shifted by their biases so that it begins at -128. Biases are derived anew from the
original's, since their scales follow from the ranges, and damaged weights are restored.

A softmax does not see a shift of all its logits, and hardly those far below the best one. So the
range of logits need not have zero in it, nor the least logits: its ends are chosen for the least
squared error of the probabilities. What an activation cuts off of a sum needs no steps: the low end
of a residual branch may lie far above its least value if a ReLU follows the sum.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from itertools import product

import numpy as np
from ai_edge_litert import schema_py_generated as schema
from numpy.typing import NDArray

from edgeflare.diagnose.tensor_ties import (
    TiedTensors,
    consumers,
    pools_all,
    tied_tensors,
)
from edgeflare.models.in_place_edit import InPlaceEdit
from edgeflare.models.quantized_range import QuantizedRange, least_error_range, range_of
from edgeflare.models.tflite_graph import Graph
from edgeflare.repair.fitting.biases import (
    has_integer_bias,
    softmax_choices,
    write_bias,
)
from edgeflare.repair.fitting.quantized_network import MatchedLayer, QuantizedNetwork
from edgeflare.repair.fitting.tensor_capture import each_captured
from edgeflare.repair.fitting.weight_restoration import restore_weights
from edgeflare.tasks.classification import softmax

_MOST_PAIRS = 40_000
_SHARES = np.arange(10, 106, 5) / 100
"""Shares of the values' least and largest one that are tried as ends of the range."""

_Real = NDArray[np.float64]

_HEADROOM = 0.05
"""How far above the largest logit a range reaches at most, as a share of what all logits span."""

_ENDS = 16
"""Lower ends, and upper ends, that are tried."""

_MOST_ROWS = 4000
"""Logits of so many inputs, or pixels of inputs, are enough to choose by."""

Floats = NDArray[np.float32]

_KEPT_VALUES = 200_000
"""Values of a tensor that its range is fitted to, over all inputs."""

_AVERAGED_VALUES = 2**19
"""Values of a tensor whose channels are averaged that are kept, over all inputs."""

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

    """
    network = network.with_content(restore_weights(network))
    return fit_groups(network, tied_tensors(network.graph), progress)


def fit_groups(
    network: QuantizedNetwork,
    groups: Sequence[TiedTensors],
    progress: Callable[[int, int], None],
) -> bytes:
    """Return the compressed model with fitted ranges of some activations, and biases to match.

    Args:
        network: has at least one input to fit with.
        groups: activations of its graph; those that have no counterpart keep their range.
        progress: as that of `fit_ranges`.

    """
    graph = network.graph
    known = counterparts(network)
    groups = [group for group in groups if known.keys() >= set(group.sources)]
    logits = _logit_layers(graph, network.layers)
    layers = [known[source] for group in groups for source in group.sources]
    evaluated = len(network.original_rows) if layers else 0
    total = evaluated + len(groups)
    averaged = {group.sources[0] for group in groups if _averaged(graph, group)}
    values = _values(network, layers, logits, averaged, lambda done: progress(done, total))
    edit = InPlaceEdit(network.content, graph.source)
    shifts: dict[int, float] = {}
    for done, group in enumerate(groups, evaluated):
        progress(done, total)
        found = None
        if group.sources[0] in logits and len(group.sources) == 1:
            operator, choices = logits[group.sources[0]]
            found = logit_range(values[group.sources[0]].reshape(-1, choices))
        if found is not None:
            shifts[operator] = found.low
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
    if _averaged(graph, group):
        return averaged_range(values[first.index], known)
    if len(group.tensors) == len(readers) == 1 and readers[0].name == "ADD":
        others = [
            input_ for input_ in readers[0].inputs if input_ != first.index and input_ in values
        ]
        clipped_by = _CLIPPED_BY.get(_activation(graph, readers[0].index))
        if clipped_by is not None and others and len(values[others[0]]) == len(values[first.index]):
            return summand_range(values[first.index], values[others[0]], clipped_by, known)
    seen = np.concatenate([values[source].ravel() for source in group.sources])
    return least_error_range(seen, known)


def _averaged(graph: Graph, group: TiedTensors) -> bool:
    """Whether a tied tensor is seen by the mean of its whole picture alone."""
    readers = consumers(graph, group.sources[0])
    return len(group.sources) == len(readers) == 1 and pools_all(graph, readers[0])


def counterparts(network: QuantizedNetwork) -> dict[int, MatchedLayer]:
    """Return the layers whose output has a counterpart of the same meaning, by that output."""
    return {
        layer.output: layer
        for layer in network.layers
        if network.original_graph.tensors[layer.original_output].dtype == "float32"
        and _activation(network.original_graph, layer.original)
        in (_NO_ACTIVATION, _activation(network.graph, layer.operator))
    }


def activation_limits(graph: Graph, operator: int) -> tuple[float, float]:
    """Return what an operator's fused activation clips values to; infinite where it does not."""
    return _CLIPPED_BY.get(_activation(graph, operator), _ALL)


def _logit_layers(graph: Graph, layers: Sequence[MatchedLayer]) -> dict[int, tuple[int, int]]:
    """Return the operators that compute logits which may be shifted, by their outputs.

    With each stands how many of its values in a row are the choices of a softmax.
    """
    found = {}
    for layer in layers:
        choices = softmax_choices(graph, layer) or 0
        if choices > 1 and has_integer_bias(graph, layer):
            found[layer.output] = layer.operator, choices
    return found


def _values(
    network: QuantizedNetwork,
    layers: Sequence[MatchedLayer],
    whole: Collection[int],
    averaged: Collection[int],
    progress: Callable[[int], None],
) -> dict[int, Floats]:
    """Return values of the original's tensors on all inputs, by the compressed model's tensor.

    Those of the tensors `whole` are (n, *shape), those of some channels of `averaged` ones
    (channels, places); of all others some are kept, flat. `progress` is told how many inputs are
    evaluated.
    """
    if not layers:
        return {}
    kept: dict[int, list[Floats]] = {layer.output: [] for layer in layers}
    tensors = [layer.original_output for layer in layers]
    budget = max(1, _KEPT_VALUES // len(network.original_rows))
    rows = each_captured(network.original, network.original_rows, tensors)
    for number, row in enumerate(rows):
        progress(number)
        for layer in layers:
            made = row[layer.original_output].astype(np.float32)
            made = np.clip(made, *activation_limits(network.graph, layer.operator))
            if layer.output in whole:
                some = made[None]
            elif layer.output in averaged:
                channels = made.reshape(-1, made.shape[-1]).T
                most = _AVERAGED_VALUES // len(network.original_rows) // channels.shape[1]
                some = _some(channels, max(1, most), number)
            else:
                some = _some(made.ravel(), budget, number)
            kept[layer.output].append(some)
    return {tensor: np.concatenate(values) for tensor, values in kept.items()}


def _some(values: Floats, budget: int, number: int) -> Floats:
    """Return copies of values, or channels, at equal distances, others for each input.

    So those of tensors of one shape are from the same places.
    """
    stride = -(-len(values) // budget) | 1  # an odd number meets all channels in turn
    some: Floats = values[number % stride :: stride].copy()
    return some


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


def logit_range(logits: NDArray[np.floating]) -> QuantizedRange | None:
    """Return the range, which may lie above or below zero; None where all logits are alike.

    Args:
        logits: the original's, (..., classes), two classes at least.

    """
    rows = logits.reshape(-1, logits.shape[-1]).astype(np.float64)
    rows = rows[:: -(-len(rows) // _MOST_ROWS)]
    ordered = np.sort(rows, axis=-1)
    best, runner_up = ordered[:, -1], ordered[:, -2]
    largest = float(best.max())
    largest += _HEADROOM * (largest - float(ordered[:, 0].min()))
    lows = np.linspace(ordered[:, 0].min(), runner_up.min(), _ENDS)
    highs = np.linspace(max(runner_up.max(), lows[-1]), largest, _ENDS)
    ends = product(lows.tolist(), highs.tolist())
    tried = [QuantizedRange(low, high) for low, high in ends if low < high]
    if not tried:
        return None
    wanted = softmax(rows)

    def squared_error(one: QuantizedRange) -> float:
        step = (one.high - one.low) / 255
        rounded = one.low + step * np.clip(np.round((rows - one.low) / step), 0, 255)
        return float(((softmax(rounded) - wanted) ** 2).sum())

    return min(tried, key=squared_error)


def summand_range(
    values: NDArray[np.floating],
    others: NDArray[np.floating],
    clipped_by: tuple[float, float],
    known: QuantizedRange,
) -> QuantizedRange:
    """Return the range of values with the least squared error behind sum and activation.

    Args:
        values: real ones, (n,).
        others: what each is added to, (n,).
        clipped_by: the least and the largest value that the activation leaves.
        known: a range that is kept where no other has less error, or all values are zero.

    """
    stride = -(-len(values) // _MOST_PAIRS)
    first, second = values[::stride].astype(np.float64), others[::stride].astype(np.float64)
    wanted = np.clip(first + second, *clipped_by)

    def squared_error(tried: QuantizedRange) -> float:
        made = np.clip(tried.nearest(first) + second, *clipped_by)
        return float(((made - wanted) ** 2).sum())

    return min((known, *_ranges(*_shares_of(first))), key=squared_error)


def averaged_range(values: NDArray[np.floating], known: QuantizedRange) -> QuantizedRange:
    """Return the range with the least squared error of means that have the same steps.

    Args:
        values: real ones, (means, values of each).
        known: a range that is kept where no other has less error, or all values are zero.

    """
    exact = values.astype(np.float64)
    wanted = exact.mean(axis=1)
    lows, highs = _shares_of(exact)

    def squared_error(one: QuantizedRange) -> float:
        made = one.nearest(one.nearest(exact).mean(axis=1))
        return float(((made - wanted) ** 2).sum())

    def best(lows: Sequence[float], highs: Sequence[float]) -> QuantizedRange:
        return min((known, *_ranges(lows, highs)), key=squared_error)

    # One end after the other: all pairs of a tensor with values on both sides take minutes.
    found = best([min(lows)], highs)
    found = best(lows, [found.high])
    return min((found, best([found.low], highs)), key=squared_error)


def _shares_of(values: _Real) -> tuple[Sequence[float], Sequence[float]]:
    """Return shares of the least and of the largest value, 0 where there is none on that side."""
    least, largest = min(0.0, values.min()), max(0.0, values.max())
    lows = least * _SHARES if least < 0 else np.zeros(1)
    highs = largest * _SHARES if largest > 0 else np.zeros(1)
    return lows.tolist(), highs.tolist()


def _ranges(lows: Sequence[float], highs: Sequence[float]) -> list[QuantizedRange]:
    return [QuantizedRange(low, high) for low, high in product(lows, highs) if low < high]
