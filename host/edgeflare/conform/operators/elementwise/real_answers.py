"""Exact answers of functions of real numbers, with what computing them in float32 may lose."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from edgeflare.conform.operator_graph import GraphValue, Values
from edgeflare.conform.specification.activation_tensors import Operand, Reals
from edgeflare.conform.specification.exact_answer import (
    ACTIVATION_LIMITS,
    EPSILON,
    ExactAnswer,
    bits,
    reals,
    steps,
)

_LARGEST = float(np.finfo(np.float32).max)
_SMALLEST_NORMAL = float(np.finfo(np.float32).tiny)
"""Kernels may take for 0 what is smaller, whether it is read or written."""


@dataclass(frozen=True, slots=True)
class Loss:
    """What float32 arithmetic may lose of a function.

    Attributes:
        result: loss in ulp of the result.
        argument: loss in float arguments, in ulp of each; 0 where these are taken as they stand.
        cancelled: loss in ulp of the argument, where terms of its size cancel each other.

    """

    result: float = 0.0
    argument: float = 0.0
    cancelled: float = 0.0


NO_LOSS = Loss()
"""Nothing is rounded but quantized results."""


def answer(
    function: Callable[..., Values],
    operands: Sequence[Operand],
    result: GraphValue,
    *,
    loss: Loss = NO_LOSS,
    clamp: tuple[float, float] = ACTIVATION_LIMITS["NONE"],
) -> ExactAnswer:
    """Return the exact answer of a function.

    Args:
        function: function of as many arrays as there are operands, float64, or int64 where these
            are whole numbers that stand for themselves.
        operands: their values broadcast with each other.
        result: the tensor that is written; whole numbers wrap around in its dtype.
        loss: what float32 arithmetic may lose.
        clamp: limits of the results.

    """
    with np.errstate(all="ignore"):
        if result.quantization is None and not result.dtype.startswith("float"):
            return bits(_whole(function, operands, result, clamp))
        arguments = [operand.real for operand in operands]
        values = np.clip(function(*arguments), *clamp)
        slack = _slack(lambda *x: np.clip(function(*x), *clamp), operands, arguments, values, loss)
        if result.quantization is not None:
            return steps(values, slack)
        overflown = np.abs(values) > _LARGEST * (1 + EPSILON / 4)
        return reals(np.where(overflown, np.copysign(np.inf, values), values), slack)


def _whole(
    function: Callable[..., Values],
    operands: Sequence[Operand],
    result: GraphValue,
    clamp: tuple[float, float],
) -> Values:
    plain = all(operand.value.quantization is None for operand in operands)
    if plain and all(operand.raw.dtype.kind in "iu" for operand in operands):
        values = function(*(operand.raw.astype(np.int64) for operand in operands))
    elif plain and result.dtype == "bool":
        values = function(*(operand.raw for operand in operands))
    else:
        values = function(*(operand.real for operand in operands))
    # Sums and products wrap around before an activation limits them.
    known = values.astype(result.dtype)
    if clamp != ACTIVATION_LIMITS["NONE"]:
        limits = np.iinfo(result.dtype)
        low, high = (np.clip(bound, limits.min, limits.max) for bound in clamp)
        known = np.clip(known, int(low), int(high))
    return known


def _slack(
    function: Callable[..., Values],
    operands: Sequence[Operand],
    arguments: Sequence[Reals],
    values: Reals,
    loss: Loss,
) -> Reals:
    """Return what rounding the result and each of the arguments changes at most."""
    slack = loss.result * EPSILON * np.abs(values) + _SMALLEST_NORMAL
    for at, (operand, argument) in enumerate(zip(operands, arguments, strict=True)):
        if loss.cancelled:
            slack = slack + loss.cancelled * EPSILON * np.abs(argument)
        # Quantized values are rounded as they become float32.
        rounded = loss.argument if operand.value.quantization is None else max(1, loss.argument)
        if not loss.result or not rounded:
            continue
        for factor in (1 - rounded * EPSILON, 1 + rounded * EPSILON):
            shaken = [*arguments[:at], argument * factor, *arguments[at + 1 :]]
            slack = slack + np.abs(function(*shaken) - values)
    flushed = [np.where(np.abs(value) < _SMALLEST_NORMAL, 0.0, value) for value in arguments]
    if any((small != other).any() for small, other in zip(flushed, arguments, strict=True)):
        slack = slack + np.nan_to_num(np.abs(function(*flushed) - values))
    return np.where(np.isfinite(slack), slack, 0.0)
