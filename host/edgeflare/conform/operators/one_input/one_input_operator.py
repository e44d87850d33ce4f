"""What operators have in common that are given one tensor, all else being constants and options."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from math import prod
from typing import Literal

import numpy as np

from edgeflare.conform.operator_graph import (
    GraphNode,
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
    quantization_parameters,
    quantization_settings,
    type_of,
)
from edgeflare.conform.specification.operator_specification import (
    ExactAnswer,
    Operand,
    OperatorReading,
    OperatorSpecification,
    UnknownOperatorForm,
)
from edgeflare.conform.specification.parameter import (
    Configuration,
    Dimensions,
    OperatorParameter,
    Setting,
    dimensions,
    number,
)

ResultQuantization = Literal["free", "equal", "fixed", "none"]
"""The quantization of a result: any, the operand's, one that the operator demands, or none."""

_LEAST_SCALE, _GREATEST_SCALE = 2.0**-120, 2.0**120


class OneInputOperator(OperatorSpecification):
    """An operator of one tensor, with what follows from its type, shape and quantization.

    Attributes:
        quantized_result: how its first result is quantized.
        ranks: the least and the greatest number of dimensions of its operand.
        constant_operands: how many operands follow it.
        own: parameters besides shape and quantization.
        versions: the version by type, 1 for types that are not in it.
        fixed: the quantization that it demands of its result, by type.

    """

    quantized_result: ResultQuantization = "free"
    ranks: tuple[int, int] = (1, 5)
    constant_operands: int = 0
    own: tuple[OperatorParameter, ...] = ()
    fixed: Mapping[str, Quantization] = {}

    def __init__(
        self, operator: str, types: Sequence[str], versions: Mapping[str, int] | None = None
    ) -> None:
        self.operator, self.types, self.versions = operator, tuple(types), dict(versions or {})
        self._parameters = {type_: self._declared(type_) for type_ in self.types}

    @abstractmethod
    def results(self, type_: str, configuration: Configuration) -> tuple[GraphValue, ...]:
        """Return the tensors that a valid configuration writes."""

    @abstractmethod
    def answers(
        self,
        options: Mapping[str, Option],
        operand: Operand,
        constants: Sequence[Values],
        results: Sequence[GraphValue],
    ) -> tuple[ExactAnswer, ...]:
        """Return the exact answers, see `exact`; NumPy is silent about NaN and infinities."""

    def options(self, configuration: Configuration) -> Mapping[str, Option]:  # noqa: ARG002
        """Return the options of a configuration."""
        return {}

    def constants(self, configuration: Configuration) -> tuple[GraphValue, ...]:  # noqa: ARG002
        """Return the operands after the first."""
        return ()

    def settings(
        self,
        options: Mapping[str, Option],  # noqa: ARG002 - of those that have any
        constants: Sequence[Values],  # noqa: ARG002
    ) -> Mapping[str, Setting]:
        """Return what `options` and `constants` were made from."""
        return {}

    def fitting(
        self,
        configuration: Configuration,  # noqa: ARG002 - of those that fit anything
        rng: np.random.Generator,  # noqa: ARG002
    ) -> Mapping[str, Setting]:
        """Return drawn settings that have to fit others, such as axes that the shape has."""
        return {}

    def fitted(self, configuration: Configuration) -> Mapping[str, Setting]:  # noqa: ARG002
        """Return settings that fit another shape, and are near those of a configuration."""
        return {}

    def gain(
        self,
        configuration: Configuration,  # noqa: ARG002 - of those whose results have other ranges
        rng: np.random.Generator,  # noqa: ARG002
    ) -> float:
        """Return how far results spread, as a multiple of how far the operand does."""
        return 1.0

    def shapes(self) -> tuple[OperatorParameter, ...]:
        """Return the parameters that make the operand's shape."""
        return (Dimensions("shape", self.ranks, most_values=1000),)

    def input_shape(self, configuration: Configuration) -> tuple[int, ...]:
        """Return the shape of the operand."""
        return dimensions(configuration, "shape")

    def input_sizes(self, shape: tuple[int, ...]) -> Mapping[str, Setting]:
        """Return the settings that an operand's shape makes."""
        return {"shape": shape}

    def version(self, type_: str, configuration: Configuration) -> int:  # noqa: ARG002
        """Return the lowest version that has a configuration."""
        return self.versions.get(type_, 1)

    def parameters(self, type_: str) -> tuple[OperatorParameter, ...]:
        """Return the parameters of a type."""
        return self._parameters[type_]

    def _declared(self, type_: str) -> tuple[OperatorParameter, ...]:
        parameters = (*self.shapes(), *self.own, *quantization_parameters(type_, "input"))
        if self.quantized_result != "free":
            return parameters
        return (*parameters, *quantization_parameters(type_, "output"))

    def fault(self, type_: str, configuration: Configuration) -> str | None:  # noqa: ARG002
        """Return why a configuration is no valid model, or None."""
        return None

    def draw(self, type_: str, rng: np.random.Generator) -> Configuration:
        """Return settings at random that fit each other."""
        drawn = dict(super().draw(type_, rng))
        drawn.update(self.fitting(drawn, rng))
        if "output_scale" in drawn:
            wanted = number(drawn, "input_scale") * self.gain(drawn, rng)
            # Mostly over the whole range, at times saturated or far too coarse.
            octaves = (rng.uniform(-1, 1), rng.uniform(-5, 0), rng.uniform(0, 5))
            exponent = octaves[int(rng.choice(3, p=(0.7, 0.2, 0.1)))]
            drawn["output_scale"] = as_scale(wanted * 2.0**exponent)
        return drawn

    def build(
        self,
        type_: str,
        configuration: Configuration,
        rng: np.random.Generator,  # noqa: ARG002 - its constants are settings
    ) -> OperatorGraph:
        """Return the model of a valid configuration."""
        given = activation(type_, self.input_shape(configuration), configuration, "input")
        return OperatorGraph.of_operator(
            self.operator,
            [given, *self.constants(configuration)],
            self.results(type_, configuration),
            self.options(configuration),
            self.version(type_, configuration),
        )

    def result(
        self, type_: str, configuration: Configuration, shape: tuple[int, ...]
    ) -> GraphValue:
        """Return a result of the operator's type."""
        if type_ in self.fixed:
            return GraphValue(DTYPES[type_], shape, self.fixed[type_])
        role = "output" if self.quantized_result == "free" else "input"
        return activation(type_, shape, configuration, role)

    def read(self, graph: OperatorGraph) -> OperatorReading:
        """Return what a model of this one operator is."""
        node = graph.nodes[0]
        given, constants = self._operands(graph, node)
        type_ = type_of(given)
        configuration: dict[str, Setting] = {
            **self.input_sizes(given.shape),
            **self.settings(node.options, constants),
            **quantization_settings(given, "input"),
        }
        if type_ in QUANTIZED and self.quantized_result == "free":
            configuration.update(quantization_settings(graph.results(node)[0], "output"))
        if (why := self.invalid(type_, configuration)) is not None:
            raise UnknownOperatorForm(why)
        self._check_results(graph.results(node), self.results(type_, configuration))
        return OperatorReading(type_, configuration)

    def _operands(
        self, graph: OperatorGraph, node: GraphNode
    ) -> tuple[GraphValue, tuple[Values, ...]]:
        first, *others = graph.operands(node)
        if first is None or first.values is not None:
            raise UnknownOperatorForm(f"the operand of {self.operator} is constant")
        constants = [one.values for one in others if one is not None and one.values is not None]
        if len(constants) < len(others):
            raise UnknownOperatorForm(f"{self.operator} is given more than one tensor")
        if len(constants) != self.constant_operands:
            raise UnknownOperatorForm(f"{self.operator} of {1 + len(constants)} operands")
        if not self.ranks[0] <= len(first.shape) <= self.ranks[1]:
            raise UnknownOperatorForm(f"{self.operator} of {len(first.shape)} dimensions")
        return first, tuple(constants)

    def _check_results(self, found: Sequence[GraphValue], expected: Sequence[GraphValue]) -> None:
        if len(found) != len(expected):
            raise UnknownOperatorForm(f"{self.operator} writes {len(found)} tensors")
        for one, other in zip(found, expected, strict=True):
            if (one.dtype, one.shape) != (other.dtype, other.shape):
                raise UnknownOperatorForm(
                    f"{self.operator} writes {one.dtype} {one.shape}, "
                    f"where {other.dtype} {other.shape} would be right"
                )
            if other.quantization is not None and one.quantization != other.quantization:
                raise UnknownOperatorForm(
                    f"{self.operator} writes a tensor quantized as {one.quantization}, "
                    f"where {other.quantization} would be right"
                )

    def exact(
        self,
        options: Mapping[str, Option],
        operands: Sequence[Operand | None],
        results: Sequence[GraphValue],
    ) -> tuple[ExactAnswer, ...]:
        """Return the exact answers; NaN and infinities are carried through."""
        given, *constants = (one for one in operands if one is not None)
        with np.errstate(all="ignore"):
            return self.answers(options, given, [one.raw for one in constants], results)

    def with_input(
        self, type_: str, configuration: Configuration, value: GraphValue
    ) -> Configuration | None:
        """Return the configuration near another that reads a tensor."""
        if not self.ranks[0] <= len(value.shape) <= self.ranks[1]:
            return None
        try:
            if type_of(value) != type_:
                return None
        except UnknownOperatorForm:
            return None
        changed = {**configuration, **self.input_sizes(value.shape)}
        changed.update(self.fitted(changed))
        changed.update(quantization_settings(value, "input"))
        if "output_scale" in changed:
            # Results grow as operands do.
            ratio = number(changed, "input_scale") / number(configuration, "input_scale")
            changed["output_scale"] = as_scale(number(changed, "output_scale") * ratio)
        return changed

    def adapted(
        self,
        type_: str,  # noqa: ARG002 - what follows does so in all types
        configuration: Configuration,
        changed: str,  # noqa: ARG002 - what follows does so whatever was changed
    ) -> Configuration:
        """Return a configuration after one setting was changed, with others that follow it."""
        return {**configuration, **self.fitted(configuration)}

    def facts(self, type_: str, configuration: Configuration) -> Mapping[str, Setting]:
        """Return the number of dimensions and values, and the size of the last dimension."""
        shape = self.input_shape(configuration)
        result = self.results(type_, configuration)[0]
        return {
            "rank": len(shape),
            "last_dimension": shape[-1] if shape else 1,
            "input_size": prod(shape),
            "output_size": result.size,
        }


def as_scale(wanted: float) -> float:
    """Return the scale nearest to a number that float32 has."""
    return float(np.float32(np.clip(wanted, _LEAST_SCALE, _GREATEST_SCALE)))


def constant(values: Values | Sequence[int] | int) -> GraphValue:
    """Return an int32 constant, such as an axis."""
    array = np.asarray(values, np.int32)
    return GraphValue("int32", array.shape).constant(array)


def switched(options: Mapping[str, Option], name: str) -> bool:
    """Return an option that is on or off; off where a model leaves it out."""
    return bool(options.get(name, False))


def only_value(constants: Sequence[Values]) -> int:
    """Return the value of the only constant operand, such as an axis."""
    if constants[0].size != 1:
        raise UnknownOperatorForm(f"an operand has {constants[0].size} values where 1 is known")
    return int(constants[0].ravel()[0])


def real_option(options: Mapping[str, Option], name: str) -> float:
    """Return an option that is a number, as float32 has it; 0 where a model leaves it out."""
    option = options.get(name, 0.0)
    if not isinstance(option, int | float):
        raise UnknownOperatorForm(f"{name} is {option!r}, no number")
    return float(np.float32(option))
