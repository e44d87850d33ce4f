"""Operators with several operands, whose shapes are broadcast with each other."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import prod

import numpy as np

from edgeflare.conform.operator_graph import GraphValue, OperatorGraph, Option, Values
from edgeflare.conform.operators.elementwise.broadcast import (
    NOT_BROADCAST,
    Broadcast,
    BroadcastingFunction,
    broadcast_fault,
    broadcast_setting,
    drawn_broadcasts,
    operand_shape,
)
from edgeflare.conform.operators.elementwise.real_answers import answer
from edgeflare.conform.operators.elementwise.result_scales import (
    drawn_output,
    levels,
    reaching_scale,
)
from edgeflare.conform.specification.activation_tensors import (
    BOOL,
    QUANTIZED,
    Operand,
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
from edgeflare.conform.specification.exact_answer import ACTIVATION_LIMITS, ExactAnswers, bits
from edgeflare.conform.specification.model_parts import (
    RESULT,
    ModelParts,
    OptionOf,
    Place,
    ReadFrom,
    quantization_places,
)
from edgeflare.conform.specification.operator_specification import (
    OperatorReading,
    OperatorSpecification,
)
from edgeflare.conform.specification.parameter import (
    Choice,
    Configuration,
    Dimensions,
    OperatorParameter,
    Setting,
    dimensions,
    number,
    word,
)
from edgeflare.conform.specification.whole_numbers import whole_numbers

_TENSORS_ALONE = "none"
_REACHING, _NEAR = 3 / 4, 2 / 3
"""Shares of draws with a first scale at which functions bend, and with a second one near it."""

_COMPARABLE, _EQUAL = (-7.0, 0.0), 3 / 4
"""Range of the scales of compared values in powers of 2, and share of draws in which both are
quantized alike: kernels take no scales of 1 or more, and values of unlike scales are hardly ever
equal."""

_SOME_LEVELS = 17
"""Levels of each operand whose combinations give an estimate of a result's range."""


class _ResultShape(Place):
    """The shape of the result, to which operands are broadcast."""

    def write(self, setting: Setting, parts: ModelParts) -> None:
        """Write a setting into a model."""
        parts.results = [replace(parts.data, shape=whole_numbers(setting))]

    def read(self, parts: ModelParts) -> Setting:
        """Return the setting of a model."""
        (result,) = parts.results
        return result.shape


class _BroadcastOf(Place):
    """How an operand is broadcast to the result's shape, which is declared before."""

    def __init__(self, parameter: OperatorParameter, operand: int) -> None:
        """Declare the place of an operand."""
        super().__init__(parameter)
        self.operand = operand

    def write(self, setting: Setting, parts: ModelParts) -> None:
        """Write a setting into a model."""
        result = parts.results[0].shape
        if (shape := operand_shape(str(setting), result)) is None:
            raise ValueError(f"an operand has more dimensions than {result}")
        parts.tensors[self.operand] = replace(parts.data, shape=shape)

    def read(self, parts: ModelParts) -> Setting:
        """Return the setting of a model."""
        return broadcast_setting(parts.tensor(self.operand).shape, parts.results[0].shape)


def _constant_among(function: BroadcastingFunction) -> Place:
    """Return the place of which operand is a constant."""

    def reading(parts: ModelParts) -> Setting:
        known = {role: parts.tensor(at).values for at, role in enumerate(function.roles)}
        constants = [role for role, values in known.items() if values is not None]
        if len(constants) > 1 or set(constants) - set(function.constants):
            raise UnknownOperatorForm(f"{function.operator} with the constants {constants}")
        return constants[0] if constants else _TENSORS_ALONE

    return ReadFrom(Choice("constant", (_TENSORS_ALONE, *function.constants)), reading)


