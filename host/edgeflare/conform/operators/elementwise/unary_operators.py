"""The functions of unary operators, one row for each."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from math import erf, pi, sqrt

import numpy as np

from edgeflare.conform.graphs.operator_graph import Option, Quantization, Values
from edgeflare.conform.operators.elementwise.real_answers import NO_LOSS, Loss
from edgeflare.conform.operators.elementwise.unary_operator import UnaryFunction, UnaryOperator
from edgeflare.conform.specification.operator_specification import (
    BOOL,
    FLOAT,
    INT8,
    INT16,
    INT32,
    INT64,
    UINT8,
)
from edgeflare.conform.specification.parameter import Choice, OperatorParameter, ParameterKind
from edgeflare.conform.specification.settings import Setting, number

_SPANS = {
    "negative": (-2.0, -0.01),
    "0": (0.0, 0.0),
    "below 1": (0.01, 0.99),
    "1": (1.0, 1.0),
    "above 1": (1.01, 2.0),
}
"""What is drawn, by bucket."""


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
        return "0" if setting == 0 else _against_1(setting)

    def draw(self, rng: np.random.Generator) -> Setting:
        """Return a setting."""
        low, high = _SPANS[self.buckets[int(rng.integers(len(self.buckets)))]]
        return float(np.float32(rng.uniform(low, high)))

    def simpler(self, setting: Setting) -> Iterator[Setting]:
        """Yield simpler settings."""
        if setting != self.simplest:
            yield self.simplest


_erf = np.vectorize(erf, otypes=[np.float64])


def _clamped(low: float, high: float) -> Callable[[Values, Mapping[str, Option]], Values]:
    return lambda x, _: np.clip(x, low, high)


def _gelu(x: Values, options: Mapping[str, Option]) -> Values:
    if options.get("approximate", False):
        part = np.tanh(sqrt(2 / pi) * (x + 0.044715 * x**3))
    else:
        part = _erf(x / sqrt(2))
    return np.asarray(x / 2 * (1 + part))


def _leaky_relu(x: Values, options: Mapping[str, Option]) -> Values:
    return np.where(x < 0, number(options, "alpha") * x, x)


def _elu(x: Values, _: Mapping[str, Option]) -> Values:
    return np.where(x < 0, np.expm1(x), x)


def _plain(
    operator: str, of: Callable[[Values], Values], loss: Loss = NO_LOSS, *types: str
) -> UnaryFunction:
    """Return a function of values that stand for themselves, in version 1."""
    return UnaryFunction(operator, dict.fromkeys((FLOAT, *types), 1), lambda x, _: of(x), loss)


_HALVES = {
    INT8: Quantization((1 / 256,), -128),
    UINT8: Quantization((1 / 256,), 0),
    INT16: Quantization((1 / 32768,), 0),
}
"""Of results between 0 and 1; int16 has half of its range for them."""

_WHOLES = {
    INT8: Quantization((1 / 128,), 0),
    UINT8: Quantization((1 / 128,), 128),
    INT16: Quantization((1 / 32768,), 0),
}
"""Of results between -1 and 1."""

_ALL_QUANTIZED = {FLOAT: 1, INT8: 2, UINT8: 1, INT16: 3}

_FUNCTIONS = (
    UnaryFunction("ABS", {FLOAT: 1, INT8: 2, INT16: 3, INT32: 5}, lambda x, _: np.abs(x)),
    UnaryFunction(
        "NEG",
        dict.fromkeys((FLOAT, INT32, INT64), 1),
        lambda x, _: np.negative(x),
    ),
    UnaryFunction("SIGN", {FLOAT: 1, INT32: 2}, lambda x, _: np.sign(x)),
    _plain("FLOOR", np.floor),
    _plain("CEIL", np.ceil),
    _plain("ROUND", np.rint),
    _plain("SQUARE", np.square, Loss(1)),
    _plain("SIN", np.sin, Loss(2, 1)),
    _plain("COS", np.cos, Loss(2, 1)),
    UnaryFunction(
        "SQRT", {FLOAT: 1, INT8: 1, INT16: 1}, lambda x, _: np.sqrt(x), Loss(2), domain="positive"
    ),
    UnaryFunction(
        "RSQRT",
        {FLOAT: 1, INT8: 2, INT16: 3},
        lambda x, _: 1 / np.sqrt(x),
        Loss(4),
        domain="positive",
    ),
    UnaryFunction(
        "EXP", {FLOAT: 1, INT8: 2, INT16: 2}, lambda x, _: np.exp(x), Loss(4, 1), reaches=(-2, 2)
    ),
    UnaryFunction(
        "LOG",
        {FLOAT: 1, INT8: 2, INT16: 2},
        lambda x, _: np.log(x),
        Loss(4, 1),
        domain="positive",
    ),
    UnaryFunction("RELU", {FLOAT: 1, INT8: 2, UINT8: 2, INT16: 3}, _clamped(0, np.inf)),
    UnaryFunction("RELU6", {FLOAT: 1, INT8: 2, UINT8: 1, INT16: 3}, _clamped(0, 6)),
    UnaryFunction("RELU_N1_TO_1", {FLOAT: 1, INT8: 1, UINT8: 1}, _clamped(-1, 1)),
    UnaryFunction("RELU_0_TO_1", {FLOAT: 1, INT8: 1, UINT8: 1}, _clamped(0, 1)),
    UnaryFunction(
        "LEAKY_RELU",
        {FLOAT: 1, INT8: 1, UINT8: 1, INT16: 2},
        _leaky_relu,
        Loss(1),
        options={"alpha": Slope("alpha")},
    ),
    UnaryFunction("ELU", {FLOAT: 1, INT8: 1}, _elu, Loss(4)),
    UnaryFunction(
        "GELU",
        {FLOAT: 1, INT8: 2, UINT8: 2, INT16: 1},
        _gelu,
        Loss(4, 1, cancelled=2),
        options={"approximate": Choice("approximate", (False, True))},
    ),
    UnaryFunction(
        "HARD_SWISH",
        {FLOAT: 1, INT8: 1, UINT8: 1},
        lambda x, _: x * np.clip(x + 3, 0, 6) / 6,
        Loss(4, 1),
        least_output=1 / 128,
    ),
    UnaryFunction(
        "LOGISTIC", _ALL_QUANTIZED, lambda x, _: 1 / (1 + np.exp(-x)), Loss(4, 1), result=_HALVES
    ),
    UnaryFunction("TANH", _ALL_QUANTIZED, lambda x, _: np.tanh(x), Loss(4, 1), result=_WHOLES),
    UnaryFunction("LOGICAL_NOT", {BOOL: 1}, lambda x, _: np.logical_not(x)),
)

UNARY_OPERATORS = tuple(map(UnaryOperator, _FUNCTIONS))
"""Unary operators of TFLite."""


def _against_1(setting: float) -> str:
    if setting == 1:
        return "1"
    return "below 1" if setting < 1 else "above 1"
