"""The declaration of an operator, from which models are built, checked, listed and judged.

With it go the values that operators are given, and what they should answer to these, and how far
from it an answer may lie.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from edgeflare.conform.operator_graph import GraphValue, OperatorGraph, Option, Values
from edgeflare.conform.specification.parameter import Configuration, OperatorParameter, Setting

FLOAT, INT8, UINT8, INT16, DYNAMIC = "float32", "int8", "uint8", "int16x8", "dynamic"
INT32, INT64, BOOL = "int32", "int64", "bool"
"""The types of operators. "int16x8" has int16 activations and int8 weights, if any; "dynamic" has
float32 activations and int8 weights; of all others the name is that of the activations' dtype."""


class UnknownOperatorForm(ValueError):  # noqa: N818 - a fact about a model, as the message says
    """A model's operator has a form that its specification does not know; the message says why."""


@dataclass(frozen=True, slots=True)
class Operand:
    """A tensor that an operator reads, with its values.

    Attributes:
        value: the tensor.
        raw: (*shape) in its dtype.

    """

    value: GraphValue
    raw: Values

    @property
    def real(self) -> NDArray[np.float64]:
        """The values that the raw ones stand for, as float64."""
        return np.asarray(self.value.real(self.raw), np.float64)


@dataclass(frozen=True, slots=True)
class OperatorReading:
    """What an operator of some model is, in the words of its specification.

    Attributes:
        type: the operator's type; with the operator's name it makes its *cell*.
        configuration: the operator's settings.

    """

    type: str
    configuration: Configuration


class OperatorSpecification(ABC):
    """All that is known of one operator.

    A configuration says everything about a model of the operator but the values of its constants:
    `build` makes the model, `read` gives the configuration of a model, and for every
    configuration without a fault `read(build(c))` is `c`. So what is drawn, mutated, shrunk, and
    grouped is configurations. Models are what a converter could have written.

    Attributes:
        operator: name in the schema, such as "CONV_2D".
        types: the types that it has; with one of them it is a *cell*.

    """

    operator: str
    types: tuple[str, ...]

    @abstractmethod
    def parameters(self, type_: str) -> tuple[OperatorParameter, ...]:
        """Return the parameters of a type, in the order in which they are shown.

        Those of one name agree over all types that have them.
        """

    @abstractmethod
    def fault(self, type_: str, configuration: Configuration) -> str | None:
        """Return why a configuration is no valid model, or None.

        Settings out of range need no mention: `invalid` looks at them first.
        """

    @abstractmethod
    def build(
        self, type_: str, configuration: Configuration, rng: np.random.Generator
    ) -> OperatorGraph:
        """Return the model of a valid configuration, in the lowest version that does.

        Args:
            type_: one of `types`.
            configuration: a setting for each of `parameters(type_)`.
            rng: draws the values of constants.

        """

    @abstractmethod
    def read(self, graph: OperatorGraph) -> OperatorReading:
        """Return what a model of this one operator is.

        Raises:
            UnknownOperatorForm: it has a type, an option or a shape that is not known.

        """

    @abstractmethod
    def exact(self, options: Options, operands: Operands, results: Results) -> ExactAnswers:
        """Return the exact answers, computed in float64 or int64 from the dequantized operands.

        Args:
            options: options of the operator.
            operands: the operator's operands in its order, constants included; None where one is
                left out.
            results: the tensors that it writes.

        """

    @abstractmethod
    def with_input(
        self, type_: str, configuration: Configuration, value: GraphValue
    ) -> Configuration | None:
        """Return a configuration near another, whose first operand is a tensor of another model.

        Its shape and quantization are the tensor's, and what depends on them follows. None where
        it cannot be, because of the dtype or the rank. The answer may still have a fault.
        """

    def adapted(
        self,
        type_: str,  # noqa: ARG002 - of those whose settings depend on each other
        configuration: Configuration,
        changed: str,  # noqa: ARG002
    ) -> Configuration:
        """Return a configuration after one setting was changed, with others that follow it.

        Such as a permutation of as many dimensions as the shape now has. The answer may still have
        a fault.
        """
        return configuration

    def draw(self, type_: str, rng: np.random.Generator) -> Configuration:
        """Return settings at random, with a fault or without."""
        return {one.name: one.draw(rng) for one in self.parameters(type_)}

    def operands(
        self, graph: OperatorGraph, style: OperandStyle, rng: np.random.Generator
    ) -> tuple[Values, ...]:
        """Return values for the tensors that a model of this one operator is given.

        Returns:
            One array for each of `graph.inputs`, (*shape) in its dtype.

        """
        return tuple(operand_values(graph.values[at], style, rng) for at in graph.inputs)

    def facts(
        self,
        type_: str,  # noqa: ARG002 - of those that have facts
        configuration: Configuration,  # noqa: ARG002
    ) -> Mapping[str, Setting]:
        """Return what a condition may speak of besides parameters, such as the size of the result.

        Whole numbers, booleans or words, by names that no parameter has.
        """
        return {}

    def invalid(self, type_: str, configuration: Configuration) -> str | None:
        """Return why a configuration is no valid model, or None."""
        if type_ not in self.types:
            return f"{self.operator} has no type {type_}, only {', '.join(self.types)}"
        known = self.parameters(type_)
        if {one.name for one in known} != set(configuration):
            return f"{self.operator} has the parameters {', '.join(one.name for one in known)}"
        faults = (one.fault(configuration[one.name]) for one in known)
        return next(filter(None, faults), None) or self.fault(type_, configuration)


