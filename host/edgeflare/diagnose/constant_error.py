"""The error of a layer's constants (weights and biases), and how much of it rounding explains.

A constant is rounded to the nearest step of its scale, so its error is half a step at most, and
the rounding of float32 arithmetic before that: a bias of 10⁹ steps, as in a channel with hardly any
weights, may have an error of 100 of them. Where the original's constants are quantized as well,
half of their steps is added.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from edgeflare.diagnose.layer_difference import distances
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
class ConstantError:
    """The constant of a layer whose error exceeds by most what rounding explains.

    Attributes:
        steps: largest error of the constant, in its own quantization steps; infinity where it alone
            is not finite.
        explained: how large an error rounding explains, in the same steps.
        overflows: whether the type of whole numbers that it has cannot hold the original's value,
            as of a bias in int32 whose step is too small.
        pruned: whether all that is off are values that are 0 now and were the smallest, as after
            pruning by magnitude.

    """

    steps: float
    explained: float
    overflows: bool = False
    pruned: bool = False

    @property
    def beyond(self) -> bool:
        """Whether the error is larger than rounding explains."""
        return self.steps > self.explained


def compare_constants(
    compressed: Graph, op: int, original: Graph, original_op: int
) -> ConstantError | None:
    """Compare the constants of two operators.

    Args:
        compressed: the graph of the compressed model.
        op: position of the operator in it.
        original: the graph of the original.
        original_op: position of the operator in it.

    Returns:
        The worst of them; None where no constant can be compared.

    """
    found = [
        worst
        for first, second in constants_in_pairs(compressed, op, original, original_op)
        if (worst := _worst(compressed, first, original, second)) is not None
    ]
    return max(found, key=lambda error: error.steps - error.explained, default=None)


def constants_in_pairs(
    compressed: Graph, op: int, original: Graph, original_op: int
) -> Iterator[tuple[GraphTensor, GraphTensor]]:
    """Yield the constants of two operators that stand in the same place.

    Each is the tensor that its operator reads: a constant, or what is prepared from one.
    """
    one, other = compressed.operators[op], original.operators[original_op]
    fed = compressed.fed(one)
    for tensor, original_tensor in zip(one.inputs, other.inputs, strict=False):
        first, second = compressed.tensors[tensor], original.tensors[original_tensor]
        source, original_source = compressed.stored(tensor), original.stored(original_tensor)
        if source is None or original_source is None or first.shape != second.shape:
            continue
        if tensor not in fed and source.has_values and original_source.has_values:
            yield first, second


def rounding_variance(
    compressed: Graph, first: GraphTensor, original: Graph, second: GraphTensor
) -> Real:
    """Return the variance of the rounding of two constants, to broadcast with their values."""
    return (_steps(compressed, first) ** 2 + _steps(original, second) ** 2) / 12


def with_excess(
    compressed: Graph, op: int, original: Graph, original_op: int
) -> tuple[dict[int, Real], dict[int, Real]]:
    """Return an original operator's constants as they are, and with the unexplained errors added.

    Returns:
        Real values by tensor of the original. To the second ones, the part of the compressed
        model's errors is added that rounding does not explain.

    """
    known, changed = {}, {}
    for first, second in constants_in_pairs(compressed, op, original, original_op):
        if (found := _off(compressed, first, original, second)) is not None:
            wanted, off, explained = found
            known[second.index] = wanted
            with np.errstate(invalid="ignore"):  # of infinities
                changed[second.index] = wanted + off - np.clip(off, -explained, explained)
    return known, changed


def _worst(
    compressed: Graph, first: GraphTensor, original: Graph, second: GraphTensor
) -> ConstantError | None:
    found = _off(compressed, first, original, second)
    if found is None:
        return None
    wanted, off, explained = found
    # A constant in float32 has no steps of its own: it is counted in units in the last place.
    own = _steps(compressed, first)
    step = np.where(
        own > 0,
        own,
        np.maximum(_LAST_PLACE * np.nan_to_num(np.abs(wanted), nan=0.0, posinf=0.0), _TINY),
    )
    steps, least = np.abs(off) / step, explained / step
    at = int((steps - least).argmax())
    source = compressed.stored(first.index) or first
    overflows = _sums(source) and bool((np.abs(wanted / step).flat[at]) > source.limits[1])
    with np.errstate(invalid="ignore"):  # of infinities
        pruned = _pruned(wanted, wanted + off, steps > least)
    return ConstantError(float(steps.flat[at]), float(least.flat[at]), overflows, pruned)


def _pruned(wanted: Real, got: Real, beyond: NDArray[np.bool_]) -> bool:
    """Whether what is off was among the smallest values, and became 0."""
    if not beyond.any() or np.any(np.abs(got[beyond]) > _LAST_PLACE * np.abs(wanted[beyond])):
        return False
    kept = ~beyond & (np.abs(got) > 0)
    return bool(kept.any() and np.abs(wanted[beyond]).max() <= np.abs(wanted[kept]).min())


def _off(
    compressed: Graph, first: GraphTensor, original: Graph, second: GraphTensor
) -> tuple[Real, Real, Real] | None:
    """Return an original's constant, its error when compressed, and the error that is explained."""
    got, wanted = compressed.real_values(first.index), original.real_values(second.index)
    if got is None or wanted is None or not got.size:
        return None
    known = np.where(np.isfinite(wanted), np.abs(wanted), 0.0)
    lost = _FLOAT32_ROUNDINGS / 2 * _LAST_PLACE * known
    rounded = _HALF_A_STEP * (_steps(compressed, first) + _steps(original, second))
    source = compressed.stored(first.index) or first
    off, cut_off = (
        np.copysign(distances(right, got), np.nan_to_num(got) - np.nan_to_num(right))
        for right in (wanted, _within(source, wanted))
    )
    return wanted, np.where(np.abs(cut_off) < np.abs(off), cut_off, off), rounded + lost


def _within(tensor: GraphTensor, real: Real) -> Real:
    """Return values brought into the range that a quantized constant can hold.

    Where zero is in the middle that range is symmetric, -127 to 127, as the format wants it.
    """
    # A bias has steps that are given by other tensors, and is to be held whatever they are.
    if not tensor.scales or _sums(tensor):
        return real
    lowest, highest = tensor.limits
    lowest = lowest if any(tensor.zero_points) else -highest
    low, high = (tensor.real(np.full(tensor.shape, limit)) for limit in (lowest, highest))
    return np.clip(real, low, high)


def _sums(tensor: GraphTensor) -> bool:
    """Whether a constant has the type of the sums that it is added to, as biases have."""
    return tensor.dtype in ("int32", "int64") and bool(tensor.scales)


def _steps(graph: Graph, tensor: GraphTensor) -> Real:
    """Return the quantization steps of a constant, so that they broadcast with its values."""
    source = graph.stored(tensor.index) or tensor
    if source.scales:
        along = [1] * len(source.shape)
        if len(source.scales) > 1:
            along[source.axis] = -1
        return np.asarray(source.scales, np.float64).reshape(along)
    if source.dtype == "float16":
        values = np.abs(source.real(graph.values(source.index)))
        values = np.minimum(values, float(np.finfo(np.float16).max))
        smallest = float(np.finfo(np.float16).tiny)
        return np.asarray(np.maximum(values, smallest) * np.finfo(np.float16).eps)
    return np.zeros((1,) * len(tensor.shape))
