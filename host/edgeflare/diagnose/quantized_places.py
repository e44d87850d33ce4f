"""The places where a file quantizes, as it does it and better, with as many bits, found cheaply.

They are its input, what layers put out, and weights. Better quantizations of activations have the
range with the least squared error on the values that occur, those of weights a scale for each
channel. A place where parts are joined is not quantized anew: each part could keep its scale.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from edgeflare.diagnose.activations_apart import activation_apart, activations_behind
from edgeflare.diagnose.arm_probe import State
from edgeflare.diagnose.compression_error import QuantizedPart
from edgeflare.diagnose.constant_error import constants_in_pairs
from edgeflare.diagnose.layer_difference import LayerName, layer_name
from edgeflare.diagnose.layer_matching import CONVERSIONS
from edgeflare.diagnose.margin_error import ReadOutputs
from edgeflare.diagnose.original_layers import OriginalLayers, Real
from edgeflare.diagnose.rounding_noise import WEIGHTED
from edgeflare.diagnose.tensor_ties import JOINING, PRESCRIBED
from edgeflare.models.quantized_range import QuantizedRange, least_error_range, range_of
from edgeflare.models.tflite_graph import Graph, GraphTensor

INPUT = -1
"""Stands for the model's input among the positions of operators."""


@dataclass(frozen=True, slots=True)
class QuantizedPlace:
    """Where a file quantizes.

    Attributes:
        operator: position of the compressed model's operator, or `INPUT`.
        part: one of the operator's tensors.
        tensor: tensor of the compressed model.
        original: tensor of the original.
        behind: position of the original's operator that makes these values, or `INPUT`.

    """

    operator: int
    part: QuantizedPart
    tensor: int
    original: int
    behind: int

    def name(self, compressed: Graph) -> LayerName:
        """Return the name of the layer, or that of the input."""
        if self.operator == INPUT:
            return LayerName(INPUT, "INPUT", compressed.tensors[self.tensor].name)
        return layer_name(compressed, compressed.operators[self.operator])


@dataclass(frozen=True, slots=True)
class Observed:
    """What was observed on one input.

    Attributes:
        twin: the values of the compressed model, by tensor of its graph.
        original: real values of the original, by tensor of its graph, the input included.
        wanted: what the original's operators make of the twin's inputs, by position of the
            compressed model's.
        read: reads answers from outputs of the original on this input.

    """

    twin: State
    original: Mapping[int, Real]
    wanted: Mapping[int, Real]
    read: ReadOutputs

    def exact(self, place: QuantizedPlace, compressed: Graph) -> Real | None:
        """Return the values at a place before they are quantized there.

        They are what the twin's values before make, so that the errors of earlier layers do not
        count. None where they are not shown, or not finite.
        """
        values = self._before_rounding(place, compressed)
        return values if values is not None and np.isfinite(values).all() else None

    def _before_rounding(self, place: QuantizedPlace, compressed: Graph) -> Real | None:
        if place.operator == INPUT:
            given = self.original.get(place.original)
            return None if given is None else given.astype(np.float64)
        one = compressed.operators[place.operator]
        if one.name == "QUANTIZE":
            shown = one.inputs[0] in self.twin and place.tensor in self.twin
            before = compressed.tensors[one.inputs[0]]
            return before.real(self.twin[one.inputs[0]]) if shown else None
        return self.wanted.get(place.operator)


def quantized_places(
    compressed: Graph, original: Graph, matched: Mapping[int, int]
) -> Iterator[QuantizedPlace]:
    """Yield the places where a file quantizes and may choose how.

    Args:
        compressed: the graph of the compressed model.
        original: the graph of the original.
        matched: position of the original's operator, by that of the compressed model's.

    """
    standing_for = counterparts(compressed, original, matched)
    given = compressed.inputs[0]
    yield QuantizedPlace(INPUT, "output", given, *standing_for[given])
    for layer in compressed.layers:
        if (behind := matched.get(layer.index)) is None:
            quantizes = layer.name == "QUANTIZE"
        else:  # what is quantized before an activation that the original fuses is not known
            quantizes = not activation_apart(compressed, layer.index, original, behind).compressed
        if quantizes and layer.outputs[0] in standing_for and layer.name not in PRESCRIBED:
            yield QuantizedPlace(
                layer.index, "output", layer.outputs[0], *standing_for[layer.outputs[0]]
            )
        if behind is not None and layer.name in WEIGHTED:
            for first, second in constants_in_pairs(compressed, layer.index, original, behind):
                stored = compressed.stored(first.index)
                if stored is not None and stored.scales and len(first.shape) > 1:
                    yield QuantizedPlace(layer.index, "weights", first.index, second.index, behind)


