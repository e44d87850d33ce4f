"""How large an error of the outputs of a network's layers quantization explains.

That is the rounding of the output itself, and the noise of rounded weights and inputs. Each weight
has an error that is uniform over its quantization step Δ, so over all inputs x
of a sum these errors have the variance Σ x² Δ²/12. The operator itself, given x² for its inputs
and Δ²/12 for its weights, computes it for every output. Where weights alone are quantized, the
inputs are rounded as the model runs, which adds likewise.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from edgeflare.diagnose.constant_error import constants_in_pairs, rounding_variance
from edgeflare.diagnose.original_layers import OriginalLayers, Real
from edgeflare.models.tflite_graph import Graph, GraphOp, GraphTensor

_HANDING_ON = frozenset(
    {
        "ADD",
        "CONCATENATION",
        "EMBEDDING_LOOKUP",
        "GATHER",
        "GATHER_ND",
        "MAXIMUM",
        "MINIMUM",
        "PACK",
    }
    | {"PAD", "PADV2", "SELECT", "SELECT_V2", "SUB"}
)
"""Operators whose outputs are off by what a constant is off by."""

_SCALING = frozenset({"DIV", "MUL", "PRELU"})
"""Operators whose outputs are off by the share by which a constant is off."""

WEIGHTED = frozenset({"CONV_2D", "DEPTHWISE_CONV_2D", "FULLY_CONNECTED", "TRANSPOSE_CONV"})
"""Layers with weights: operators that are linear in a constant."""

_LINEAR = WEIGHTED | {"BATCH_MATMUL", "CONV_3D"}
"""All operators that are linear in a constant."""

_WITH_GRAPHS = frozenset({"CALL", "IF", "WHILE"})
"""Operators that run other graphs, with roundings of their own."""

_INPUT_STEPS = 127
"""Steps between zero and the largest input, where inputs are quantized as a model runs."""

SIGMAS = 7.0
"""Standard deviations of rounding noise that are explained. The far tails of such a sum are not
those of a normal distribution, and a network has a million outputs."""

_ROUNDING_UNITS = 1.0
"""Units of an operator's output that rounding explains; some kernels round twice."""

_TABLE_UNITS = 2.0
"""Units that rounding explains in operators without weights; some use tables or fixed point."""

_TABLE_UNITS_OF_16_BITS = 64.0
"""Units that rounding explains in 16-bit outputs: tables have 512 intervals over their range, and
interpolation between their entries may be off by half an interval. 18 units have been observed."""

_FLOAT_SHARE = 1e-4
"""Share of a float tensor's largest value by which kernels may differ."""


def explained_error(operator: GraphOp, tensor: GraphTensor, wanted: Real, noise: Real) -> Real:
    """Return the error of an operator's outputs that quantization explains, in real values.

    Args:
        operator: the operator.
        tensor: what it puts out.
        wanted: the outputs without rounding.
        noise: the standard deviation of the outputs that rounding of weights and inputs causes.

    """
    units = _TABLE_UNITS_OF_16_BITS if tensor.dtype == "int16" else _TABLE_UNITS
    if operator.name in WEIGHTED:
        units = _ROUNDING_UNITS
    return np.broadcast_to(units * unit_of(tensor, wanted) + SIGMAS * noise, wanted.shape)


def unit_of(tensor: GraphTensor, wanted: Real) -> float:
    """Return the unit in which residuals are counted, as a real value."""
    if tensor.scales:
        return max(tensor.scales)
    finite = np.abs(wanted[np.isfinite(wanted)])
    return _FLOAT_SHARE * float(finite.max(initial=0.0)) or 1.0


def clipped(tensor: GraphTensor, real: Real) -> Real:
    """Return values clipped to the range of a tensor."""
    if not tensor.scales:
        return real
    ends = (np.full((1,) * len(tensor.shape), limit) for limit in tensor.limits)
    low, high = map(tensor.real, ends)
    return np.clip(real, low, high)


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
        if compressed.operators[op].name in _LINEAR
        and _weights(original.graph, original_op) is not None
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


def rounding_bound(
    compressed: Graph, op: int, original: Graph, original_op: int, wanted: Real
) -> Real:
    """Return by how much rounded constants change the outputs of an operator without weights.

    Args:
        compressed: the graph of the compressed model.
        op: position of the operator in it.
        original: the graph of the original.
        original_op: position of the operator that it was made from.
        wanted: the outputs without rounding.

    Returns:
        What broadcasts with them; zeros where the operator is not known to hand on its constants.

    """
    name, most = compressed.operators[op].name, np.zeros(())
    for first, second in constants_in_pairs(compressed, op, original, original_op):
        # Half a step of each of the two: (a + b) / 2 is at most √((a² + b²) / 2).
        halves = np.sqrt(6 * rounding_variance(compressed, first, original, second))
        if name in _HANDING_ON:
            most = most + halves.max(initial=0.0)
        elif name in _SCALING and (values := original.real_values(second.index)) is not None:
            sizes = np.where(np.isfinite(values) & (values != 0), np.abs(values), np.inf)
            most = most + (halves / sizes).max(initial=0.0) * np.abs(wanted)
    return most


def rounds_unseen(graph: Graph, operator: GraphOp) -> bool:
    """Whether an operator rounds where no tensor of the graph shows it.

    That is in a state, which carries errors on, or in another graph.
    """
    kept = any(graph.tensors[tensor].variable for tensor in operator.inputs)
    return kept or operator.name in _WITH_GRAPHS


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
    """Return what an operator multiplies its only input with, or None where that is not known.

    It is the tensor that the operator reads: a constant, or what is prepared from one.
    """
    one = graph.operators[index]
    fed = graph.fed(one)
    constants = [graph.tensors[tensor] for tensor in one.inputs if tensor not in fed]
    constants = [tensor for tensor in constants if len(tensor.shape) > 1]
    if len(fed) != 1 or len(constants) != 1 or graph.stored(constants[0].index) is None:
        return None
    return constants[0]


def _squared_weights(graph: Graph, index: int) -> tuple[int, Real]:
    weights = _weights(graph, index)
    real = None if weights is None else graph.real_values(weights.index)
    assert weights is not None and real is not None  # noqa: S101, PT018 - asked before
    return weights.index, real**2


def _rounds_inputs(graph: Graph, index: int) -> bool:
    """Whether an operator has quantized weights and quantizes its float input as it runs."""
    weights = _weights(graph, index)
    fed = graph.tensors[graph.fed(graph.operators[index])[0]]
    return weights is not None and bool(weights.scales) and not fed.scales


def _input_variance(squares: Real) -> Real:
    step = np.sqrt(squares.max(initial=0.0)) / _INPUT_STEPS
    return np.full_like(squares, step**2 / 12)
