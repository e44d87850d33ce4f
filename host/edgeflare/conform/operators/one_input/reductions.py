"""Reductions: means, sums, products, extremes and logical ones over any axes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import log2, prod, sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from edgeflare.conform.operator_graph import GraphValue, Option, Values
from edgeflare.conform.operators.one_input.one_input_operator import (
    OneInputOperator,
    ResultQuantization,
    constant,
    switched,
)
from edgeflare.conform.specification.operator_specification import (
    BOOL,
    EPSILON,
    FLOAT,
    INT8,
    INT16,
    INT32,
    INT64,
    UINT8,
    ExactAnswer,
    Operand,
    bits,
    reals,
    steps,
    sum_slack,
)
from edgeflare.conform.specification.parameter import (
    Choice,
    Configuration,
    Setting,
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


class _Reduction(OneInputOperator):
    """An operator that leaves one value of all along some axes."""

    constant_operands = 1
    own = (Axes("axes"), Choice("keep_dims", [False, True]))

    def options(self, configuration: Configuration) -> Mapping[str, Option]:
        """Return whether reduced dimensions are kept with size 1."""
        return {"keepDims": yes(configuration, "keep_dims")}

    def constants(self, configuration: Configuration) -> tuple[GraphValue, ...]:
        """Return the axes: (count,)."""
        return (constant(dimensions(configuration, "axes")),)

    def settings(
        self, options: Mapping[str, Option], constants: Sequence[Values]
    ) -> Mapping[str, Setting]:
        """Return the axes and whether they are kept."""
        axes = tuple(int(one) for one in constants[0].ravel())
        return {"axes": axes, "keep_dims": switched(options, "keepDims")}

    def fitting(
        self, configuration: Configuration, rng: np.random.Generator
    ) -> Mapping[str, Setting]:
        """Return axes that the shape has, and at times a shape of which more is left."""
        shape = dimensions(configuration, "shape")
        axes = Axes("axes").drawn(len(shape), rng)
        if len(shape) == len(_IMAGES) and rng.random() < 1 / 4:
            axes = _SPATIAL
        kept = sorted(set(range(len(shape))) - {within(one, len(shape)) for one in axes})
        if not kept or 0 in shape or rng.random() < 1 / 2:
            return {"axes": axes}
        # Results of few values say little of rounding.
        grown = kept[int(rng.integers(len(kept)))]
        room = _MOST_VALUES // (prod(shape) // shape[grown])
        size = int(rng.integers(min(shape[grown], room), room + 1))
        return {"axes": axes, "shape": (*shape[:grown], size, *shape[grown + 1 :])}

    def fitted(self, configuration: Configuration) -> Mapping[str, Setting]:
        """Return the axes near those of a configuration that the shape has."""
        rank = len(dimensions(configuration, "shape"))
        return {"axes": clipped(dimensions(configuration, "axes"), rank)}

    def fault(self, type_: str, configuration: Configuration) -> str | None:  # noqa: ARG002
        """Return why a configuration is no valid model, or None."""
        axes, rank = dimensions(configuration, "axes"), len(dimensions(configuration, "shape"))
        if not all(-rank <= one < rank for one in axes):
            return f"axes {axes} of a tensor of {rank} dimensions"
        if len({within(one, rank) for one in axes}) < len(axes):
            return f"axes {axes} of a tensor of {rank} dimensions name one of them twice"
        return None

    def results(self, type_: str, configuration: Configuration) -> tuple[GraphValue, ...]:
        """Return the reduced tensor."""
        shape = dimensions(configuration, "shape")
        reduced = {within(one, len(shape)) for one in dimensions(configuration, "axes")}
        kept = yes(configuration, "keep_dims")
        sizes = [
            1 if at in reduced else size
            for at, size in enumerate(shape)
            if kept or at not in reduced
        ]
        return (self.result(type_, configuration, tuple(sizes)),)

    def facts(self, type_: str, configuration: Configuration) -> Mapping[str, Setting]:
        """Return also how many values each result is of, and which axes are reduced."""
        shape = dimensions(configuration, "shape")
        axes = {within(one, len(shape)) for one in dimensions(configuration, "axes")}
        return {
            **super().facts(type_, configuration),
            "reduced_values": _reduced_values(configuration),
            "reduced_axes": len(axes),
            "last_axis_reduced": len(shape) - 1 in axes,
            "spatial_axes_reduced": len(shape) == len(_IMAGES) and axes == set(_SPATIAL),
        }


_USUAL_FACTORS = 6
"""Most factors of nearly all products that are drawn: more leave the range of a type."""

_MULTIPLIER_ROUNDING = 2.0**-15
"""Relative rounding for each factor of a 64-bit product, which is rescaled by a multiplier of 15
bits and a sign."""


class _ProductReduction(_Reduction):
    """A product."""

    def fitting(
        self, configuration: Configuration, rng: np.random.Generator
    ) -> Mapping[str, Setting]:
        """Return axes that the shape has, along which there are few values if possible."""
        fitting = super().fitting(configuration, rng)
        shape = dimensions({**configuration, **fitting}, "shape")
        if _reduced_values({**configuration, **fitting}) <= _USUAL_FACTORS:
            return fitting
        shortest = int(np.argmin(shape))
        if shape[shortest] <= _USUAL_FACTORS:
            return {"axes": (shortest,), "shape": shape}
        return {"axes": (0,), "shape": (int(rng.integers(1, _USUAL_FACTORS)), *shape[1:])}

    def gain(
        self,
        configuration: Configuration,
        rng: np.random.Generator,  # noqa: ARG002
    ) -> float:
        """Return the spread of products of independent values."""
        scale, factors = number(configuration, "input_scale"), _reduced_values(configuration)
        # Values are spread over most steps of their type; the logarithms of factors add.
        steps_ = 100 if "input_zero_point" in configuration else 2**14
        octaves = factors * log2(scale * steps_) - log2(scale * steps_)
        return float(2.0 ** np.clip(octaves, -100, 100))

    def answers(
        self,
        options: Mapping[str, Option],
        operand: Operand,
        constants: Sequence[Values],
        results: Sequence[GraphValue],
    ) -> tuple[ExactAnswer, ...]:
        """Return the products; whole numbers wrap.

        Quantized products are defined as rescaled and rounded after each factor, in the order of
        memory, so that what is lost in one is multiplied by all factors that follow.
        """
        axes, kept = _constant_axes(constants), switched(options, "keepDims")
        if operand.raw.dtype in (np.int32, np.int64):
            total = np.prod(operand.raw.astype(np.int64), axes, keepdims=kept)
            return (bits(np.asarray(total).astype(operand.raw.dtype)),)
        product = np.prod(operand.real, axes, keepdims=kept)
        factors = prod(operand.raw.shape[at] for at in axes)
        if operand.value.quantization is not None:
            lost = _lost_by_rescaling(operand, axes, results[0]).reshape(product.shape)
            return (steps(product, lost + factors * _MULTIPLIER_ROUNDING * np.abs(product)),)
        return (reals(product, factors * EPSILON * np.abs(product)),)


class ExtremeReduction(_Reduction):
    """The greatest or least value, or whether any or all values are true."""

    quantized_result: ResultQuantization = "equal"

    def answers(
        self,
        options: Mapping[str, Option],
        operand: Operand,
        constants: Sequence[Values],
        results: Sequence[GraphValue],  # noqa: ARG002
    ) -> tuple[ExactAnswer, ...]:
        """Return raw values, since the result has the quantization of the operand."""
        raw, axes, kept = operand.raw, _constant_axes(constants), switched(options, "keepDims")
        if self.operator == "REDUCE_ANY":
            return (bits(np.any(raw, axes, keepdims=kept)),)
        if self.operator == "REDUCE_ALL":
            return (bits(np.all(raw, axes, keepdims=kept)),)
        low, high = _ends(raw.dtype)
        if self.operator == "REDUCE_MAX":
            return (bits(np.max(raw, axes, keepdims=kept, initial=low)),)
        return (bits(np.min(raw, axes, keepdims=kept, initial=high)),)


class SumReduction(_Reduction):
    """A sum or a mean."""

    def gain(self, configuration: Configuration, rng: np.random.Generator) -> float:
        """Return the spread of a sum or mean of values that are independent, or all alike."""
        terms = max(_reduced_values(configuration), 1)
        spread = sqrt(terms) if rng.random() < 1 / 2 else float(terms)
        return spread / terms if self.operator == "MEAN" else spread

    def answers(
        self,
        options: Mapping[str, Option],
        operand: Operand,
        constants: Sequence[Values],
        results: Sequence[GraphValue],  # noqa: ARG002
    ) -> tuple[ExactAnswer, ...]:
        """Return the sums; whole numbers wrap, and their means are rounded towards zero."""
        axes, kept = _constant_axes(constants), switched(options, "keepDims")
        terms = prod(operand.raw.shape[at] for at in axes)
        mean = self.operator == "MEAN"
        if operand.raw.dtype in (np.int32, np.int64) and operand.value.quantization is None:
            total = np.sum(operand.raw.astype(np.int64), axes, keepdims=kept)
            if mean and terms:
                below = total // terms
                total = below + ((below < 0) & (total % terms != 0))
            return (bits(np.asarray(total).astype(operand.raw.dtype)),)
        values = operand.real
        total = np.sum(values, axes, keepdims=kept)
        divisor = np.float64(terms if mean else 1)
        if operand.value.quantization is not None:
            return (steps(total / divisor),)
        magnitude = np.sum(np.abs(values), axes, keepdims=kept)
        return (reals(total / divisor, sum_slack(terms, magnitude / divisor)),)


def _ends(dtype: np.dtype[Any]) -> tuple[float | int, float | int]:
    if dtype.kind == "f":
        return -np.inf, np.inf
    known = np.iinfo(dtype)
    return int(known.min), int(known.max)


_ALL = (FLOAT, INT8, UINT8, INT16, INT32, INT64)

REDUCTIONS = (
    SumReduction("MEAN", _ALL, {INT8: 2, INT16: 3}),
    SumReduction("SUM", _ALL, {INT8: 2}),
    _ProductReduction("REDUCE_PROD", (FLOAT, INT8, INT16, INT32, INT64), {INT8: 2, INT16: 2}),
    ExtremeReduction("REDUCE_MAX", _ALL, {INT8: 2, INT16: 3}),
    ExtremeReduction("REDUCE_MIN", _ALL, {INT8: 2, INT16: 3}),
    ExtremeReduction("REDUCE_ANY", (BOOL,)),
    ExtremeReduction("REDUCE_ALL", (BOOL,)),
)
"""Operators that leave one value of all along some axes."""


def _lost_by_rescaling(
    operand: Operand, axes: tuple[int, ...], result: GraphValue
) -> NDArray[np.float64]:
    """Return the real units that rounding after each factor may lose: one for each product."""
    input_, output = operand.value.quantization, result.quantization
    if input_ is None or output is None:
        raise TypeError("a product of other than quantized values")
    axes = tuple(sorted(within(one, operand.raw.ndim) for one in axes))
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
    return prod(shape[one] for one in dimensions(configuration, "axes"))


def _constant_axes(constants: Sequence[Values]) -> tuple[int, ...]:
    """Return the axes that an operand names."""
    return tuple(int(one) for one in constants[0].ravel())
