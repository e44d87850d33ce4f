"""The declaration of an operator, from which models are built, read, checked, listed and judged."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import KW_ONLY, dataclass, field

import numpy as np

from edgeflare.conform.operator_graph import GraphValue, OperatorGraph, Option, Values
from edgeflare.conform.specification.activation_tensors import (
    DTYPES,
    TYPES,
    Operands,
    OperandStyle,
    Options,
    Results,
    UnknownOperatorForm,
    activation,
    operand_values,
    quantization_settings,
    type_of,
)
from edgeflare.conform.specification.exact_answer import ExactAnswers
from edgeflare.conform.specification.model_parts import (
    ModelParts,
    Place,
    ShapeOf,
    SizeOf,
    quantization_places,
)
from edgeflare.conform.specification.parameter import (
    Configuration,
    OperatorParameter,
    Setting,
    Settings,
)


@dataclass(frozen=True, slots=True)
class OperatorReading:
    """What an operator of some model is, in the words of its specification.

    Attributes:
        type: the operator's type; with the operator's name it makes its *cell*.
        configuration: the operator's settings.

    """

    type: str
    configuration: Configuration


@dataclass(frozen=True, eq=False)
class OperatorSpecification(ABC):
    """All that is known of one operator.

    A configuration says everything about a model of the operator but the values of its constants:
    `build` makes the model, `read` gives the configuration of a model, and for every
    configuration without a fault `read(build(c))` is `c`. So what is drawn, mutated, shrunk, and
    grouped is configurations. Models are what a converter could have written.

    Each parameter has a place in a model, from which parameters, `build` and `read` follow.

    Attributes:
        operator: name in the schema, such as "CONV_2D".
        types: the types that it has; with one of them it is a *cell*.
        places: where each parameter that all types have stands, in their order; those of
            quantization follow.
        versions: the lowest version by type, where it is not 1.
        least_version: returns the lowest version for settings, whatever the type.
        fixed: options that no parameter stands in.
        data: the place of the operand that says the type.
        complete: adds operands and options that follow from the settings or are drawn.
        fit: returns settings that fit each other, given the one that may not be changed, "" for
            none; they are unchanged where they did.
        varied: changes settings that are drawn, where they would not fit or be too much alike.
        refused: why settings are none that kernels take, None if they do.
        known: returns what conditions may speak of besides parameters.

    """

    operator: str
    types: tuple[str, ...]
    places: tuple[Place, ...]
    _: KW_ONLY
    versions: Mapping[str, int] = field(default_factory=dict)
    least_version: Callable[[Configuration], int] = lambda _: 1
    fixed: Mapping[str, Option] = field(default_factory=dict)
    data: int = 0
    complete: Callable[[Configuration, ModelParts, np.random.Generator], None] = lambda *_: None
    fit: Callable[[Settings, str], Settings] = lambda settings, _: settings
    varied: Callable[[Settings, np.random.Generator], Settings] = lambda settings, _: settings
    refused: Callable[[str, Configuration], str | None] = lambda *_: None
    known: Callable[[Configuration], Mapping[str, Setting]] = lambda _: {}

    @abstractmethod
    def results(self, type_: str, configuration: Configuration, parts: ModelParts) -> Results:
        """Return the tensors that a valid configuration writes, given the operands."""

    @abstractmethod
    def exact(self, options: Options, operands: Operands, results: Results) -> ExactAnswers:
        """Return the exact answers, computed in float64 or int64 from the dequantized operands.

        Args:
            options: options of the operator.
            operands: the operator's operands in its order, constants included; None where one is
                left out.
            results: the tensors that it writes.

        """

    def parameters(self, type_: str) -> tuple[OperatorParameter, ...]:
        """Return the parameters of a type, in the order in which they are shown.

        Those of one name agree over all types that have them.
        """
        return tuple(place.parameter for place in self.places_of(type_))

    def places_of(self, type_: str) -> tuple[Place, ...]:
        """Return the places of all parameters of a type."""
        return (*self.places, *quantization_places(type_, input=self.data))

    def invalid(self, type_: str, configuration: Configuration) -> str | None:
        """Return why a configuration is no valid model, or None."""
        if type_ not in self.types:
            return f"{self.operator} has no type {type_}, only {', '.join(self.types)}"
        known = self.parameters(type_)
        names = [parameter.name for parameter in known]
        if set(names) != set(configuration):
            return f"{self.operator} has the parameters {', '.join(names)}"
        faults = (parameter.fault(configuration[parameter.name]) for parameter in known)
        return next(filter(None, faults), None) or self.fault(type_, configuration)

    def fault(self, type_: str, configuration: Configuration) -> str | None:
        """Return why a configuration is no valid model, or None.

        Settings out of range need no mention: `invalid` looks at them first.
        """
        return self.refused(type_, configuration)

    def draw(self, type_: str, rng: np.random.Generator) -> Configuration:
        """Return settings at random, with a fault or without."""
        drawn = {parameter.name: parameter.draw(rng) for parameter in self.parameters(type_)}
        return self.varied(drawn, rng)

    def adapted(self, type_: str, configuration: Configuration, changed: str) -> Configuration:
        """Return a configuration after one setting was changed, with others that follow it.

        Such as a permutation of as many dimensions as the shape now has. The answer may still have
        a fault.
        """
        known = {parameter.name: parameter for parameter in self.parameters(type_)}
        if known[changed].fault(configuration[changed]):
            return configuration
        return self.fit(dict(configuration), changed)

    def facts(self, type_: str, configuration: Configuration) -> Mapping[str, Setting]:  # noqa: ARG002
        """Return what a condition may speak of besides parameters, such as the size of the result.

        Whole numbers, booleans or words, by names that no parameter has.
        """
        return self.known(configuration)

    def with_input(
        self, type_: str, configuration: Configuration, value: GraphValue
    ) -> Configuration | None:
        """Return a configuration near another, whose first operand is a tensor of another model.

        Its shape and quantization are the tensor's, and what depends on them follows. None where
        it cannot be, because of the dtype or the rank. The answer may still have a fault.
        """
        parts, settings = ModelParts(value, {}, {self.data: value}), dict(configuration)
        try:
            if self.type_of(value) != TYPES[DTYPES[type_]]:
                return None
            for place in self.places_of(type_):
                if isinstance(place, ShapeOf | SizeOf) and place.operand == self.data:
                    settings[place.parameter.name] = found = place.read(parts)
                    if place.parameter.fault(found) is not None:
                        return None
            scales = quantization_settings(value, "input") if "input_scale" in settings else {}
            return self.fit(settings | scales, "")
        except UnknownOperatorForm:
            return None

    def operands(
        self, graph: OperatorGraph, style: OperandStyle, rng: np.random.Generator
    ) -> tuple[Values, ...]:
        """Return values for the tensors that a model of this one operator is given.

        Returns:
            One array for each of `graph.inputs`, (*shape) in its dtype.

        """
        return tuple(operand_values(graph.values[at], style, rng) for at in graph.inputs)

    def build(
        self, type_: str, configuration: Configuration, rng: np.random.Generator
    ) -> OperatorGraph:
        """Return the model of a valid configuration, in the lowest version that does.

        Args:
            type_: one of `types`.
            configuration: a setting for each of `parameters(type_)`.
            rng: draws the values of constants.

        """
        parts = self.parts(type_, configuration)
        self.fill(type_, configuration, parts, rng)
        operands = [parts.tensors.get(at) for at in range(max(parts.tensors, default=-1) + 1)]
        return OperatorGraph.of_operator(
            self.operator,
            [*operands, *[None] * parts.left_out],
            self.results(type_, configuration, parts),
            parts.options,
            self.version(type_, configuration),
        )

    def parts(self, type_: str, configuration: Configuration) -> ModelParts:
        """Return what the settings alone say of a model."""
        parts = ModelParts(
            self.form(type_, configuration, "input"), dict(self.fixed_options(type_))
        )
        for place in self.places_of(type_):
            place.write(configuration[place.parameter.name], parts)
        return parts

    def fill(
        self,
        type_: str,  # noqa: ARG002 - of those whose constants depend on it
        configuration: Configuration,
        parts: ModelParts,
        rng: np.random.Generator,
    ) -> None:
        """Add what the settings do not say of a model, such as the values of constants."""
        self.complete(configuration, parts, rng)

    def version(self, type_: str, configuration: Configuration) -> int:
        """Return the lowest version that has a configuration."""
        return max(self.versions.get(type_, 1), self.least_version(configuration))

    def fixed_options(self, type_: str) -> Mapping[str, Option]:  # noqa: ARG002 - mostly one for all
        """Return the options of a type that no parameter stands in."""
        return self.fixed

    def form(self, type_: str, configuration: Configuration, role: str) -> GraphValue:
        """Return a tensor with the dtype and the quantization of those of a role."""
        return activation(type_, (), configuration, role)

    def read(self, graph: OperatorGraph) -> OperatorReading:
        """Return what a model of this one operator is.

        Raises:
            UnknownOperatorForm: it has a type, an option or a shape that is not known.

        """
        (node,) = graph.nodes
        parts = ModelParts.of(node.options, graph.operands(node), graph.results(node))
        reading = self.reading(parts)
        self.check(reading, parts)
        return reading

    def reading(self, parts: ModelParts) -> OperatorReading:
        """Return what an operator is by the places of its parameters; see `read`."""
        if (type_ := self.read_type(parts)) not in self.types:
            raise UnknownOperatorForm(
                f"{self.operator} has no type {type_}, only {', '.join(self.types)}"
            )
        for name, setting in self.fixed_options(type_).items():
            if parts.options.get(name) != setting:
                raise UnknownOperatorForm(f"its option {name} is {parts.options.get(name)}")
        settings = {place.parameter.name: place.read(parts) for place in self.places_of(type_)}
        return OperatorReading(type_, settings)

    def known_settings(self, options: Options, operands: Operands, results: Results) -> Settings:
        """Return the settings that have places in all types, whatever dtype operands have here.

        See `exact`, which may be given real values in the place of quantized ones.
        """
        parts = ModelParts.known(options, operands, results)
        return {place.parameter.name: place.read(parts) for place in self.places}

    def type_of(self, data: GraphValue) -> str:
        """Return the type by the tensor that says it; UnknownOperatorForm if there is none."""
        return type_of(data)

    def read_type(self, parts: ModelParts) -> str:
        """Return the type; UnknownOperatorForm if there is none."""
        return self.type_of(parts.tensor(self.data))

    def check(self, reading: OperatorReading, parts: ModelParts) -> None:
        """Raise UnknownOperatorForm unless a reading says all of a model."""
        expected = self.results(reading.type, reading.configuration, parts)
        if len(parts.results) != len(expected):
            raise UnknownOperatorForm(f"{self.operator} writes {len(parts.results)} tensors")
        for result, other in zip(parts.results, expected, strict=True):
            self.check_alike("writes", result, other)

    def check_alike(self, verb: str, found: GraphValue, expected: GraphValue) -> None:
        """Raise UnknownOperatorForm unless a tensor is as another one, but for its values."""
        if (found.dtype, found.shape) != (expected.dtype, expected.shape):
            raise UnknownOperatorForm(
                f"{self.operator} {verb} {found.dtype} {found.shape}, "
                f"where {expected.dtype} {expected.shape} would be right"
            )
        if found.quantization != expected.quantization:
            raise UnknownOperatorForm(
                f"{self.operator} {verb} a tensor quantized as {found.quantization}, "
                f"where {expected.quantization} would be right"
            )