def counterparts(
    compressed: Graph, original: Graph, matched: Mapping[int, int]
) -> dict[int, tuple[int, int]]:
    """Return the original's tensor that a tensor stands for, and the operator that makes it.

    What a QUANTIZE, DEQUANTIZE or CAST puts out stands for the same as what it is given, and so
    does an activation that the original fuses into the layer before.

    Args:
        compressed: the graph of the compressed model.
        original: the graph of the original.
        matched: position of the original's operator, by that of the compressed model's.

    Returns:
        By tensor of the compressed model; the operator is `INPUT` for the model's input.

    """
    found = {compressed.inputs[0]: (original.inputs[0], INPUT)}
    behind = activations_behind(compressed, original, matched)
    for layer in compressed.layers:
        if not layer.outputs:  # CALL_ONCE and ASSIGN_VARIABLE
            continue
        if layer.index in matched:
            other = original.operators[matched[layer.index]]
            found[layer.outputs[0]] = other.outputs[0], other.index
        elif (layer.name in CONVERSIONS or layer.index in behind) and layer.inputs[0] in found:
            found[layer.outputs[0]] = found[layer.inputs[0]]
    return found


_WORTH_TRYING = 4.0
"""Times as large the squared error of a quantization has to be as that of the better one, which is
where its steps are twice as large. Ranges of healthy files are wider than the values of few seeds.
"""

_HARDLY_ROUNDED = 2**24
"""Steps of a range that are as fine as those of float32."""

_KEPT = 2049
"""Values that stand for a tensor's: its quantiles at equal distances, both ends among them."""


@dataclass(frozen=True, slots=True)
class Quantized:
    """The values at a place on one input: before rounding, as the file rounds them, and better."""

    exact: Real
    file: Real
    better: Real


class BetterQuantization:
    """The places of a file whose quantization is worse than another one with as many bits.

    Attributes:
        places: these.

    """

    def __init__(
        self,
        compressed: Graph,
        original: OriginalLayers,
        values: Mapping[QuantizedPlace, Real],
        weights: Collection[QuantizedPlace],
        *,
        few: bool = False,
    ) -> None:
        """Look for better quantizations.

        Args:
            compressed: the graph of the compressed model.
            original: runs the original's layers.
            values: exact values that occur at each activation, or their `quantiles`, by place.
            weights: the places of weights.
            few: the values need not be typical; so only what is cut off tells something.

        """
        self._compressed, self._original = compressed, original
        self._ranges: dict[QuantizedPlace, tuple[QuantizedRange, QuantizedRange]] = {}
        for place, of in values.items():
            known = range_of(compressed.tensors[place.tensor])
            if known is None or (few and not cuts_off(known, of)):
                continue
            better = least_error_range(of, known)
            if known.squared_error(of) >= _WORTH_TRYING * better.squared_error(of):
                self._ranges[place] = known, better
        self._weights: dict[QuantizedPlace, tuple[Real, Real]] = {}
        for place in () if few else weights:
            tensor, file, real, axis = stored_weights(compressed, original.graph, place)
            # A scale for each channel, and as many bits as the file's.
            least = np.finfo(np.float32).tiny
            steps = np.maximum(channel_maxima(real, axis), least) / most_steps(tensor)
            better_ones = np.asarray(np.round(real / steps) * steps)
            if _worst_channel(file - real, better_ones - real, axis) >= _WORTH_TRYING:
                self._weights[place] = file, better_ones
        self.places = (*self._ranges, *self._weights)

    def keep(self, places: Collection[QuantizedPlace]) -> None:
        """Forget all other places."""
        self._ranges = {place: of for place, of in self._ranges.items() if place in places}
        self._weights = {place: of for place, of in self._weights.items() if place in places}
        self.places = (*self._ranges, *self._weights)

    def on(self, observed: Observed) -> dict[QuantizedPlace, Quantized]:
        """Return the values at each place on an input, but for places that it does not show."""
        exact = {
            quantized: observed.exact(quantized, self._compressed) for quantized in self.places
        }
        shown = {quantized: values for quantized, values in exact.items() if values is not None}
        found = {}
        for place, before in self._by_own_weights(shown, observed).items():
            known, better = self._ranges[place]
            # Where parts are joined, each of them could keep its scale.
            one = None if place.operator == INPUT else self._compressed.operators[place.operator]
            joins = one is not None and one.name in JOINING
            best = before if joins else better.nearest(before)
            found[place] = Quantized(before, known.nearest(before), best)
        return found | self._weighed(shown, observed)

    def _by_own_weights(
        self, shown: Mapping[QuantizedPlace, Real], observed: Observed
    ) -> dict[QuantizedPlace, Real]:
        """Return the outputs that the file's own weights lead to, before they are quantized.

        A coarse step turns what is lost in the weights into whole steps, here and there.
        """
        constants: dict[int, Real] = {}
        weighted = []
        ranged = [place for place in self._ranges if place in shown]
        for place in ranged:
            if place.operator == INPUT:
                continue
            if self._compressed.operators[place.operator].name not in WEIGHTED:
                continue
            pairs = constants_in_pairs(
                self._compressed, place.operator, self._original.graph, place.behind
            )
            file = {other.index: self._compressed.real_values(own.index) for own, other in pairs}
            constants |= {tensor: real for tensor, real in file.items() if real is not None}
            weighted.append(place)
        outputs = self._altered(weighted, observed, constants, "own") if weighted else {}
        return {place: outputs.get(place.original, shown[place]) for place in ranged}

    def _weighed(
        self, shown: Mapping[QuantizedPlace, Real], observed: Observed
    ) -> dict[QuantizedPlace, Quantized]:
        """Return the outputs with the original's weights, the file's and better ones."""
        tried = [place for place in self._weights if place in shown]
        if not tried:
            return {}
        file, better = (
            self._altered(
                tried,
                observed,
                {place.original: self._weights[place][side] for place in tried},
                name,
            )
            for side, name in enumerate(("file", "better"))
        )
        made = {place: self._original.made(place.behind) for place in tried}
        return {place: Quantized(shown[place], file[at], better[at]) for place, at in made.items()}

    def _altered(
        self,
        places: Sequence[QuantizedPlace],
        observed: Observed,
        constants: Mapping[int, Real],
        keep: str,
    ) -> dict[int, Real]:
        """Return the outputs of the original's operators with other constants, by tensor."""
        inputs = [
            self._compressed.tensors[tensor].real(observed.twin[tensor])
            for place in places
            for tensor in self._compressed.fed(self._compressed.operators[place.operator])
        ]
        operators = [place.behind for place in places]
        return self._original.altered(operators, inputs, constants, keep=keep)


