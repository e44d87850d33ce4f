"""Operators along one axis: extremes and where they are, running sums, softmax, normalizations.

Softmax and its logarithm are over the last axis; one normalization is by its length, the other by
neighbouring channels.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from edgeflare.conform.operator_graph import GraphValue, Quantization, Values
from edgeflare.conform.operators.aggregation.aggregate_operator import (
    SHAPE,
    AggregateOperator,
    as_scale,
)
from edgeflare.conform.operators.one_input_operator import FROM_0_TO_1, FROM_MINUS_1_TO_1
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
    ExactAnswers,
    bits,
    reals,
    steps,
    sum_slack,
)
from edgeflare.conform.specification.model_parts import ConstantOf, OptionOf, ShapeOf
from edgeflare.conform.specification.parameter import (
    Choice,
    Configuration,
    Dimensions,
    OperatorParameter,
    ParameterKind,
    Setting,
    Settings,
    Whole,
    dimensions,
    number,
    whole,
    word,
    yes,
)
from edgeflare.conform.specification.whole_numbers import clipped, within

_AXIS = ConstantOf(Whole("axis", -5, 4, simplest=0))


def _draw_axis(settings: Settings, rng: np.random.Generator) -> Settings:
    rank = len(dimensions(settings, "shape"))
    return {**settings, "axis": int(rng.integers(-rank, rank))}


def _fit_axis(settings: Settings, _: str) -> Settings:
    rank = len(dimensions(settings, "shape"))
    return {**settings, "axis": clipped((whole(settings, "axis"),), rank)[0]}


def _no_axis(_: str, settings: Configuration) -> str | None:
    rank, axis = len(dimensions(settings, "shape")), whole(settings, "axis")
    return None if -rank <= axis < rank else f"axis {axis} of a tensor of {rank} dimensions"


def _axis_facts(settings: Configuration) -> Mapping[str, Setting]:
    shape = dimensions(settings, "shape")
    axis = within(whole(settings, "axis"), len(shape))
    return {"axis_size": shape[axis], "last_axis": axis == len(shape) - 1}


def _no_extreme(type_: str, settings: Configuration) -> str | None:
    if (why := _no_axis(type_, settings)) is not None:
        return why
    if not dimensions(settings, "shape")[whole(settings, "axis")]:
        return "there is no greatest value along an axis of size 0"
    return None


def _indexes(_: GraphValue, settings: Configuration) -> tuple[GraphValue, ...]:
    """Return the indexes, without the axis."""
    shape = list(dimensions(settings, "shape"))
    del shape[whole(settings, "axis")]
    return (GraphValue(word(settings, "output_type").lower(), tuple(shape)),)


def _place_of_extreme(operator: str, find: Callable[..., Values]) -> AggregateOperator:
    """Return the operator that finds a value along an axis, the first of equal ones."""

    def answers(settings: Configuration, operand: Operand, result: GraphValue) -> ExactAnswer:
        # Equal raw values are equal real ones.
        indexes = find(operand.raw, whole(settings, "axis"))
        return bits(np.asarray(indexes).astype(result.dtype))

    return AggregateOperator(
        operator,
        (FLOAT, INT8, UINT8, INT32, BOOL),
        (SHAPE, _AXIS, OptionOf(Choice("output_type", ["INT32", "INT64"]), "outputType")),
        answers,
        written=_indexes,
        quantized_result={},
        versions={INT8: 2, BOOL: 3},
        varied=_draw_axis,
        fit=_fit_axis,
        refused=_no_extreme,
        known=_axis_facts,
    )


def _running_sums(settings: Configuration, operand: Operand, _: GraphValue) -> ExactAnswer:
    """Return the sums of all values up to each along an axis; whole numbers wrap."""
    if operand.raw.dtype.kind == "i":
        sums = _sums(operand.raw.astype(np.int64), settings)
        return bits(sums.astype(operand.raw.dtype))
    values, size = operand.real, operand.raw.shape[whole(settings, "axis")]
    return reals(_sums(values, settings), sum_slack(size, _sums(np.abs(values), settings)))


def _sums(values: Values, settings: Configuration) -> Values:
    axis = whole(settings, "axis")
    along = np.moveaxis(values, axis, -1)
    along = along[..., ::-1] if yes(settings, "reverse") else along
    sums = np.cumsum(along, -1)
    if yes(settings, "exclusive"):
        sums = np.concatenate([np.zeros_like(sums[..., :1]), sums[..., :-1]], -1)
    sums = sums[..., ::-1] if yes(settings, "reverse") else sums
    return np.moveaxis(sums, -1, axis)


ONE_AXIS = (
    _place_of_extreme("ARG_MAX", np.argmax),
    _place_of_extreme("ARG_MIN", np.argmin),
    AggregateOperator(
        "CUMSUM",
        (FLOAT, INT32, INT64),
        (
            SHAPE,
            _AXIS,
            *(
                OptionOf(Choice(name, [False, True]), name, False)
                for name in ("exclusive", "reverse")
            ),
        ),
        _running_sums,
        varied=_draw_axis,
        fit=_fit_axis,
        refused=_no_axis,
        known=_axis_facts,
    ),
)
"""Operators along one axis."""


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


_LEAST_NORMAL = float(np.finfo(np.float32).tiny)
"""Smaller results may be 0."""

_FUNCTION_ULPS = 4
"""What the exponential and the logarithm of a kernel may be off by, in roundings."""


_TABLE_ROUNDING = 2.0**-14
"""Rounding of an exponential for int16: all kernels have it from a table of 16 bits, whose last
value stands for all below exp(-10)."""


def _draw_reach(settings: Settings, rng: np.random.Generator) -> Settings:
    """Return settings by whose scale values are mostly not so far apart that one alone counts.

    Softmax is 1 of a value that is greater than all others by ten.
    """
    if "input_scale" not in settings or rng.random() < 1 / 3:
        return settings
    reach = 7 if "input_zero_point" in settings else 15
    return {**settings, "input_scale": as_scale(2.0 ** (rng.uniform(-2, 5) - reach))}


def _softmax(settings: Configuration, operand: Operand, _: GraphValue) -> ExactAnswer:
    """Return exp(beta · x) as a share of its sum over the last axis."""
    exponents = _below_the_greatest(operand.real) * number(settings, "beta")
    powers = np.exp(exponents)
    shares = powers / powers.sum(-1, keepdims=True)
    if operand.raw.dtype == np.int16:
        lost = _TABLE_ROUNDING * (1 + operand.raw.shape[-1] * shares)
        return steps(shares, lost)
    if operand.value.quantization is not None:
        return steps(shares)
    roundings = np.abs(exponents) + operand.raw.shape[-1] + _FUNCTION_ULPS
    # What has no weight may still have an exponent without bounds.
    slack = np.where(shares > 0, roundings * EPSILON * shares, 0.0) + _LEAST_NORMAL
    return reals(shares, slack)


def _log_softmax(_settings: Configuration, operand: Operand, _: GraphValue) -> ExactAnswer:
    """Return x less the logarithm of the sum of exp(x) over the last axis."""
    exponents = _below_the_greatest(operand.real)
    total = np.log(np.exp(exponents).sum(-1, keepdims=True))
    values = exponents - total
    if operand.value.quantization is not None:
        return steps(values)
    roundings = np.abs(exponents) + np.abs(total) + operand.raw.shape[-1] + _FUNCTION_ULPS
    return reals(values, np.where(np.isfinite(roundings), roundings, 0.0) * EPSILON)


def _below_the_greatest(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return values less the greatest along the last axis."""
    return np.asarray(values - values.max(-1, keepdims=True, initial=-np.inf), np.float64)