Options = Mapping[str, Option]
Operands = Sequence[Operand | None]
"""The operands of an operator in its order, None where one is left out."""
Results = Sequence[GraphValue]

AnswerKind = Literal["bits", "steps", "reals"]
"""How an answer is held to the exact one: "bits", equal as it stands; "steps", a quantized answer,
by the step that the exact real value lies in; "reals", a float, by its distance."""

EPSILON = float(np.finfo(np.float32).eps)
"""The rounding of one float32 operation, relative."""


@dataclass(frozen=True, slots=True)
class ExactAnswer:
    """The right answer of an operator, for one of its results.

    Attributes:
        kind: how an answer is held to it.
        values: (*shape of the result); of "bits" the raw values in the result's dtype, otherwise
            real values as float64, before rounding and saturation to the result's type.
        slack: real units that are allowed besides the rounding of the result, broadcastable with
            the values; such as what float32 sums may lose, or the rounding of a dynamic-range
            input. 0 for "bits".

    """

    kind: AnswerKind
    values: NDArray[Any]
    slack: NDArray[np.float64] = field(default_factory=lambda: np.zeros(()))


ExactAnswers = tuple[ExactAnswer, ...]
"""One for each result."""


def bits(values: NDArray[Any]) -> ExactAnswer:
    """Return an answer that has to be met to the bit."""
    return ExactAnswer("bits", values)


def reals(values: NDArray[Any], slack: NDArray[np.float64] | float = 0.0) -> ExactAnswer:
    """Return an answer that a float has to be near."""
    return ExactAnswer("reals", np.asarray(values, np.float64), np.asarray(slack, np.float64))


def steps(values: NDArray[Any], slack: NDArray[np.float64] | float = 0.0) -> ExactAnswer:
    """Return an answer that a quantized value has to be the nearest step of."""
    return ExactAnswer("steps", np.asarray(values, np.float64), np.asarray(slack, np.float64))


def sum_slack(terms: int, magnitude: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return what a float32 sum of products may lose.

    Args:
        terms: how many products are added.
        magnitude: the sum of their absolute values.

    """
    return (terms + 2) * EPSILON * magnitude


OperandStyle = Literal["uniform", "extreme", "narrow", "special"]
"""How values are drawn: over the whole range; at its ends; from a few neighbouring values; and for
floats also denormals, NaN and infinities."""

OPERAND_STYLES: tuple[OperandStyle, ...] = get_args(OperandStyle)

_LARGEST_REAL = 8.0
"""Largest float that is drawn uniformly: beyond the ranges of all bounded activations."""

_LARGEST_WHOLE = 1000
"""Largest of 32-bit and 64-bit integers that are drawn uniformly."""

_SPECIAL = (0.0, -0.0, 1e-40, -1e-40, 1e38, -1e38, np.inf, -np.inf, np.nan)


def operand_values(value: GraphValue, style: OperandStyle, rng: np.random.Generator) -> Values:
    """Return values for a tensor: (*shape) in its dtype."""
    if value.dtype == "bool":
        return rng.random(value.shape) < (0.5 if style != "narrow" else 0.95)
    if value.dtype.startswith("float"):
        return _floats(value.shape, style, rng).astype(value.dtype)
    known = np.iinfo(value.dtype)
    low, high = int(known.min), int(known.max)
    if high > _LARGEST_WHOLE * 100 and style != "extreme":
        low, high = -_LARGEST_WHOLE, _LARGEST_WHOLE
    if style == "extreme":
        ends = np.array([low, low + 1, 0, high - 1, high], known.dtype)
        return ends[rng.integers(len(ends), size=value.shape)]
    if style == "narrow":
        begin = int(rng.integers(low, high - 3))
        low, high = begin, begin + 3
    return rng.integers(low, high, value.shape, known.dtype, endpoint=True)


def _floats(shape: tuple[int, ...], style: OperandStyle, rng: np.random.Generator) -> Values:
    if style == "extreme":
        return rng.choice([-_LARGEST_REAL, -1.0, 0.0, 1.0, _LARGEST_REAL], shape)
    if style == "narrow":
        return rng.uniform(-_LARGEST_REAL, _LARGEST_REAL) + rng.uniform(0, 0.01, shape)
    values = rng.uniform(-_LARGEST_REAL, _LARGEST_REAL, shape)
    if style == "special":
        # Mostly ordinary values: sums in which everything is NaN show little.
        special = rng.choice(_SPECIAL, shape)
        values = np.where(rng.random(shape) < 1 / 8, special, values)
    return values
