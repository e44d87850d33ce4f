"""The places where a file quantizes: its input, what layers put out, and weights."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from edgeflare.diagnose.compression_error import QuantizedPart
from edgeflare.diagnose.constant_error import constants_in_pairs
from edgeflare.diagnose.layer_difference import LayerName, layer_name
from edgeflare.diagnose.layer_matching import CONVERSIONS
from edgeflare.diagnose.margin_error import ReadOutputs
from edgeflare.diagnose.original_layers import Real
from edgeflare.diagnose.probed_arm import State
from edgeflare.diagnose.rounding_noise import WEIGHTED
from edgeflare.diagnose.tied_tensors import PRESCRIBED
from edgeflare.models.tflite_graph import Graph

INPUT = -1
"""Stands for the model's input among the positions of operators."""


@dataclass(frozen=True, slots=True)
class QuantizedPlace:
    """Where a file quantizes.

    Attributes:
        operator: position of the compressed model's operator, or `INPUT`.
        part: which of its tensors.
        tensor: the compressed model's.
        original: the original's.
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
    for one in compressed.layers:
        quantizes = one.index in matched or one.name == "QUANTIZE"
        if quantizes and one.outputs[0] in standing_for and one.name not in PRESCRIBED:
            yield QuantizedPlace(one.index, "output", one.outputs[0], *standing_for[one.outputs[0]])
        if one.index in matched and one.name in WEIGHTED:
            behind = matched[one.index]
            for first, second in constants_in_pairs(compressed, one.index, original, behind):
                stored = compressed.stored(first.index)
                if stored is not None and stored.scales and len(first.shape) > 1:
                    yield QuantizedPlace(one.index, "weights", first.index, second.index, behind)


def counterparts(
    compressed: Graph, original: Graph, matched: Mapping[int, int]
) -> dict[int, tuple[int, int]]:
    """Return the original's tensor that a tensor stands for, and the operator that makes it.

    What a QUANTIZE, DEQUANTIZE or CAST puts out stands for the same as what it is given.

    Args:
        compressed: the graph of the compressed model.
        original: the graph of the original.
        matched: position of the original's operator, by that of the compressed model's.

    Returns:
        By tensor of the compressed model; the operator is `INPUT` for the model's input.

    """
    found = {compressed.inputs[0]: (original.inputs[0], INPUT)}
    for one in compressed.layers:
        if not one.outputs:  # CALL_ONCE and ASSIGN_VARIABLE
            continue
        if one.index in matched:
            other = original.operators[matched[one.index]]
            found[one.outputs[0]] = other.outputs[0], other.index
        elif one.name in CONVERSIONS and one.inputs[0] in found:
            found[one.outputs[0]] = found[one.inputs[0]]
    return found
