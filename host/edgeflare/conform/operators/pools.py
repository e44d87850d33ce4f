"""AVERAGE_POOL_2D, MAX_POOL_2D and L2_POOL_2D: one value for each window and channel."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from math import prod

import numpy as np
from numpy.typing import NDArray

from edgeflare.conform.operator_graph import GraphValue
from edgeflare.conform.operators.one_input_operator import Answers, OneInputOperator
from edgeflare.conform.operators.weighted_sums.sum_answer import ACTIVATION, clamped
from edgeflare.conform.operators.window_settings import (
    Window,
    Work,
    fitted_sizes,
    size_parameter,
    tamed_windows,
    widened,
    window_facts,
    window_places,
    window_values,
    windows_fault,
    windows_of,
)
from edgeflare.conform.specification.activation_tensors import FLOAT, INT8, INT16, UINT8, Operand
from edgeflare.conform.specification.exact_answer import (
    ACTIVATION_LIMITS,
    EPSILON,
    ExactAnswer,
    bits,
    reals,
    steps,
    sum_slack,
)
from edgeflare.conform.specification.model_parts import OptionOf, SizeOf
from edgeflare.conform.specification.operator_specification import OperatorSpecification
from edgeflare.conform.specification.parameter import Configuration, Setting, Settings, whole, word

_AXES = "hw"
_SIZES = ("batch", "height", "width", "channels")
_KERNEL_OPTIONS = ("filterHeight", "filterWidth")
_KERNEL_AXES = (3, 4)
"""The kernel's axes in values of windows: (batch, rows, columns, kernel rows, kernel columns,
channels)."""

_PLACES = (
    SizeOf(size_parameter("batch", 3, (0,)), 0, 4),
    *window_places(
        _AXES, 33, dilated=1, kernel=lambda size, at: OptionOf(size, _KERNEL_OPTIONS[at])
    ),
    SizeOf(size_parameter("channels", 33), 3, 4),
    OptionOf(ACTIVATION, "fusedActivationFunction"),
)


def _result_shape(settings: Configuration) -> tuple[int, ...]:
    counts = (window.count for window in windows_of(settings, _AXES))
    return (whole(settings, "batch"), *counts, whole(settings, "channels"))


def _terms(settings: Configuration) -> int:
    return prod(whole(settings, f"kernel_{name}") for name in _AXES)


def _work(settings: Configuration) -> Work:
    data, result = prod(whole(settings, size) for size in _SIZES), prod(_result_shape(settings))
    return data, 0, result, result * _terms(settings)


def _fit_sizes(settings: Settings, rng: np.random.Generator) -> Settings:
    """Return settings whose windows have room in an input of moderate size."""
    tamed = tamed_windows(settings, _AXES, rng)
    return fitted_sizes(tamed, _SIZES, lambda drawn: widened(drawn, _AXES), _work, rng)


def _pool_facts(settings: Configuration) -> Mapping[str, Setting]:
    """Return the sizes of result and windows, and what is padded."""
    sizes = {"result_size": prod(_result_shape(settings)), "terms": _terms(settings)}
    return {**window_facts(settings, _AXES), **sizes}


def _pool(operator: str, types: tuple[str, ...], answers: Answers) -> OneInputOperator:
    return OneInputOperator(
        operator,
        types,
        _PLACES,
        answers,
        written=lambda form, settings: (replace(form, shape=_result_shape(settings)),),
        quantized_result="operand",
        versions={INT8: 2, INT16: 3},
        varied=_fit_sizes,
        refused=lambda _, settings: windows_fault(settings, _AXES),
        known=_pool_facts,
    )


def _average(settings: Configuration, data: Operand, result: GraphValue) -> ExactAnswer:
    """Return the mean of what is there: what is padded counts for nothing."""
    windows = windows_of(settings, _AXES)
    mean = clamped(_means(data.real, windows), word(settings, "activation"))
    if result.quantization is not None:
        return steps(mean)
    return reals(mean, sum_slack(_terms(settings), _means(np.abs(data.real), windows)))


def _largest(settings: Configuration, data: Operand, result: GraphValue) -> ExactAnswer:
    """Return one of the values, as it stands unless the activation clamps it."""
    windows, activation = windows_of(settings, _AXES), word(settings, "activation")
    known, dtype = result.quantization, result.dtype
    if known is None:
        values = window_values(data.real, windows, -np.inf)
        return reals(clamped(values.max(axis=_KERNEL_AXES, initial=-np.inf), activation))
    ends = np.iinfo(dtype)
    values = window_values(data.raw.astype(np.int64), windows, ends.min)
    limits = np.asarray(ACTIVATION_LIMITS[activation]) / known.scales[0]
    # Kernels round halves away from zero.
    rounded = np.copysign(np.floor(np.abs(limits) + 0.5), limits) + known.zero_point
    low, high = np.clip(rounded, ends.min, ends.max)
    largest = values.max(axis=_KERNEL_AXES, initial=ends.min)
    return bits(np.clip(largest, low, high).astype(dtype))


def _root_of_squares(settings: Configuration, data: Operand, _: GraphValue) -> ExactAnswer:
    """Return the root of the mean of squares."""
    root = np.sqrt(_means(data.real**2, windows_of(settings, _AXES)))
    slack = (_terms(settings) / 2 + 3) * EPSILON * root
    return reals(clamped(root, word(settings, "activation")), slack)


def _means(values: NDArray[np.float64], windows: tuple[Window, ...]) -> NDArray[np.float64]:
    sums = window_values(values, windows).sum(axis=_KERNEL_AXES)
    ones = np.ones((1, *values.shape[1:-1], 1))
    counts = window_values(ones, windows).sum(axis=_KERNEL_AXES)
    found: NDArray[np.float64] = sums / counts
    return found


_ALL = (FLOAT, INT8, UINT8, INT16)

AVERAGE_POOL = _pool("AVERAGE_POOL_2D", _ALL, _average)
MAX_POOL = _pool("MAX_POOL_2D", _ALL, _largest)
L2_POOL = _pool("L2_POOL_2D", (FLOAT,), _root_of_squares)
POOLS: tuple[OperatorSpecification, ...] = (AVERAGE_POOL, MAX_POOL, L2_POOL)
