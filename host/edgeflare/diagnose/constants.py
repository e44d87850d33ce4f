"""How far a layer's constants are from the original's, and how far rounding brings them.

A constant is rounded to the nearest step of its scale, so it is off by half a step at most, and
by what float32 arithmetic loses on the way: a bias of 10⁹ steps, as in a channel with hardly any
weights, may be off by 100 of them. Where the original's constants are quantized as well, half of
their steps comes on top.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from edgeflare.models.tflite_graph import Graph, GraphTensor

Real = NDArray[np.float64]
"""Real values of a constant, in its shape."""

_HALF_A_STEP = 0.5

_FLOAT32_ROUNDINGS = 8
"""Results that are rounded to float32 while a converter quantizes a constant, each by half a unit
in the last place at most: the scales of input and weights, their product, the quotient; and four
where it folds a normalization (times the factor, less the mean times the factor, plus the shift).
Converters of four generations lose 0.8 units in all, of the 8 × ½ that are allowed."""

_LAST_PLACE = float(np.finfo(np.float32).eps)
_TINY = float(np.finfo(np.float32).tiny)


@dataclass(frozen=True, slots=True)
class ConstantDifference:
    """The constant of a layer that is farthest from the original's, by what rounding explains.

    Attributes:
        steps: how far it is off, in its own quantization steps.
        explained: how much of that rounding explains.

    """

    steps: float
    explained: float

    @property
    def beyond(self) -> bool:
        """Whether it is off by more than rounding explains."""
        return self.steps > self.explained


def compare_constants(
    compressed: Graph, mine: int, original: Graph, yours: int
) -> ConstantDifference | None:
    """Compare the constants of two operators.

    Args:
        compressed: the graph of the compressed model.
        mine: position of its operator.
        original: the graph of the original.
        yours: position of its operator.

    Returns:
        The worst of them; None where there is none that can be compared.

    """
    found = [
        worst
        for first, second in constants_in_pairs(compressed, mine, original, yours)
        if (worst := _worst(compressed, first, original, second)) is not None
    ]
    return max(found, key=lambda one: one.steps - one.explained, default=None)


def constants_in_pairs(
    compressed: Graph, mine: int, original: Graph, yours: int
) -> Iterator[tuple[GraphTensor, GraphTensor]]:
    """Yield the constants of two operators that stand in the same place."""
    one, other = compressed.operators[mine], original.operators[yours]
    fed = compressed.fed(one)
    for ours, theirs in zip(one.inputs, other.inputs, strict=False):
        first, second = compressed.tensors[ours], original.tensors[theirs]
        known = second.dtype == "float32" or bool(second.scales)
        if ours not in fed and first.shape == second.shape and second.constant and known:
            yield first, second


def rounding_variance(
    compressed: Graph, first: GraphTensor, original: Graph, second: GraphTensor
) -> Real:
    """Return the variance of the rounding of two constants, to broadcast with their values."""
    return (_steps(compressed, first) ** 2 + _steps(original, second) ** 2) / 12


def with_excess(
    compressed: Graph, mine: int, original: Graph, yours: int
) -> tuple[dict[int, Real], dict[int, Real]]:
    """Return an original operator's constants as they are, and with what rounding does not explain.

    Returns:
        Real values by tensor of the original; the second ones are off by what the compressed
        model's are off by more than is explained.

    """
    known, changed = {}, {}
    for first, second in constants_in_pairs(compressed, mine, original, yours):
        if (found := _off(compressed, first, original, second)) is not None:
            wanted, off, explained = found
            known[second.index] = wanted
            changed[second.index] = wanted + off - np.clip(off, -explained, explained)
    return known, changed


def _worst(
    compressed: Graph, first: GraphTensor, original: Graph, second: GraphTensor
) -> ConstantDifference | None:
    found = _off(compressed, first, original, second)
    if found is None:
        return None
    wanted, off, explained = found
    # A constant in float32 has no steps of its own: it is counted in units in the last place.
    own = _steps(compressed, first)
    step = np.where(own > 0, own, np.maximum(_LAST_PLACE * np.abs(wanted), _TINY))
    steps, least = np.abs(off) / step, explained / step
    at = int((steps - least).argmax())
    return ConstantDifference(float(steps.flat[at]), float(least.flat[at]))


def _off(
    compressed: Graph, first: GraphTensor, original: Graph, second: GraphTensor
) -> tuple[Real, Real, Real] | None:
    """Return an original's constant, by how much it is off, and by how much it may be."""
    got, wanted = _values(compressed, first), _values(original, second)
    if got is None or wanted is None or not got.size:
        return None
    lost = _FLOAT32_ROUNDINGS / 2 * _LAST_PLACE * np.abs(wanted)
    rounded = _HALF_A_STEP * (_steps(compressed, first) + _steps(original, second))
    off, cut_off = got - wanted, got - _within(first, wanted)
    return wanted, np.where(np.abs(cut_off) < np.abs(off), cut_off, off), rounded + lost


def _values(graph: Graph, tensor: GraphTensor) -> Real | None:
    """Return the real values of a constant, also of one that an operator prepares."""
    if tensor.constant:
        return tensor.real(graph.values(tensor.index))
    maker = graph.operators[graph.made_by[tensor.index]]
    if maker.name == "DEQUANTIZE" and graph.tensors[maker.inputs[0]].constant:
        return _values(graph, graph.tensors[maker.inputs[0]])
    return None


def _within(tensor: GraphTensor, real: Real) -> Real:
    """Return values brought into the range that a quantized constant can hold.

    Where zero is in the middle that range is symmetric, -127 to 127, as the format wants it.
    """
    if not tensor.scales:
        return real
    limits = np.iinfo(tensor.dtype)
    lowest = limits.min if any(tensor.zero_points) else -limits.max
    low, high = (tensor.real(np.full(tensor.shape, limit)) for limit in (lowest, limits.max))
    return np.clip(real, low, high)


def _steps(graph: Graph, tensor: GraphTensor) -> Real:
    """Return the quantization steps of a constant, so that they broadcast with its values."""
    maker = graph.made_by.get(tensor.index)
    source = tensor if maker is None else graph.tensors[graph.operators[maker].inputs[0]]
    if source.scales:
        along = [1] * len(source.shape)
        if len(source.scales) > 1:
            along[source.axis] = -1
        return np.asarray(source.scales, np.float64).reshape(along)
    if source.dtype == "float16":
        values = np.abs(source.real(graph.values(source.index)))
        smallest = float(np.finfo(np.float16).tiny)
        return np.asarray(np.maximum(values, smallest) * np.finfo(np.float16).eps)
    return np.zeros((1,) * len(tensor.shape))
