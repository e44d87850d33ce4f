"""Softmax and its logarithm, over the last axis."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from edgeflare.conform.operator_graph import GraphValue, Option, Quantization, Values
from edgeflare.conform.operators.one_input.constants_and_options import real_option
from edgeflare.conform.operators.one_input.one_input_operator import (
    OneInputOperator,
    ResultQuantization,
    as_scale,
)
from edgeflare.conform.specification.exact_answer import EPSILON, ExactAnswer, reals, steps
from edgeflare.conform.specification.operator_specification import (
    FLOAT,
    INT8,
    INT16,
    UINT8,
    Operand,
)
from edgeflare.conform.specification.real_number import RealNumber
from edgeflare.conform.specification.settings import Configuration, Setting, dimensions, number

_LEAST_NORMAL = float(np.finfo(np.float32).tiny)
"""Smaller results may be 0."""

_FUNCTION_ULPS = 4
"""What the exponential and the logarithm of a kernel may be off by, in roundings."""


_TABLE_ROUNDING = 2.0**-14
"""Of an exponential, for int16: all kernels have them from a table of 16 bits, whose last value
stands for all below exp(-10)."""


class LastAxisOperator(OneInputOperator):
    """An operator of the same shape as its operand, with a result of a fixed quantization."""

    quantized_result: ResultQuantization = "fixed"

    def fitting(
        self, configuration: Configuration, rng: np.random.Generator
    ) -> Mapping[str, Setting]:
        """Return the scale of operands; of most, values are not so far apart that one alone counts.

        Softmax is 1 of a value that is greater than all others by ten.
        """
        if "input_scale" not in configuration or rng.random() < 1 / 3:
            return {}
        reach = 7 if "input_zero_point" in configuration else 15
        return {"input_scale": as_scale(2.0 ** (rng.uniform(-2, 5) - reach))}

    def results(self, type_: str, configuration: Configuration) -> tuple[GraphValue, ...]:
        """Return a tensor of the operand's shape."""
        return (self.result(type_, configuration, dimensions(configuration, "shape")),)


class Softmax(LastAxisOperator):
    """exp(beta · x) as a share of its sum over the last axis."""

    own = (RealNumber("beta", 1 / 8, 1.0, 8.0),)
    fixed: Mapping[str, Quantization] = {
        INT8: Quantization((1 / 256,), -128),
        UINT8: Quantization((1 / 256,), 0),
        INT16: Quantization((1 / 32768,), 0),
    }

    def options(self, configuration: Configuration) -> Mapping[str, Option]:
        """Return the factor of the exponents."""
        return {"beta": number(configuration, "beta")}

    def settings(
        self,
        options: Mapping[str, Option],
        constants: Sequence[Values],  # noqa: ARG002
    ) -> Mapping[str, Setting]:
        """Return the factor of the exponents."""
        return {"beta": real_option(options, "beta")}

    def answers(
        self,
        options: Mapping[str, Option],
        operand: Operand,
        constants: Sequence[Values],  # noqa: ARG002
        results: Sequence[GraphValue],  # noqa: ARG002
    ) -> tuple[ExactAnswer, ...]:
        """Return the shares."""
        exponents = below_the_greatest(operand.real) * real_option(options, "beta")
        powers = np.exp(exponents)
        shares = powers / powers.sum(-1, keepdims=True)
        if operand.raw.dtype == np.int16:
            lost = _TABLE_ROUNDING * (1 + operand.raw.shape[-1] * shares)
            return (steps(shares, lost),)
        if operand.value.quantization is not None:
            return (steps(shares),)
        roundings = np.abs(exponents) + operand.raw.shape[-1] + _FUNCTION_ULPS
        # What has no weight may still have an exponent without bounds.
        slack = np.where(shares > 0, roundings * EPSILON * shares, 0.0) + _LEAST_NORMAL
        return (reals(shares, slack),)


class LogSoftmax(LastAxisOperator):
    """x less the logarithm of the sum of exp(x) over the last axis."""

    fixed: Mapping[str, Quantization] = {
        INT8: Quantization((16 / 256,), 127),
        UINT8: Quantization((16 / 256,), 255),
    }

    def answers(
        self,
        options: Mapping[str, Option],  # noqa: ARG002
        operand: Operand,
        constants: Sequence[Values],  # noqa: ARG002
        results: Sequence[GraphValue],  # noqa: ARG002
    ) -> tuple[ExactAnswer, ...]:
        """Return the logarithms."""
        exponents = below_the_greatest(operand.real)
        total = np.log(np.exp(exponents).sum(-1, keepdims=True))
        values = exponents - total
        if operand.value.quantization is not None:
            return (steps(values),)
        roundings = np.abs(exponents) + np.abs(total) + operand.raw.shape[-1] + _FUNCTION_ULPS
        return (reals(values, np.where(np.isfinite(roundings), roundings, 0.0) * EPSILON),)


def below_the_greatest(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return values less the greatest along the last axis."""
    return np.asarray(values - values.max(-1, keepdims=True, initial=-np.inf), np.float64)


SOFTMAXES = (
    Softmax("SOFTMAX", (FLOAT, INT8, UINT8, INT16), {INT8: 2, INT16: 3}),
    LogSoftmax("LOG_SOFTMAX", (FLOAT, INT8, UINT8), {INT8: 2}),
)
"""Softmax and its logarithm."""
