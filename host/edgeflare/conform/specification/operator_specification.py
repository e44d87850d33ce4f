"""The declaration of an operator, from which models are built, checked, listed and judged."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from edgeflare.conform.operator_graph import GraphValue, OperatorGraph, Option, Values
from edgeflare.conform.specification.exact_answer import ExactAnswer
from edgeflare.conform.specification.operand_values import OperandStyle, operand_values
from edgeflare.conform.specification.parameter import OperatorParameter
from edgeflare.conform.specification.settings import Configuration, Setting

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
        type: of the operator; with the operator's name it makes its *cell*.
        configuration: its settings.

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
        operator: its name in the schema, such as "CONV_2D".
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
    def exact(
        self,
        options: Mapping[str, Option],
        operands: Sequence[Operand | None],
        results: Sequence[GraphValue],
    ) -> tuple[ExactAnswer, ...]:
        """Return the exact answers, computed in float64 or int64 from the dequantized operands.

        Args:
            options: of the operator.
            operands: in its order, constants included; None where one is left out.
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
