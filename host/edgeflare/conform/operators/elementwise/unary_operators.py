"""The functions of unary operators, one row for each."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from math import erf, pi, prod, sqrt
from typing import Literal

import numpy as np

from edgeflare.conform.operator_graph import GraphValue, OperatorGraph, Values
from edgeflare.conform.operators.elementwise.real_answers import NO_LOSS, Loss, answer
from edgeflare.conform.operators.elementwise.result_scales import (
    drawn_output,
    levels,
    reaching_scale,
    scale_ratio,
)
from edgeflare.conform.operators.one_input_operator import (
    FROM_0_TO_1,
    FROM_MINUS_1_TO_1,
    OneInputOperator,
    ResultQuantization,
)
from edgeflare.conform.specification.activation_tensors import (
    BOOL,
    DTYPES,
    FLOAT,
    INT8,
    INT16,
    INT32,
    INT64,
    QUANTIZED,
    UINT8,
    Operand,
    OperandStyle,
    operand_values,
)
from edgeflare.conform.specification.exact_answer import ExactAnswer
from edgeflare.conform.specification.model_parts import OptionOf, ShapeOf
from edgeflare.conform.specification.parameter import (
    Choice,
    Configuration,
    Dimensions,
    OperatorParameter,
    ParameterKind,
    Setting,
    dimensions,
    number,
    whole,
)

_REACHING = 3 / 4
"""The share of draws with a scale at which functions bend; the others have any scale."""


@dataclass(frozen=True, slots=True)
class _RealFunction:
    """The exact answers of a function of real numbers, or of whole ones.

    Attributes:
        of: the function of float64 values, or of int64 ones of whole numbers, given the settings.
        loss: what float32 arithmetic may lose.

    """

    of: Callable[[Values, Configuration], Values]
    loss: Loss

    def __call__(
        self, settings: Configuration, operand: Operand, result: GraphValue
    ) -> ExactAnswer:
        """Return the function of the operand."""
        return answer(lambda x: self.of(x, settings), [operand], result, loss=self.loss)


@dataclass(frozen=True, eq=False)
class _UnaryOperator(OneInputOperator):
    """An operator that computes a function of each value.

    Attributes:
        domain: "positive" if negative values have no result, and zero none that is finite.
        least_output: the scale of the result is greater than that of the operand times this.
        reaches: exponents of 2 between which most operands' largest real value lies.

    """

    answers: _RealFunction
    _: KW_ONLY
    domain: Literal["all", "positive"] = "all"
    least_output: float = 0.0
    reaches: tuple[float, float] = (-1, 5)

    def fault(self, type_: str, configuration: Configuration) -> str | None:
        """Return why a configuration is no valid model, or None."""
        if type_ not in QUANTIZED:
            return None
        read = self.form(type_, configuration, "input")
        if self.domain == "positive" and levels(read).max() <= 0:
            return f"{self.operator} has no positive value to read"
        if "output_scale" in configuration:
            least = self.least_output * number(configuration, "input_scale")
            if number(configuration, "output_scale") <= least:
                return f"output_scale is not above {least}"
        return None

    def draw(self, type_: str, rng: np.random.Generator) -> Configuration:
        """Return settings, most of them with a scale at which the function bends."""
        drawn = dict(super().draw(type_, rng))
        if type_ not in QUANTIZED:
            return drawn
        if rng.random() < _REACHING:
            drawn["input_scale"] = reaching_scale(type_, rng, self.reaches)
        if self.domain == "positive" and "input_zero_point" in drawn:
            # Nothing of the type is above its greatest value.
            highest = int(np.iinfo(DTYPES[type_]).max)
            drawn["input_zero_point"] = min(whole(drawn, "input_zero_point"), highest - 1)
        if "output_scale" in drawn:
            with np.errstate(all="ignore"):
                results = self.answers.of(levels(self.form(type_, drawn, "input")), drawn)
            least = self.least_output * number(drawn, "input_scale")
            drawn |= drawn_output(type_, results, rng, least)
        return drawn

    def operands(
        self, graph: OperatorGraph, style: OperandStyle, rng: np.random.Generator
    ) -> tuple[Values, ...]:
        """Return values, none of them negative where the function has no result for these."""
        value = graph.values[graph.inputs[0]]
        raw = operand_values(value, style, rng)
        if self.domain == "all":
            return (raw,)
        if value.quantization is None:
            return (np.abs(raw) + np.asarray(2.0**-10, raw.dtype),)
        return (np.maximum(raw, np.asarray(value.quantization.zero_point + 1, raw.dtype)),)


def _sizes_and_ratio(settings: Configuration) -> Mapping[str, Setting]:
    shape = dimensions(settings, "shape")
    return {"size": prod(shape), "last_size": (1, *shape)[-1], **scale_ratio(settings)}


def _unary(
    operator: str,
    versions: Mapping[str, int],
    of: Callable[[Values, Configuration], Values],
    loss: Loss = NO_LOSS,
    *,
    options: Sequence[OperatorParameter] = (),
    result: ResultQuantization = "own",
    domain: Literal["all", "positive"] = "all",
) -> _UnaryOperator:
    """Return an operator that computes a function, given the lowest version of each type."""
    return _UnaryOperator(
        operator,
        tuple(versions),
        (
            _SHAPE,
            *(OptionOf(parameter, parameter.name, parameter.simplest) for parameter in options),
        ),
        _RealFunction(of, loss),
        versions=versions,
        quantized_result=result,
        domain=domain,
        known=_sizes_and_ratio,
    )


def _plain(operator: str, of: Callable[[Values], Values], loss: Loss = NO_LOSS) -> _UnaryOperator:
    """Return a function of float values, in version 1."""
    return _unary(operator, {FLOAT: 1}, lambda x, _: of(x), loss)


_SHAPE = ShapeOf(Dimensions("shape"))

_SPANS = {
    "negative": (-2.0, -0.01),
    "0": (0.0, 0.0),
    "below 1": (0.01, 0.99),
    "1": (1.0, 1.0),
    "above 1": (1.01, 2.0),
}
"""Range of the slopes that are drawn, by bucket."""


class Slope(OperatorParameter):
    """A factor of negative values."""

    kind: ParameterKind = "mode"
    unit = ""
    simplest = 0.5
    buckets = tuple(_SPANS)

    def __init__(self, name: str) -> None:
        """Declare a slope."""
        self.name = name

    def bucket(self, setting: Setting) -> str:
        """Return the bucket of a setting."""
        if isinstance(setting, bool) or not isinstance(setting, int | float):
            raise TypeError(f"{self.name} is {setting!r}, no number")
        if setting < 0:
            return "negative"
        if setting in (0, 1):
            return "0" if setting == 0 else "1"
        return "below 1" if setting < 1 else "above 1"

    def draw(self, rng: np.random.Generator) -> Setting:
        """Return a setting."""
        low, high = _SPANS[self.buckets[int(rng.integers(len(self.buckets)))]]
        return float(np.float32(rng.uniform(low, high)))


_erf = np.vectorize(erf, otypes=[np.float64])


def _clamped(low: float, high: float) -> Callable[[Values, Configuration], Values]:
    return lambda x, _: np.clip(x, low, high)


def _gelu(x: Values, settings: Configuration) -> Values:
    if settings["approximate"]:
        part = np.tanh(sqrt(2 / pi) * (x + 0.044715 * x**3))
    else:
        part = _erf(x / sqrt(2))
    return np.asarray(x / 2 * (1 + part))


_ALL_QUANTIZED = {FLOAT: 1, INT8: 2, UINT8: 1, INT16: 3}

UNARY_OPERATORS = (
    _unary("ABS", {FLOAT: 1, INT8: 2, INT16: 3, INT32: 5}, lambda x, _: np.abs(x)),
    _unary(
        "NEG",
        dict.fromkeys((FLOAT, INT32, INT64), 1),
        lambda x, _: np.negative(x),
    ),
    _unary("SIGN", {FLOAT: 1, INT32: 2}, lambda x, _: np.sign(x)),
    _plain("FLOOR", np.floor),
    _plain("CEIL", np.ceil),
    _plain("ROUND", np.rint),
    _plain("SQUARE", np.square, Loss(1)),
    _plain("SIN", np.sin, Loss(2, 1)),
    _plain("COS", np.cos, Loss(2, 1)),
    _unary(
        "SQRT", {FLOAT: 1, INT8: 1, INT16: 1}, lambda x, _: np.sqrt(x), Loss(2), domain="positive"
    ),
    _unary(
        "RSQRT",
        {FLOAT: 1, INT8: 2, INT16: 3},
        lambda x, _: 1 / np.sqrt(x),
        Loss(4),
        domain="positive",
    ),
    replace(
        _unary("EXP", {FLOAT: 1, INT8: 2, INT16: 2}, lambda x, _: np.exp(x), Loss(4, 1)),
        reaches=(-2, 2),
    ),
    _unary(
        "LOG",
        {FLOAT: 1, INT8: 2, INT16: 2},
        lambda x, _: np.log(x),
        Loss(4, 1),
        domain="positive",
    ),
    _unary("RELU", {FLOAT: 1, INT8: 2, UINT8: 2, INT16: 3}, _clamped(0, np.inf)),
    _unary("RELU6", {FLOAT: 1, INT8: 2, UINT8: 1, INT16: 3}, _clamped(0, 6)),
    _unary("RELU_N1_TO_1", {FLOAT: 1, INT8: 1, UINT8: 1}, _clamped(-1, 1)),
    _unary("RELU_0_TO_1", {FLOAT: 1, INT8: 1, UINT8: 1}, _clamped(0, 1)),
    _unary(
        "LEAKY_RELU",
        {FLOAT: 1, INT8: 1, UINT8: 1, INT16: 2},
        lambda x, settings: np.where(x < 0, number(settings, "alpha") * x, x),
        Loss(1),
        options=(Slope("alpha"),),
    ),
    _unary("ELU", {FLOAT: 1, INT8: 1}, lambda x, _: np.where(x < 0, np.expm1(x), x), Loss(4)),
    _unary(
        "GELU",
        {FLOAT: 1, INT8: 2, UINT8: 2, INT16: 1},
        _gelu,
        Loss(4, 1, cancelled=2),
        options=(Choice("approximate", (False, True)),),
    ),
    replace(
        _unary(
            "HARD_SWISH",
            {FLOAT: 1, INT8: 1, UINT8: 1},
            lambda x, _: x * np.clip(x + 3, 0, 6) / 6,
            Loss(4, 1),
        ),
        least_output=1 / 128,
    ),
    _unary(
        "LOGISTIC",
        _ALL_QUANTIZED,
        lambda x, _: 1 / (1 + np.exp(-x)),
        Loss(4, 1),
        result=FROM_0_TO_1,
    ),
    _unary("TANH", _ALL_QUANTIZED, lambda x, _: np.tanh(x), Loss(4, 1), result=FROM_MINUS_1_TO_1),
    _unary("LOGICAL_NOT", {BOOL: 1}, lambda x, _: np.logical_not(x)),
)

"""Unary operators of TFLite."""
