"""Products over any axes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import log2, prod

import numpy as np
from numpy.typing import NDArray

from edgeflare.conform.graphs.operator_graph import GraphValue, Option, Values
from edgeflare.conform.operators.one_input.constants_and_options import switched
from edgeflare.conform.operators.one_input.reduction import Reduction, constant_axes, reduced_values
from edgeflare.conform.specification.axes import within
from edgeflare.conform.specification.exact_answer import (
    EPSILON,
    ExactAnswer,
    bits,
    reals,
    steps,
)
from edgeflare.conform.specification.operator_specification import (
    Operand,
)
from edgeflare.conform.specification.settings import (
    Configuration,
    Setting,
    dimensions,
    number,
)

_USUAL_FACTORS = 6
"""Of most products that are drawn: more leave the range of a type."""

_MULTIPLIER_ROUNDING = 2.0**-15
"""Of each factor: 64-bit products are rescaled by multipliers of 15 bits and a sign, relative."""


class ProductReduction(Reduction):
    """A product."""

    def fitting(
        self, configuration: Configuration, rng: np.random.Generator
    ) -> Mapping[str, Setting]:
        """Return axes that the shape has, along which there are few values if possible."""
        fitting = super().fitting(configuration, rng)
        shape = dimensions({**configuration, **fitting}, "shape")
        if reduced_values({**configuration, **fitting}) <= _USUAL_FACTORS:
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
        scale, factors = number(configuration, "input_scale"), reduced_values(configuration)
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
        axes, kept = constant_axes(constants), switched(options, "keepDims")
        if operand.raw.dtype in (np.int32, np.int64):
            total = np.prod(operand.raw.astype(np.int64), axes, keepdims=kept)
            return (bits(np.asarray(total).astype(operand.raw.dtype)),)
        product = np.prod(operand.real, axes, keepdims=kept)
        factors = prod(operand.raw.shape[at] for at in axes)
        if operand.value.quantization is not None:
            lost = _lost_by_rescaling(operand, axes, results[0]).reshape(product.shape)
            return (steps(product, lost + factors * _MULTIPLIER_ROUNDING * np.abs(product)),)
        return (reals(product, factors * EPSILON * np.abs(product)),)


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