@dataclass(frozen=True, eq=False)
class BroadcastingOperator(OperatorSpecification):
    """An operator with several operands, either given or constants.

    Attributes:
        function: what it computes, and in which models.

    """

    function: BroadcastingFunction

    @classmethod
    def of(cls, function: BroadcastingFunction) -> BroadcastingOperator:
        """Return the operator that computes a function."""
        broadcasts = [
            _BroadcastOf(Broadcast(role), at)
            for at, role in enumerate(function.roles)
            if role in function.stretched
        ]
        shapes = (_ResultShape(Dimensions("shape")), *broadcasts)
        fused = [Choice("activation", function.activations)] if function.activations else []
        return cls(
            function.operator,
            tuple(function.versions),
            (
                *shapes,
                _constant_among(function),
                *(OptionOf(choice, "fusedActivationFunction", "NONE") for choice in fused),
            ),
            function,
            versions=function.versions,
            least_version=function.raised_version,
            data=len(function.roles) - 1,
        )

    def fixed_options(self, type_: str) -> Mapping[str, Option]:
        """Return the options of a type that no parameter stands in."""
        return self.function.fixed_options.get(type_, {})

    def places_of(self, type_: str) -> tuple[Place, ...]:
        """Return the places of all parameters of a type."""
        if self.function.scales == "one":
            return super().places_of(type_)
        scaled = {role: at for at, role in enumerate(self.function.roles)}
        if self.function.scales == "each":
            scaled["output"] = RESULT
        return (*self.places, *quantization_places(type_, **scaled))

    def form(self, type_: str, configuration: Configuration, role: str) -> GraphValue:
        """Return a tensor with the dtype and the quantization of those of a role."""
        if role == "condition":
            return GraphValue(BOOL, ())
        if role == "output" and self.function.result:
            type_ = self.function.result
        return activation(type_, (), configuration, self._scale_role(role))

    def parts(self, type_: str, configuration: Configuration) -> ModelParts:
        """Return what the settings alone say of a model."""
        parts = super().parts(type_, configuration)
        for at, role in enumerate(self.function.roles):
            shape = parts.tensors.get(at, parts.results[0]).shape
            parts.tensors[at] = replace(self.form(type_, configuration, role), shape=shape)
        return parts

    def fill(
        self, type_: str, configuration: Configuration, parts: ModelParts, rng: np.random.Generator
    ) -> None:
        """Add the values of a constant, which may depend on what the others are given."""
        del type_
        read = [parts.tensors[at] for at in range(len(parts.tensors))]
        operands = [
            Operand(value, np.asarray(operand_values(value, "uniform", rng))) for value in read
        ]
        self.function.adjust(operands)
        if (constant := configuration["constant"]) != _TENSORS_ALONE:
            at = self.function.roles.index(str(constant))
            parts.tensors[at] = read[at].constant(operands[at].raw)

    def results(self, type_: str, configuration: Configuration, parts: ModelParts) -> Results:
        """Return the tensor that a valid configuration writes."""
        del parts
        written = self.form(type_, configuration, "output")
        return [replace(written, shape=dimensions(configuration, "shape"))]

    def check(self, reading: OperatorReading, parts: ModelParts) -> None:
        """Raise UnknownOperatorForm unless a configuration says all of a model."""
        if set(parts.tensors) != set(range(len(self.function.roles))):
            raise UnknownOperatorForm(f"{self.operator} reads {len(parts.tensors)} tensors")
        shape = dimensions(reading.configuration, "shape")
        if broadcast_fault(self._broadcasts(reading.configuration), shape) is not None:
            raise UnknownOperatorForm(f"the shapes of {self.operator} do not fit each other")
        for at, tensor in self.parts(reading.type, reading.configuration).tensors.items():
            self.check_alike("reads", parts.tensors[at], tensor)
        super().check(reading, parts)

    def fault(self, type_: str, configuration: Configuration) -> str | None:
        """Return why a configuration is no valid model, or None."""
        if (said := self._scale_fault(type_, configuration)) is not None:
            return said
        shape, settings = dimensions(configuration, "shape"), self._broadcasts(configuration)
        if len(shape) > self.function.most_rank and set(settings) != {NOT_BROADCAST}:
            return f"{self.operator} broadcasts at most {self.function.most_rank} dimensions"
        return broadcast_fault(settings, shape)

    def draw(self, type_: str, rng: np.random.Generator) -> Configuration:
        """Return settings whose shapes fit each other, and mostly scales that do."""
        drawn = dict(super().draw(type_, rng))
        shape, most_rank = dimensions(drawn, "shape"), self.function.most_rank
        names = [f"{role}_broadcast" for role in self.function.stretched]
        settings = [word(drawn, name) for name in names]
        settings, drawn["shape"] = drawn_broadcasts(settings, shape, most_rank, rng)
        drawn |= dict(zip(names, settings, strict=True))
        if type_ in QUANTIZED and self.function.scales != "one":
            self._draw_scales(type_, drawn, rng)
        if self._has_output(type_):
            least = self.function.least_output(type_, drawn)
            drawn |= drawn_output(type_, self._range(type_, drawn), rng, least)
        return drawn

    def exact(self, options: Options, operands: Operands, results: Results) -> ExactAnswers:
        """Return the function of the operands."""
        present = [operand for operand in operands if operand is not None]
        function, (result,) = self.function, results
        # Which of a zero and a negative zero is greater says no operator.
        chosen = function.kind == "order" and result.dtype != "float32"
        if function.kind == "choice" or chosen:
            return (bits(function.of(*(operand.raw for operand in present))),)
        clamp = ACTIVATION_LIMITS[str(options.get("fusedActivationFunction", "NONE"))]
        return (answer(function.of, present, result, loss=function.loss, clamp=clamp),)

    def operands(
        self, graph: OperatorGraph, style: OperandStyle, rng: np.random.Generator
    ) -> tuple[Values, ...]:
        """Return values for which there is a result."""
        read = [operand for operand in graph.operands(graph.nodes[0]) if operand is not None]
        raw = [
            np.asarray(operand_values(value, style, rng)) if value.values is None else value.values
            for value in read
        ]
        operands = [Operand(*values) for values in zip(read, raw, strict=True)]
        self.function.adjust(operands)
        return tuple(operand.raw for operand in operands if operand.value.values is None)

    def with_input(
        self, type_: str, configuration: Configuration, value: GraphValue
    ) -> Configuration | None:
        """Return a configuration whose result has the tensor's shape."""
        function, role = self.function, self.function.roles[0]
        try:
            if type_of(value) != (BOOL if role == "condition" else type_):
                return None
        except UnknownOperatorForm:
            return None
        changed: dict[str, Setting] = {**configuration, "shape": value.shape}
        if role in function.stretched:
            changed[f"{role}_broadcast"] = NOT_BROADCAST
        if changed["constant"] == role:
            changed["constant"] = _TENSORS_ALONE
        if broadcast_fault(self._broadcasts(changed), value.shape) is not None:
            changed |= {f"{operand}_broadcast": NOT_BROADCAST for operand in function.stretched}
        return changed | quantization_settings(value, self._scale_role(role))

    def _scale_role(self, role: str) -> str:
        """Return the tensor whose quantization settings a tensor has."""
        if self.function.scales == "one":
            return "input"
        return role if role in (*self.function.roles, "output") else self.function.roles[-1]

    def facts(self, type_: str, configuration: Configuration) -> Mapping[str, Setting]:
        """Return the sizes of the tensors, which operand is broadcast, and ratios of scales."""
        facts: dict[str, Setting] = {}
        shape = dimensions(configuration, "shape")
        facts["size"], facts["last_size"] = prod(shape), (1, *shape)[-1]
        parts = self.parts(type_, configuration)
        for at, role in enumerate(self.function.roles):
            facts[f"{role}_size"] = parts.tensors[at].size
        settings = zip(self.function.roles, self._broadcasts(configuration), strict=True)
        stretched = [role for role, setting in settings if setting != NOT_BROADCAST]
        facts["broadcast"] = " and ".join(stretched) or "none"
        if self._has_output(type_):
            first, second = (
                number(configuration, f"{operand}_scale") for operand in self.function.roles
            )
            written = number(configuration, "output_scale")
            facts["operand_ratio_log2"] = round(np.log2(first / second))
            facts["sum_ratio_log2"] = round(np.log2(max(first, second) / written))
            facts["product_ratio_log2"] = round(np.log2(first * second / written))
        return facts

    def _scale_fault(self, type_: str, configuration: Configuration) -> str | None:
        function = self.function
        if type_ not in QUANTIZED or function.scales == "one":
            return None
        scales = [number(configuration, f"{role}_scale") for role in function.roles]
        if function.scales == "operands":
            fine = max(scales) < 1
            return None if fine else f"{self.operator} compares values with scales below 1"
        least = function.least_output(type_, configuration)
        fine = number(configuration, "output_scale") > least
        return None if fine else f"output_scale is not above {least}"

    def _draw_scales(self, type_: str, drawn: dict[str, Setting], rng: np.random.Generator) -> None:
        """Change the scales of operands, mostly so that both matter."""
        first, second = (f"{role}_scale" for role in self.function.roles[-2:])
        if rng.random() < _REACHING:
            drawn[first] = reaching_scale(type_, rng)
        if rng.random() < _NEAR:
            near = number(drawn, first) * 2 ** rng.uniform(-3, 3)
            drawn[second] = float(np.float32(near))
        if self.function.scales == "operands":  # which are compared
            first, second = self.function.roles
            for role in (first, second):
                drawn[f"{role}_scale"] = float(np.float32(2 ** rng.uniform(*_COMPARABLE)))
            if rng.random() < _EQUAL:
                equal = ("scale", "zero_point")
                drawn |= {f"{second}_{setting}": drawn[f"{first}_{setting}"] for setting in equal}

    def _has_output(self, type_: str) -> bool:
        """Return whether the result has a scale of its own."""
        return type_ in QUANTIZED and self.function.scales == "each"

    def _broadcasts(self, configuration: Configuration) -> list[str]:
        """Return how each operand is broadcast, in the order of the roles."""
        names = [f"{role}_broadcast" for role in self.function.roles]
        return [
            word(configuration, name) if name in configuration else NOT_BROADCAST for name in names
        ]

    def _range(self, type_: str, configuration: Configuration) -> Values:
        """Return results of some values of all operands."""
        some = [
            levels(activation(type_, (), configuration, role), _SOME_LEVELS)
            for role in self.function.roles
        ]
        clamp = ACTIVATION_LIMITS[str(configuration.get("activation", "NONE"))]
        with np.errstate(all="ignore"):
            return np.clip(self.function.of(*np.meshgrid(*some)), *clamp)
