"""Operators over the last axis: softmax, normalizations, and the greatest values.

Softmax and its logarithm are over the last axis; one normalization is by its length, the other by
neighbouring channels.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from edgeflare.conform.operator_graph import GraphValue, Option, Quantization, Values
from edgeflare.conform.operators.one_input.one_input_operator import (
    OneInputOperator,
    ResultQuantization,
    as_scale,
    constant,
    only_value,
    real_option,
)
from edgeflare.conform.specification.operator_specification import (
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
)
from edgeflare.conform.specification.parameter import (
    Configuration,
    OperatorParameter,
    ParameterKind,
    Setting,
    Whole,
    dimensions,
    number,
    whole,
)


class _RealNumber(OperatorParameter):
    """A number above zero, as float32 has it; what is usual, what is below and above it."""

    kind: ParameterKind = "mode"
    unit = ""

    def __init__(self, name: str, low: float, usual: float, high: float) -> None:
        """Declare a number that is mostly `usual`, else drawn from `low` to `high`."""
        self.name, self.simplest = name, float(np.float32(usual))
        self._usual, self._low, self._high = self.simplest, low, high
        self.buckets = (f"{usual:g}", f"below {usual:g}", f"above {usual:g}")

    def bucket(self, setting: Setting) -> str:
        """Return the bucket of a setting."""
        if not isinstance(setting, int | float):
            raise TypeError(f"{setting!r} is no number")
        # Models that a user brings may be beyond what is drawn.
        if not 0 < setting < np.inf:
            raise ValueError(f"{self.name} {setting}")
        if setting == self._usual:
            return self.buckets[0]
        return self.buckets[1 if setting < self._usual else 2]

    def draw(self, rng: np.random.Generator) -> Setting:
        """Return a setting."""
        place = int(rng.integers(3))
        if place == 0:
            return self._usual
        low, high = (self._low, self._usual) if place == 1 else (self._usual, self._high)
        return float(np.float32(np.exp(rng.uniform(np.log(low), np.log(high)))))

    def simpler(self, setting: Setting) -> Iterator[Setting]:
        """Yield simpler settings."""
        if setting != self.simplest:
            yield self.simplest


_LEAST_NORMAL = float(np.finfo(np.float32).tiny)
"""Smaller results may be 0."""

_FUNCTION_ULPS = 4
"""What the exponential and the logarithm of a kernel may be off by, in roundings."""


_TABLE_ROUNDING = 2.0**-14
"""Rounding of an exponential for int16: all kernels have it from a table of 16 bits, whose last
value stands for all below exp(-10)."""


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

    own = (_RealNumber("beta", 1 / 8, 1.0, 8.0),)
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
        exponents = _below_the_greatest(operand.real) * real_option(options, "beta")
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
        exponents = _below_the_greatest(operand.real)
        total = np.log(np.exp(exponents).sum(-1, keepdims=True))
        values = exponents - total
        if operand.value.quantization is not None:
            return (steps(values),)
        roundings = np.abs(exponents) + np.abs(total) + operand.raw.shape[-1] + _FUNCTION_ULPS
        return (reals(values, np.where(np.isfinite(roundings), roundings, 0.0) * EPSILON),)


def _below_the_greatest(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return values less the greatest along the last axis."""
    return np.asarray(values - values.max(-1, keepdims=True, initial=-np.inf), np.float64)


SOFTMAXES = (
    Softmax("SOFTMAX", (FLOAT, INT8, UINT8, INT16), {INT8: 2, INT16: 3}),
    LogSoftmax("LOG_SOFTMAX", (FLOAT, INT8, UINT8), {INT8: 2}),
)
"""Softmax and its logarithm."""


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
        _RealNumber("bias", 1 / 8, 1.0, 8.0),
        _RealNumber("alpha", 1 / 64, 1.0, 4.0),
        _RealNumber("beta", 1 / 8, 0.5, 2.0),
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


class TopValues(OneInputOperator):
    """The k greatest values along the last axis in falling order, the first of equal ones first."""

    quantized_result: ResultQuantization = "equal"
    constant_operands = 1
    own = (Whole("k", 0, 33, limit=2**20, rare=(0,)),)

    def constants(self, configuration: Configuration) -> tuple[GraphValue, ...]:
        """Return how many values: ()."""
        return (constant(whole(configuration, "k")),)

    def settings(
        self,
        options: Mapping[str, Option],  # noqa: ARG002
        constants: Sequence[Values],
    ) -> Mapping[str, Setting]:
        """Return how many values."""
        return {"k": only_value(constants)}

    def fitting(
        self, configuration: Configuration, rng: np.random.Generator
    ) -> Mapping[str, Setting]:
        """Return at most as many values as there are, or as were drawn."""
        size, k = dimensions(configuration, "shape")[-1], whole(configuration, "k")
        return {"k": k if k <= size else int(rng.integers(min(1, size), size + 1))}

    def fitted(self, configuration: Configuration) -> Mapping[str, Setting]:
        """Return at most as many values as there are."""
        return {"k": min(whole(configuration, "k"), dimensions(configuration, "shape")[-1])}

    def fault(self, type_: str, configuration: Configuration) -> str | None:  # noqa: ARG002
        """Return why a configuration is no valid model, or None."""
        size, k = dimensions(configuration, "shape")[-1], whole(configuration, "k")
        return f"the greatest {k} of {size} values" if k > size else None

    def results(self, type_: str, configuration: Configuration) -> tuple[GraphValue, ...]:
        """Return the values and their indexes."""
        shape = (*dimensions(configuration, "shape")[:-1], whole(configuration, "k"))
        return self.result(type_, configuration, shape), GraphValue("int32", shape)

    def answers(
        self,
        options: Mapping[str, Option],  # noqa: ARG002
        operand: Operand,
        constants: Sequence[Values],
        results: Sequence[GraphValue],  # noqa: ARG002
    ) -> tuple[ExactAnswer, ...]:
        """Return raw values, and their indexes."""
        raw, k = operand.raw, only_value(constants)
        # The complement falls where a whole number rises, at the ends of its type as well.
        falling = -raw if raw.dtype.kind == "f" else ~raw
        indexes = np.argsort(falling, -1, kind="stable")[..., :k]
        return bits(np.take_along_axis(raw, indexes, -1)), bits(indexes.astype(np.int32))


TOP_VALUES = (TopValues("TOPK_V2", (FLOAT, INT8, UINT8, INT16, INT32, INT64), {INT8: 2, INT16: 3}),)
"""The operator that finds the greatest values."""
