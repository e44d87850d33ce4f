"""Reductions: means, sums, products, extremes and logical ones over any axes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from math import log2, prod, sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from edgeflare.conform.operator_graph import GraphValue, Values
from edgeflare.conform.operators.aggregation.aggregate_operator import SHAPE, AggregateOperator
from edgeflare.conform.operators.one_input_operator import Answers
from edgeflare.conform.specification.activation_tensors import (
    BOOL,
    FLOAT,
    INT8,
    INT16,
    INT32,
    INT64,
    UINT8,
    Operand,
)
from edgeflare.conform.specification.exact_answer import (
    EPSILON,
    ExactAnswer,
    bits,
    reals,
    steps,
    sum_slack,
)
from edgeflare.conform.specification.model_parts import ConstantOf, OptionOf
from edgeflare.conform.specification.parameter import (
    Choice,
    Configuration,
    Setting,
    Settings,
    dimensions,
    number,
    yes,
)
from edgeflare.conform.specification.whole_numbers import Axes, clipped, within

_IMAGES = ("batch", "height", "width", "channels")
_SPATIAL = (1, 2)
"""The axes of images that models reduce most, for which kernels have code of their own."""

_MOST_VALUES = 1000
"""Most values of a tensor that is drawn."""

_AXES = Axes("axes")


def _draw_axes(settings: Settings, rng: np.random.Generator) -> Settings:
    """Return settings with axes that the shape has, and at times a shape of which more is left."""
    shape = dimensions(settings, "shape")
    axes = _AXES.drawn(len(shape), rng)
    if len(shape) == len(_IMAGES) and rng.random() < 1 / 4:
        axes = _SPATIAL
    kept = sorted(set(range(len(shape))) - {within(axis, len(shape)) for axis in axes})
    if not kept or 0 in shape or rng.random() < 1 / 2:
        return {**settings, "axes": axes}
    # Results of few values say little of rounding.
    grown = kept[int(rng.integers(len(kept)))]
    room = _MOST_VALUES // (prod(shape) // shape[grown])
    size = int(rng.integers(min(shape[grown], room), room + 1))
    return {**settings, "axes": axes, "shape": (*shape[:grown], size, *shape[grown + 1 :])}


def _fit_axes(settings: Settings, _: str) -> Settings:
    rank = len(dimensions(settings, "shape"))
    return {**settings, "axes": clipped(dimensions(settings, "axes"), rank)}


def _no_axes(_: str, settings: Configuration) -> str | None:
    axes, rank = dimensions(settings, "axes"), len(dimensions(settings, "shape"))
    if not all(-rank <= axis < rank for axis in axes):
        return f"axes {axes} of a tensor of {rank} dimensions"
    if len({within(axis, rank) for axis in axes}) < len(axes):
        return f"axes {axes} of a tensor of {rank} dimensions name one of them twice"
    return None


def _reduced(form: GraphValue, settings: Configuration) -> tuple[GraphValue, ...]:
    shape, kept = dimensions(settings, "shape"), yes(settings, "keep_dims")
    reduced = {within(axis, len(shape)) for axis in dimensions(settings, "axes")}
    sizes = [
        1 if at in reduced else size for at, size in enumerate(shape) if kept or at not in reduced
    ]
    return (replace(form, shape=tuple(sizes)),)


def _reduction_facts(settings: Configuration) -> Mapping[str, Setting]:
    """Return how many values each result is of, and which axes are reduced."""
    rank = len(dimensions(settings, "shape"))
    axes = {within(axis, rank) for axis in dimensions(settings, "axes")}
    return {
        "reduced_values": _reduced_values(settings),
        "reduced_axes": len(axes),
        "last_axis_reduced": rank - 1 in axes,
        "spatial_axes_reduced": rank == len(_IMAGES) and axes == set(_SPATIAL),
    }


def _reduction(
    operator: str,
    types: tuple[str, ...],
    answers: Answers,
    versions: Mapping[str, int] | None = None,
    gain: Callable[[Configuration, np.random.Generator], float] | None = None,
    varied: Callable[[Settings, np.random.Generator], Settings] = _draw_axes,
) -> AggregateOperator:
    """Return an operator that leaves one value of all along some axes.

    Without a gain the results have the quantization of the operand.
    """
    return AggregateOperator(
        operator,
        types,
        (SHAPE, ConstantOf(_AXES), OptionOf(Choice("keep_dims", [False, True]), "keepDims", False)),
        answers,
        written=_reduced,
        quantized_result="own" if gain else "operand",
        gain=gain or (lambda *_: 1.0),
        versions=versions or {},
        varied=varied,
        fit=_fit_axes,
        refused=_no_axes,
        known=_reduction_facts,
    )


_USUAL_FACTORS = 6
"""Most factors of nearly all products that are drawn: more leave the range of a type."""

_MULTIPLIER_ROUNDING = 2.0**-15
"""Relative rounding for each factor of a 64-bit product, which is rescaled by a multiplier of 15
bits and a sign."""


def _draw_few_factors(settings: Settings, rng: np.random.Generator) -> Settings:
    """Return settings with axes along which there are few values if possible."""
    settings = _draw_axes(settings, rng)
    if _reduced_values(settings) <= _USUAL_FACTORS:
        return settings
    shape = dimensions(settings, "shape")
    shortest = int(np.argmin(shape))
    if shape[shortest] <= _USUAL_FACTORS:
        return {**settings, "axes": (shortest,)}
    return {**settings, "axes": (0,), "shape": (int(rng.integers(1, _USUAL_FACTORS)), *shape[1:])}


def _gain_of_product(settings: Configuration, _: np.random.Generator) -> float:
    """Return the spread of products of independent values."""
    scale, factors = number(settings, "input_scale"), _reduced_values(settings)
    # Values are spread over most steps of their type; the logarithms of factors add.
    steps_ = 100 if "input_zero_point" in settings else 2**14
    octaves = factors * log2(scale * steps_) - log2(scale * steps_)
    return float(2.0 ** np.clip(octaves, -100, 100))


def _product(settings: Configuration, operand: Operand, result: GraphValue) -> ExactAnswer:
    """Return the products; whole numbers wrap.

    Quantized products are defined as rescaled and rounded after each factor, in the order of
    memory, so that what is lost in one is multiplied by all factors that follow.
    """
    axes, kept = dimensions(settings, "axes"), yes(settings, "keep_dims")
    if operand.raw.dtype in (np.int32, np.int64):
        total = np.prod(operand.raw.astype(np.int64), axes, keepdims=kept)
        return bits(np.asarray(total).astype(operand.raw.dtype))
    product = np.prod(operand.real, axes, keepdims=kept)
    factors = prod(operand.raw.shape[at] for at in axes)
    if operand.value.quantization is not None:
        lost = _lost_by_rescaling(operand, axes, result).reshape(product.shape)
        return steps(product, lost + factors * _MULTIPLIER_ROUNDING * np.abs(product))
    return reals(product, factors * EPSILON * np.abs(product))


def _raw(of: Callable[..., Values]) -> Answers:
    """Return what answers raw values, as the result has the quantization of the operand."""

    def answers(settings: Configuration, operand: Operand, _: GraphValue) -> ExactAnswer:
        axes, kept = dimensions(settings, "axes"), yes(settings, "keep_dims")
        return bits(of(operand.raw, axis=axes, keepdims=kept))

    return answers


def _ends(dtype: np.dtype[Any]) -> tuple[float | int, float | int]:
    if dtype.kind == "f":
        return -np.inf, np.inf
    known = np.iinfo(dtype)
    return int(known.min), int(known.max)


def _gain_of_sum(settings: Configuration, rng: np.random.Generator) -> float:
    """Return the spread of a sum of values that are independent, or all alike."""
    terms = max(_reduced_values(settings), 1)
    return sqrt(terms) if rng.random() < 1 / 2 else float(terms)


def _gain_of_mean(settings: Configuration, rng: np.random.Generator) -> float:
    return _gain_of_sum(settings, rng) / max(_reduced_values(settings), 1)


def _sum(*, mean: bool) -> Answers:
    """Return what answers sums or means.

    Sums of whole numbers wrap, and their means are rounded towards zero.
    """

    def answers(settings: Configuration, operand: Operand, _: GraphValue) -> ExactAnswer:
        axes, kept = dimensions(settings, "axes"), yes(settings, "keep_dims")
        terms = prod(operand.raw.shape[at] for at in axes)
        if operand.raw.dtype in (np.int32, np.int64) and operand.value.quantization is None:
            total = np.sum(operand.raw.astype(np.int64), axes, keepdims=kept)
            if mean and terms:
                below = total // terms
                total = below + ((below < 0) & (total % terms != 0))
            return bits(np.asarray(total).astype(operand.raw.dtype))
        values = operand.real
        total = np.sum(values, axes, keepdims=kept)
        divisor = np.float64(terms if mean else 1)
        if operand.value.quantization is not None:
            return steps(total / divisor)
        magnitude = np.sum(np.abs(values), axes, keepdims=kept)
        return reals(total / divisor, sum_slack(terms, magnitude / divisor))

    return answers


_ALL = (FLOAT, INT8, UINT8, INT16, INT32, INT64)

REDUCTIONS = (
    _reduction("MEAN", _ALL, _sum(mean=True), {INT8: 2, INT16: 3}, _gain_of_mean),
    _reduction("SUM", _ALL, _sum(mean=False), {INT8: 2}, _gain_of_sum),
    _reduction(
        "REDUCE_PROD",
        (FLOAT, INT8, INT16, INT32, INT64),
        _product,
        {INT8: 2, INT16: 2},
        _gain_of_product,
        _draw_few_factors,
    ),
    _reduction(
        "REDUCE_MAX",
        _ALL,
        _raw(lambda raw, **along: np.max(raw, initial=_ends(raw.dtype)[0], **along)),
        {INT8: 2, INT16: 3},
    ),
    _reduction(
        "REDUCE_MIN",
        _ALL,
        _raw(lambda raw, **along: np.min(raw, initial=_ends(raw.dtype)[1], **along)),
        {INT8: 2, INT16: 3},
    ),
    _reduction("REDUCE_ANY", (BOOL,), _raw(np.any)),
    _reduction("REDUCE_ALL", (BOOL,), _raw(np.all)),
)
"""Operators that leave one value of all along some axes."""


def _lost_by_rescaling(
    operand: Operand, axes: tuple[int, ...], result: GraphValue
) -> NDArray[np.float64]:
    """Return the real units that rounding after each factor may lose: one for each product."""
    input_, output = operand.value.quantization, result.quantization
    if input_ is None or output is None:
        raise TypeError("a product of other than quantized values")
    axes = tuple(sorted(within(axis, operand.raw.ndim) for axis in axes))
    kept = [at for at in range(operand.raw.ndim) if at not in axes]
    whole = np.transpose(operand.raw, (*kept, *axes)).astype(np.float64) - input_.zero_point
    factors = prod(operand.raw.shape[at] for at in axes)
    rows = np.abs(whole).reshape(prod(operand.raw.shape[at] for at in kept), factors)
    rescaling = input_.scales[0] / output.scales[0] ** (1 / max(factors, 1))
    if factors < 2:
        return np.zeros(len(rows))
    following = np.cumprod(rescaling * rows[:, :1:-1], 1)
    rounded = 1.0 + following.sum(1)
    return np.asarray(rounded * rescaling * output.scales[0] / 2, np.float64)


def _reduced_values(configuration: Configuration) -> int:
    """Return how many values of the operand each of the result is made of."""
    shape = dimensions(configuration, "shape")
    return prod(shape[axis] for axis in dimensions(configuration, "axes"))
