"""The functions of unary operators, one row for each."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import erf, pi, prod, sqrt
from typing import Literal

import numpy as np

from edgeflare.conform.operator_graph import (
    GraphValue,
    OperatorGraph,
    Option,
    Quantization,
    Values,
)
from edgeflare.conform.operators.elementwise.activation_tensors import (
    DTYPES,
    QUANTIZED,
    activation,
    check_alike,
    drawn_output,
    levels,
    quantization_parameters,
    quantization_settings,
    reaching_scale,
    type_of,
)
from edgeflare.conform.operators.elementwise.real_answers import NO_LOSS, Loss, Reals, answer
from edgeflare.conform.specification.operator_specification import (
    BOOL,
    FLOAT,
    INT8,
    INT16,
    INT32,
    INT64,
    UINT8,
    ExactAnswer,
    Operand,
    OperandStyle,
    OperatorReading,
    OperatorSpecification,
    UnknownOperatorForm,
    operand_values,
)
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

_ResultScale = Literal["free", "same"]
"""How a result is quantized: as it is drawn, or as what is read."""

_REACHING = 3 / 4
"""The share of draws with a scale at which functions bend; the others have any scale."""


@dataclass(frozen=True, slots=True)
class _UnaryFunction:
    """What one unary operator computes, and in which models.

    Attributes:
        operator: name in the schema.
        versions: the lowest version that has a type, by type.
        of: the function of float64 values, or of int64 ones of whole numbers, given the options.
        loss: what float32 arithmetic may lose.
        result: how the result is quantized; or what it has to be, by type.
        options: parameters that are options of the schema, by their names there.
        domain: "positive" if negative values have no result, and zero none that is finite.
        least_output: the scale of the result is greater than that of the operand times this.
        reaches: exponents of 2 between which most operands' largest real value lies.

    """

    operator: str
    versions: Mapping[str, int]
    of: Callable[[Values, Mapping[str, Option]], Values]
    loss: Loss = NO_LOSS
    result: _ResultScale | Mapping[str, Quantization] = "free"
    options: Mapping[str, OperatorParameter] = field(default_factory=dict)
    domain: Literal["all", "positive"] = "all"
    least_output: float = 0.0
    reaches: tuple[float, float] = (-1, 5)


class _UnaryOperator(OperatorSpecification):
    """An operator with one operand."""

    def __init__(self, function: _UnaryFunction) -> None:
        """Declare the operator that computes a function."""
        self.operator, self.types = function.operator, tuple(function.versions)
        self._function = function

    def parameters(self, type_: str) -> tuple[OperatorParameter, ...]:
        """Return the shape, the options, and how operand and result are quantized."""
        known = [Dimensions("shape"), *self._function.options.values()]
        known.extend(quantization_parameters(type_, "input"))
        if self._function.result == "free":
            known.extend(quantization_parameters(type_, "output"))
        return tuple(known)

    def fault(self, type_: str, configuration: Configuration) -> str | None:
        """Return why a configuration is no valid model, or None."""
        if type_ not in QUANTIZED:
            return None
        read = activation(type_, (), configuration, "input")
        if self._function.domain == "positive" and levels(read).max() <= 0:
            return f"{self.operator} has no positive value to read"
        if self._function.result == "free":
            least = self._function.least_output * number(configuration, "input_scale")
            if number(configuration, "output_scale") <= least:
                return f"output_scale is not above {least}"
        return None

    def draw(self, type_: str, rng: np.random.Generator) -> Configuration:
        """Return settings, most of them with a scale at which the function bends."""
        drawn = dict(super().draw(type_, rng))
        if type_ not in QUANTIZED:
            return drawn
        if rng.random() < _REACHING:
            drawn["input_scale"] = reaching_scale(type_, rng, self._function.reaches)
        if self._function.domain == "positive" and "input_zero_point" in drawn:
            # Nothing of the type is above its greatest value.
            highest = int(np.iinfo(DTYPES[type_]).max)
            drawn["input_zero_point"] = min(whole(drawn, "input_zero_point"), highest - 1)
        if self._function.result == "free":
            read = levels(activation(type_, (), drawn, "input"))
            with np.errstate(all="ignore"):
                results = self._of(read, self._options(drawn))
            least = self._function.least_output * number(drawn, "input_scale")
            drawn |= drawn_output(type_, results, rng, least)
        return drawn

    def build(
        self,
        type_: str,
        configuration: Configuration,
        rng: np.random.Generator,  # noqa: ARG002 - there are no constants
    ) -> OperatorGraph:
        """Return the model of a valid configuration."""
        shape = dimensions(configuration, "shape")
        read = activation(type_, shape, configuration, "input")
        version = self._function.versions[type_]
        written = [self._result(type_, read, configuration)]
        options = self._options(configuration)
        return OperatorGraph.of_operator(self.operator, [read], written, options, version)

    def read(self, graph: OperatorGraph) -> OperatorReading:
        """Return what a model of this one operator is."""
        (node,) = graph.nodes
        (read,), (written,) = graph.operands(node), graph.results(node)
        if read is None or read.values is not None or read.shape != written.shape:
            raise UnknownOperatorForm(f"{self.operator} reads one tensor of the result's shape")
        type_ = type_of(read)
        if type_ not in self.types or type_of(written) != type_:
            raise UnknownOperatorForm(f"{self.operator} of {type_}, writing {written.dtype}")
        settings: dict[str, Setting] = {"shape": read.shape}
        for name, parameter in self._function.options.items():
            settings[parameter.name] = node.options.get(name, parameter.simplest)
        settings |= quantization_settings(read, "input")
        if self._function.result == "free":
            settings |= quantization_settings(written, "output")
        else:
            check_alike(self._result(type_, read, settings), written)
        return OperatorReading(type_, settings)

    def exact(
        self,
        options: Mapping[str, Option],
        operands: Sequence[Operand | None],
        results: Sequence[GraphValue],
    ) -> tuple[ExactAnswer, ...]:
        """Return the function of the operand."""
        present = [one for one in operands if one is not None]
        loss = self._function.loss
        return (answer(lambda x: self._of(x, options), present, results[0], loss=loss),)

    def operands(
        self, graph: OperatorGraph, style: OperandStyle, rng: np.random.Generator
    ) -> tuple[Values, ...]:
        """Return values, none of them negative where the function has no result for these."""
        value = graph.values[graph.inputs[0]]
        raw = operand_values(value, style, rng)
        if self._function.domain == "all":
            return (raw,)
        if value.quantization is None:
            return (np.abs(raw) + np.asarray(2.0**-10, raw.dtype),)
        return (np.maximum(raw, np.asarray(value.quantization.zero_point + 1, raw.dtype)),)

    def with_input(
        self, type_: str, configuration: Configuration, value: GraphValue
    ) -> Configuration | None:
        """Return a configuration of the tensor's shape and quantization."""
        try:
            if type_of(value) != type_:
                return None
        except UnknownOperatorForm:
            return None
        return {**configuration, "shape": value.shape, **quantization_settings(value, "input")}

    def facts(self, type_: str, configuration: Configuration) -> Mapping[str, Setting]:
        """Return the size of the result, and of its last dimension."""
        shape = dimensions(configuration, "shape")
        facts: dict[str, Setting] = {"size": prod(shape), "last_size": (1, *shape)[-1]}
        if type_ in QUANTIZED and "output_scale" in configuration:
            ratio = number(configuration, "input_scale") / number(configuration, "output_scale")
            facts["scale_ratio_log2"] = round(np.log2(ratio))
        return facts

    def _of(self, values: Values, options: Mapping[str, Option]) -> Reals:
        return self._function.of(values, options)

    def _options(self, configuration: Configuration) -> dict[str, Option]:
        known = self._function.options.items()
        return {name: configuration[parameter.name] for name, parameter in known}

    def _result(self, type_: str, read: GraphValue, configuration: Configuration) -> GraphValue:
        how = self._function.result
        if how == "same" or type_ not in QUANTIZED:
            return read
        if how == "free":
            return activation(type_, read.shape, configuration, "output")
        return GraphValue(read.dtype, read.shape, how[type_])


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