def quantiles(values: Real) -> Real:
    """Return few values, ascending, that are spread as many."""
    ordered = np.sort(values, axis=None)
    if len(ordered) <= _KEPT:
        return ordered
    return np.asarray(ordered[np.linspace(0, len(ordered) - 1, _KEPT).round().astype(int)])


def cuts_off(known: QuantizedRange, values: Real) -> bool:
    """Whether a range loses more by clipping values than by rounding them."""
    clipped = QuantizedRange(known.low, known.high, _HARDLY_ROUNDED).squared_error(values)
    return clipped > known.squared_error(values) / 2


def stored_weights(
    compressed: Graph, original: Graph, place: QuantizedPlace
) -> tuple[GraphTensor, Real, Real, int]:
    """Return a file's weights as it stores them, their values, the original's, and the axis.

    The axis is the dimension that the channels are along.
    """
    stored = compressed.stored(place.tensor)
    file = compressed.real_values(place.tensor)
    real = original.real_values(place.original)
    assert stored and file is not None and real is not None  # noqa: S101, PT018 - a constant
    depthwise = compressed.operators[place.operator].name == "DEPTHWISE_CONV_2D"
    return stored, file, real, real.ndim - 1 if depthwise else 0


def most_steps(tensor: GraphTensor) -> int:
    """Return how many steps weights may be from zero, on either side."""
    lowest, highest = tensor.limits
    return highest if lowest < 0 else highest // 2


def channel_maxima(real: Real, axis: int) -> Real:
    """Return the largest magnitude of each channel, to broadcast with the values."""
    others = tuple(at for at in range(real.ndim) if at != axis)
    return np.asarray(np.abs(real).max(axis=others, keepdims=True))


def _worst_channel(off: Real, better: Real, axis: int) -> float:
    """Return by what the squared error of weights is larger, in the channel where it is most so."""
    others = tuple(at for at in range(off.ndim) if at != axis)
    squares, best = (np.square(values).mean(axis=others) for values in (off, better))
    return float((squares / np.maximum(best, 1e-30)).max(initial=0.0))
