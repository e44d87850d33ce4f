"""Normalizations: by the length of the last axis, and by neighbouring channels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from edgeflare.conform.operator_graph import GraphValue, Option, Quantization, Values
from edgeflare.conform.operators.one_input.constants_and_options import real_option
from edgeflare.conform.operators.one_input.softmax import LastAxisOperator
from edgeflare.conform.specification.exact_answer import EPSILON, ExactAnswer, reals, steps
from edgeflare.conform.specification.operator_specification import FLOAT, INT8, UINT8, Operand
from edgeflare.conform.specification.parameter import Whole
from edgeflare.conform.specification.real_number import RealNumber
from edgeflare.conform.specification.settings import Configuration, Setting, number, whole

_LEAST_LENGTH = 1e-6
"""Vectors that are shorter are divided by it."""


class LengthNormalization(LastAxisOperator):
    """Vectors along the last axis, divided by their lengths."""

    fixed: Mapping[str, Quantization] = {
        INT8: Quantization((1 / 128,), 0),
        UINT8: Quantization((1 / 128,), 128),
    }

    def answers(
        self,
        options: Mapping[str, Option],  # noqa: ARG002
        operand: Operand,
        constants: Sequence[Values],  # noqa: ARG002
        results: Sequence[GraphValue],  # noqa: ARG002
    ) -> tuple[ExactAnswer, ...]:
        """Return the normalized vectors."""
        values = operand.real
        length = np.sqrt(np.sum(values**2, -1, keepdims=True))
        if operand.value.quantization is not None:
            # No vector of whole numbers is that short, but one of zeros.
            return (steps(values / np.where(length == 0, 1.0, length)),)
        normalized = values / np.maximum(length, _LEAST_LENGTH)
        roundings = operand.raw.shape[-1] / 2 + 4
        return (reals(normalized, roundings * EPSILON * np.abs(normalized)),)


class LocalResponseNormalization(LastAxisOperator):
    """Values divided by a power of the sum of the squares of the channels around them."""

    ranks = (4, 4)
    own = (
        Whole("radius", 0, 8, limit=2**20, kind="mode"),
        RealNumber("bias", 1 / 8, 1.0, 8.0),
        RealNumber("alpha", 1 / 64, 1.0, 4.0),
        RealNumber("beta", 1 / 8, 0.5, 2.0),
    )

    def options(self, configuration: Configuration) -> Mapping[str, Option]:
        """Return the radius, and the numbers of the divisor."""
        numbers = {name: number(configuration, name) for name in ("bias", "alpha", "beta")}
        return {"radius": whole(configuration, "radius"), **numbers}

    def settings(
        self,
        options: Mapping[str, Option],
        constants: Sequence[Values],  # noqa: ARG002
    ) -> Mapping[str, Setting]:
        """Return the radius, and the numbers of the divisor."""
        names = ("bias", "alpha", "beta")
        numbers = {name: real_option(options, name) for name in names}
        return {"radius": int(real_option(options, "radius")), **numbers}

    def answers(
        self,
        options: Mapping[str, Option],
        operand: Operand,
        constants: Sequence[Values],  # noqa: ARG002
        results: Sequence[GraphValue],  # noqa: ARG002
    ) -> tuple[ExactAnswer, ...]:
        """Return the normalized values."""
        settings = self.settings(options, ())
        radius, beta = whole(settings, "radius"), number(settings, "beta")
        values = operand.real
        channels = values.shape[-1]
        # A sum over some channels is the difference of two over all channels before them.
        before = np.concatenate([np.zeros_like(values[..., :1]), np.cumsum(values**2, -1)], -1)
        at = np.arange(channels)
        upper, lower = np.minimum(at + radius + 1, channels), np.maximum(at - radius, 0)
        alpha = number(settings, "alpha")
        base = number(settings, "bias") + alpha * (before[..., upper] - before[..., lower])
        normalized = values * base**-beta
        # Kernels, too, keep a running sum; what it has lost is divided by a smaller one.
        lost = (channels + 4) * alpha * before[..., upper] / base
        roundings = beta * (lost + np.abs(np.log(base)) + 4) + 4
        return (reals(normalized, roundings * EPSILON * np.abs(normalized)),)


NORMALIZATIONS = (
    LengthNormalization("L2_NORMALIZATION", (FLOAT, INT8, UINT8), {INT8: 2}),
    LocalResponseNormalization("LOCAL_RESPONSE_NORMALIZATION", (FLOAT,)),
)
"""Operators that divide values by what others have."""