def _plain(
    operator: str, of: Callable[[Values], Values], loss: Loss = NO_LOSS, *types: str
) -> _UnaryFunction:
    """Return a function of values that stand for themselves, in version 1."""
    return _UnaryFunction(operator, dict.fromkeys((FLOAT, *types), 1), lambda x, _: of(x), loss)


_HALVES = {
    INT8: Quantization((1 / 256,), -128),
    UINT8: Quantization((1 / 256,), 0),
    INT16: Quantization((1 / 32768,), 0),
}
"""Quantization of results between 0 and 1; int16 has half of its range for them."""

_WHOLES = {
    INT8: Quantization((1 / 128,), 0),
    UINT8: Quantization((1 / 128,), 128),
    INT16: Quantization((1 / 32768,), 0),
}
"""Quantization of results between -1 and 1."""

_ALL_QUANTIZED = {FLOAT: 1, INT8: 2, UINT8: 1, INT16: 3}

_FUNCTIONS = (
    _UnaryFunction("ABS", {FLOAT: 1, INT8: 2, INT16: 3, INT32: 5}, lambda x, _: np.abs(x)),
    _UnaryFunction(
        "NEG",
        dict.fromkeys((FLOAT, INT32, INT64), 1),
        lambda x, _: np.negative(x),
    ),
    _UnaryFunction("SIGN", {FLOAT: 1, INT32: 2}, lambda x, _: np.sign(x)),
    _plain("FLOOR", np.floor),
    _plain("CEIL", np.ceil),
    _plain("ROUND", np.rint),
    _plain("SQUARE", np.square, Loss(1)),
    _plain("SIN", np.sin, Loss(2, 1)),
    _plain("COS", np.cos, Loss(2, 1)),
    _UnaryFunction(
        "SQRT", {FLOAT: 1, INT8: 1, INT16: 1}, lambda x, _: np.sqrt(x), Loss(2), domain="positive"
    ),
    _UnaryFunction(
        "RSQRT",
        {FLOAT: 1, INT8: 2, INT16: 3},
        lambda x, _: 1 / np.sqrt(x),
        Loss(4),
        domain="positive",
    ),
    _UnaryFunction(
        "EXP", {FLOAT: 1, INT8: 2, INT16: 2}, lambda x, _: np.exp(x), Loss(4, 1), reaches=(-2, 2)
    ),
    _UnaryFunction(
        "LOG",
        {FLOAT: 1, INT8: 2, INT16: 2},
        lambda x, _: np.log(x),
        Loss(4, 1),
        domain="positive",
    ),
    _UnaryFunction("RELU", {FLOAT: 1, INT8: 2, UINT8: 2, INT16: 3}, _clamped(0, np.inf)),
    _UnaryFunction("RELU6", {FLOAT: 1, INT8: 2, UINT8: 1, INT16: 3}, _clamped(0, 6)),
    _UnaryFunction("RELU_N1_TO_1", {FLOAT: 1, INT8: 1, UINT8: 1}, _clamped(-1, 1)),
    _UnaryFunction("RELU_0_TO_1", {FLOAT: 1, INT8: 1, UINT8: 1}, _clamped(0, 1)),
    _UnaryFunction(
        "LEAKY_RELU",
        {FLOAT: 1, INT8: 1, UINT8: 1, INT16: 2},
        lambda x, options: np.where(x < 0, number(options, "alpha") * x, x),
        Loss(1),
        options={"alpha": Slope("alpha")},
    ),
    _UnaryFunction(
        "ELU", {FLOAT: 1, INT8: 1}, lambda x, _: np.where(x < 0, np.expm1(x), x), Loss(4)
    ),
    _UnaryFunction(
        "GELU",
        {FLOAT: 1, INT8: 2, UINT8: 2, INT16: 1},
        _gelu,
        Loss(4, 1, cancelled=2),
        options={"approximate": Choice("approximate", (False, True))},
    ),
    _UnaryFunction(
        "HARD_SWISH",
        {FLOAT: 1, INT8: 1, UINT8: 1},
        lambda x, _: x * np.clip(x + 3, 0, 6) / 6,
        Loss(4, 1),
        least_output=1 / 128,
    ),
    _UnaryFunction(
        "LOGISTIC", _ALL_QUANTIZED, lambda x, _: 1 / (1 + np.exp(-x)), Loss(4, 1), result=_HALVES
    ),
    _UnaryFunction("TANH", _ALL_QUANTIZED, lambda x, _: np.tanh(x), Loss(4, 1), result=_WHOLES),
    _UnaryFunction("LOGICAL_NOT", {BOOL: 1}, lambda x, _: np.logical_not(x)),
)

UNARY_OPERATORS = tuple(map(_UnaryOperator, _FUNCTIONS))
"""Unary operators of TFLite."""
