"""The variance of the outputs of a network's layers that rounding of weights and inputs causes.

Each weight has an error that is uniform over its quantization step Δ, so over all inputs x
of a sum these errors have the variance Σ x² Δ²/12. The operator itself, given x² for its inputs
and Δ²/12 for its weights, computes it for every output. Where weights alone are quantized, the
inputs are rounded as the model runs, which adds likewise.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from edgeflare.diagnose.constant_error import constants_in_pairs, rounding_variance
from edgeflare.diagnose.original_layers import OriginalLayers, Real
from edgeflare.models.tflite_graph import Graph, GraphTensor

WEIGHTED = frozenset({"CONV_2D", "DEPTHWISE_CONV_2D", "FULLY_CONNECTED", "TRANSPOSE_CONV"})
"""Operators that are linear in a constant."""

_INPUT_STEPS = 127
"""Steps between zero and the largest input, where inputs are quantized as a model runs."""


def output_variances(
    compressed: Graph,
    original: OriginalLayers,
    pairs: Mapping[int, int],
    given: Callable[[int], list[Real]],
) -> dict[int, Real]:
    """Return the variance of the outputs of operators that rounded weights and inputs cause.

    Args:
        compressed: the graph of the compressed model.
        original: runs the original's operators.
        pairs: position of the original's operator, by that of the compressed model's.
        given: returns the inputs of the compressed model's operator.

    Returns:
        By position of the compressed model's operator; those without weights are left out.

    """
    weighted = {
        op: original_op
        for op, original_op in pairs.items()
        if compressed.operators[op].name in WEIGHTED
        and getattr(_weights(original.graph, original_op), "constant", False)
        and _weights(compressed, op) is not None
    }
    if not weighted:
        return {}
    squares = {op: given(op)[0] ** 2 for op in weighted}
    rounding = {
        second.index: rounding_variance(compressed, first, original.graph, second)
        for op, original_op in weighted.items()
        for first, second in constants_in_pairs(compressed, op, original.graph, original_op)
    }
    found = _summed(original, weighted, squares, rounding)
    hybrid = {
        op: original_op
        for op, original_op in weighted.items()
        if _rounds_inputs(compressed, op) or _rounds_inputs(original.graph, original_op)
    }
    if hybrid:
        rounded = {op: _input_variance(squares[op]) for op in hybrid}
        weights = dict(
            _squared_weights(original.graph, original_op) for original_op in hybrid.values()
        )
        for op, variance in _summed(original, hybrid, rounded, weights).items():
            found[op] = found[op] + variance
    return found


def _summed(
    original: OriginalLayers,
    pairs: Mapping[int, int],
    inputs: Mapping[int, Real],
    constants: Mapping[int, Real],
) -> dict[int, Real]:
    sums = original.linear(list(pairs.values()), [inputs[op] for op in pairs], constants)
    made = {
        op: original.graph.operators[original_op].outputs[0] for op, original_op in pairs.items()
    }
    return {op: np.maximum(sums[tensor], 0.0) for op, tensor in made.items()}


def _weights(graph: Graph, index: int) -> GraphTensor | None:
    """Return the only constant that an operator multiplies its only input with, or None."""
    one = graph.operators[index]
    fed = graph.fed(one)
    constants = [graph.tensors[tensor] for tensor in one.inputs if tensor not in fed]
    constants = [tensor for tensor in constants if len(tensor.shape) > 1]
    return constants[0] if len(fed) == 1 and len(constants) == 1 else None


def _squared_weights(graph: Graph, index: int) -> tuple[int, Real]:
    weights = _weights(graph, index)
    assert weights is not None  # noqa: S101 - asked before
    return weights.index, weights.real(graph.values(weights.index)) ** 2


def _rounds_inputs(graph: Graph, index: int) -> bool:
    """Whether an operator has quantized weights and quantizes its float input as it runs."""
    weights = _weights(graph, index)
    fed = graph.tensors[graph.fed(graph.operators[index])[0]]
    return weights is not None and bool(weights.scales) and not fed.scales


def _input_variance(squares: Real) -> Real:
    step = np.sqrt(squares.max(initial=0.0)) / _INPUT_STEPS
    return np.full_like(squares, step**2 / 12)
