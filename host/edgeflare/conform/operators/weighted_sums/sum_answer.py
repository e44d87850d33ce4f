"""The exact answers of weighted sums."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from edgeflare.conform.operator_graph import GraphValue
from edgeflare.conform.specification.activation_tensors import Operand, Reals
from edgeflare.conform.specification.exact_answer import (
    ACTIVATION_LIMITS,
    ExactAnswer,
    reals,
    steps,
    sum_slack,
)
from edgeflare.conform.specification.parameter import Choice

ACTIVATION = Choice("activation", tuple(ACTIVATION_LIMITS))
"""The activations that kernels of sums and pools fuse."""


HALF_STEP = 0.5 / 127 * (1 + 1e-4)
"""What rounding to eight bits does to a value, relative to the largest one that shares its scale,
if the eight bits are symmetric, which is the coarser way; a little more, since the rounded quotient
is one of float32 itself."""


def summed(
    product: Callable[[Reals, Reals], Reals],
    factors: tuple[Operand, Operand],
    bias: Operand | None,
    result: GraphValue,
    activation: str,
    terms: int,
    sharing: Callable[[Reals], Reals],
) -> ExactAnswer:
    """Return the answer of an operator that adds products.

    Args:
        product: product of input and weights, bilinear.
        factors: input and weights.
        bias: None where it is left out.
        result: the tensor that is written.
        activation: the fused activation.
        terms: how many products are added, at most.
        sharing: the largest magnitude among values that may share a scale when a float input is
            rounded to eight bits, for each value of the input.

    """
    x, w = (factor.real for factor in factors)
    b = np.zeros(1) if bias is None else bias.real
    with np.errstate(all="ignore"):
        total = clamped(product(x, w) + b, activation)
        if result.quantization is not None:
            return steps(total)
        slack = sum_slack(terms, product(np.abs(x), np.abs(w)) + np.abs(b))
        if factors[1].value.quantization is not None:
            slack = slack + product(sharing(np.abs(x)) * HALF_STEP, np.abs(w))
        return reals(total, slack)


def largest_of_batch(sizes: Reals) -> Reals:
    """Return the largest value at the same index of the first dimension, in the same shape."""
    if not sizes.size:
        return sizes
    axes = tuple(range(1, sizes.ndim))
    return np.broadcast_to(sizes.max(axis=axes, keepdims=True), sizes.shape)


def clamped(values: NDArray[np.float64], activation: str) -> NDArray[np.float64]:
    """Return real values after an activation; NaN stays NaN."""
    return np.clip(values, *ACTIVATION_LIMITS[activation]) if activation != "NONE" else values