_BETA = _RealNumber("beta", 1 / 8, 1.0, 8.0)

SOFTMAXES = (
    AggregateOperator(
        "SOFTMAX",
        (FLOAT, INT8, UINT8, INT16),
        (SHAPE, OptionOf(_BETA, "beta")),
        _softmax,
        quantized_result=FROM_0_TO_1,
        versions={INT8: 2, INT16: 3},
        varied=_draw_reach,
    ),
    AggregateOperator(
        "LOG_SOFTMAX",
        (FLOAT, INT8, UINT8),
        (SHAPE,),
        _log_softmax,
        quantized_result={
            INT8: Quantization((16 / 256,), 127),
            UINT8: Quantization((16 / 256,), 255),
        },
        versions={INT8: 2},
        varied=_draw_reach,
    ),
)
"""Softmax and its logarithm."""


_LEAST_LENGTH = 1e-6
"""Vectors that are shorter are divided by it."""


def _of_length_1(_settings: Configuration, operand: Operand, _: GraphValue) -> ExactAnswer:
    """Return vectors along the last axis, divided by their lengths."""
    values = operand.real
    length = np.sqrt(np.sum(values**2, -1, keepdims=True))
    if operand.value.quantization is not None:
        # No vector of whole numbers is that short, but one of zeros.
        return steps(values / np.where(length == 0, 1.0, length))
    normalized = values / np.maximum(length, _LEAST_LENGTH)
    roundings = operand.raw.shape[-1] / 2 + 4
    return reals(normalized, roundings * EPSILON * np.abs(normalized))


