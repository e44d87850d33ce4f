"""How much the outputs of a network's layers vary because weights and inputs are rounded.

Each weight is off by an error that is uniform over its quantization step Δ, so over all inputs x
of a sum these errors have the variance Σ x² Δ²/12. The operator itself, given x² for its inputs
and Δ²/12 for its weights, computes it for every output. Where weights alone are quantized, the
inputs are rounded as the model runs, which adds likewise.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from edgeflare.diagnose.constants import constants_in_pairs, rounding_variance
from edgeflare.diagnose.original_layers import OriginalLayers, Real
from edgeflare.models.tflite_graph import Graph, GraphTensor

WEIGHTED = frozenset({"CONV_2D", "DEPTHWISE_CONV_2D", "FULLY_CONNECTED", "TRANSPOSE_CONV"})
"""Operators that are linear in a constant, which is their second tensor but for one."""

_INPUT_STEPS = 127
"""Between zero and the largest input, where inputs are rounded as a model runs."""


def output_variances(
    compressed: Graph,
    original: OriginalLayers,
    pairs: Mapping[int, int],
    given: Callable[[int], list[Real]],
) -> dict[int, Real]:
    """Return the variance of what operators put out, by rounded weights and inputs.

    Args:
        compressed: the graph of the compressed model.
        original: runs the original's operators.
        pairs: by position of the compressed model's operator that of the original's.
        given: what the compressed model's operator was given.

    Returns:
        By position of the compressed model's operator; those without weights are left out.

    """
    weighted = {
        mine: yours
        for mine, yours in pairs.items()
        if compressed.operators[mine].name in WEIGHTED
        and getattr(_weights(original.graph, yours), "constant", False)
        and _weights(compressed, mine) is not None
    }
    if not weighted:
        return {}
    squares = {mine: given(mine)[0] ** 2 for mine in weighted}
    rounding = {
        second.index: rounding_variance(compressed, first, original.graph, second)
        for mine, yours in weighted.items()
        for first, second in constants_in_pairs(compressed, mine, original.graph, yours)
    }
    found = _summed(original, weighted, squares, rounding)
    hybrid = {
        mine: yours
        for mine, yours in weighted.items()
        if _rounds_inputs(compressed, mine) or _rounds_inputs(original.graph, yours)
    }
    if hybrid:
        rounded = {mine: _input_variance(squares[mine]) for mine in hybrid}
        weights = dict(_squared_weights(original.graph, yours) for yours in hybrid.values())
        for mine, variance in _summed(original, hybrid, rounded, weights).items():
            found[mine] = found[mine] + variance
    return found


def _summed(
    original: OriginalLayers,
    pairs: Mapping[int, int],
    inputs: Mapping[int, Real],
    constants: Mapping[int, Real],
) -> dict[int, Real]:
    sums = original.linear(list(pairs.values()), [inputs[mine] for mine in pairs], constants)
    made = {mine: original.graph.operators[yours].outputs[0] for mine, yours in pairs.items()}
    return {mine: np.maximum(sums[tensor], 0.0) for mine, tensor in made.items()}


def _weights(graph: Graph, index: int) -> GraphTensor | None:
    """Return the constant that an operator multiplies its input with, if it is plain."""
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
    """Whether an operator has quantized weights and rounds its float input as it runs."""
    weights = _weights(graph, index)
    fed = graph.tensors[graph.fed(graph.operators[index])[0]]
    return weights is not None and bool(weights.scales) and not fed.scales


def _input_variance(squares: Real) -> Real:
    step = np.sqrt(squares.max(initial=0.0)) / _INPUT_STEPS
    return np.full_like(squares, step**2 / 12)