def _local_response(settings: Configuration, operand: Operand, _: GraphValue) -> ExactAnswer:
    """Return values divided by a power of the sum of the squares of the channels around them."""
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
    return reals(normalized, roundings * EPSILON * np.abs(normalized))


_RADIUS = Whole("radius", 0, 8, limit=2**20, kind="mode")
_DIVISOR = (
    _RealNumber("bias", 1 / 8, 1.0, 8.0),
    _RealNumber("alpha", 1 / 64, 1.0, 4.0),
    _RealNumber("beta", 1 / 8, 0.5, 2.0),
)

NORMALIZATIONS = (
    AggregateOperator(
        "L2_NORMALIZATION",
        (FLOAT, INT8, UINT8),
        (SHAPE,),
        _of_length_1,
        quantized_result=FROM_MINUS_1_TO_1,
        versions={INT8: 2},
        varied=_draw_reach,
    ),
    AggregateOperator(
        "LOCAL_RESPONSE_NORMALIZATION",
        (FLOAT,),
        (
            ShapeOf(Dimensions("shape", (4, 4), most_values=1000)),
            *(OptionOf(real, real.name) for real in (_RADIUS, *_DIVISOR)),
        ),
        _local_response,
    ),
)
"""Operators that divide values by what others have."""


def _draw_count(settings: Settings, rng: np.random.Generator) -> Settings:
    """Return settings with at most as many values as there are, or as were drawn."""
    size, k = dimensions(settings, "shape")[-1], whole(settings, "k")
    return {**settings, "k": k if k <= size else int(rng.integers(min(1, size), size + 1))}


def _too_many(_: str, settings: Configuration) -> str | None:
    size, k = dimensions(settings, "shape")[-1], whole(settings, "k")
    return f"the greatest {k} of {size} values" if k > size else None


def _values_and_indexes(form: GraphValue, settings: Configuration) -> tuple[GraphValue, ...]:
    shape = (*dimensions(settings, "shape")[:-1], whole(settings, "k"))
    return replace(form, shape=shape), GraphValue("int32", shape)


def _top_values(settings: Configuration, operand: Operand, _: GraphValue) -> ExactAnswers:
    """Return the k greatest raw values in falling order, the first of equal ones first."""
    raw, k = operand.raw, whole(settings, "k")
    # The complement falls where a whole number rises, at the ends of its type as well.
    falling = -raw if raw.dtype.kind == "f" else ~raw
    indexes = np.argsort(falling, -1, kind="stable")[..., :k]
    return bits(np.take_along_axis(raw, indexes, -1)), bits(indexes.astype(np.int32))


TOP_VALUES = (
    AggregateOperator(
        "TOPK_V2",
        (FLOAT, INT8, UINT8, INT16, INT32, INT64),
        (SHAPE, ConstantOf(Whole("k", 0, 33, limit=2**20, rare=(0,)))),
        _top_values,
        written=_values_and_indexes,
        quantized_result="operand",
        versions={INT8: 2, INT16: 3},
        varied=_draw_count,
        fit=lambda settings, _: {
            **settings,
            "k": min(whole(settings, "k"), dimensions(settings, "shape")[-1]),
        },
        refused=_too_many,
    ),
)
"""The operator that finds the greatest values."""
