"""Operators with several operands, whose shapes are broadcast with each other."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import prod

import numpy as np

from edgeflare.conform.operator_graph import GraphValue, OperatorGraph, Option, Values
from edgeflare.conform.operators.elementwise.activation_tensors import (
    QUANTIZED,
    activation,
    drawn_output,
    levels,
    quantization_parameters,
    quantization_settings,
    reaching_scale,
    type_of,
)
from edgeflare.conform.operators.elementwise.broadcast import (
    NOT_BROADCAST,
    Broadcast,
    BroadcastingFunction,
    Shape,
    broadcast_fault,
    broadcast_setting,
    drawn_broadcasts,
    operand_shape,
)
from edgeflare.conform.operators.elementwise.real_answers import CLAMPS, answer
from edgeflare.conform.specification.operator_specification import (
    BOOL,
    ExactAnswer,
    Operand,
    OperandStyle,
    OperatorReading,
    OperatorSpecification,
    UnknownOperatorForm,
    bits,
    operand_values,
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

_TENSORS_ALONE = "none"
_REACHING, _NEAR = 3 / 4, 2 / 3
"""Shares of draws with a first scale at which functions bend, and with a second one near it."""

_COMPARABLE, _EQUAL = (-7.0, 0.0), 3 / 4
"""Range of the scales of compared values in powers of 2, and share of draws in which both are
quantized alike: kernels take no scales of 1 or more, and values of unlike scales are hardly ever
equal."""

_SOME_LEVELS = 17
"""Levels of each operand whose combinations give an estimate of a result's range."""


class BroadcastingOperator(OperatorSpecification):
    """An operator with several operands, either given or constants."""

    def __init__(self, function: BroadcastingFunction) -> None:
        """Declare the operator that computes a function."""
        self.operator, self.types = function.operator, tuple(function.versions)
        self._function = function

    def parameters(self, type_: str) -> tuple[OperatorParameter, ...]:
        """Return shape, broadcasts, which operand is a constant, activation and quantization."""
        function = self._function
        known: list[OperatorParameter] = [Dimensions("shape"), *map(Broadcast, function.stretched)]
        known.append(Choice("constant", (_TENSORS_ALONE, *function.constants)))
        if function.activations:
            known.append(Choice("activation", function.activations))
        for role in self._scaled():
            known.extend(quantization_parameters(type_, role))
        return tuple(known)

    def fault(self, type_: str, configuration: Configuration) -> str | None:
        """Return why a configuration is no valid model, or None."""
        if (said := self._scale_fault(type_, configuration)) is not None:
            return said
        shape, settings = dimensions(configuration, "shape"), self._broadcasts(configuration)
        if len(shape) > self._function.most_rank and set(settings) != {NOT_BROADCAST}:
            return f"{self.operator} broadcasts at most {self._function.most_rank} dimensions"
        return broadcast_fault(settings, shape)

    def draw(self, type_: str, rng: np.random.Generator) -> Configuration:
        """Return settings whose shapes fit each other, and mostly scales that do."""
        drawn = dict(super().draw(type_, rng))
        shape, most_rank = dimensions(drawn, "shape"), self._function.most_rank
        names = [f"{role}_broadcast" for role in self._function.stretched]
        settings = [word(drawn, name) for name in names]
        settings, drawn["shape"] = drawn_broadcasts(settings, shape, most_rank, rng)
        drawn |= dict(zip(names, settings, strict=True))
        if type_ in QUANTIZED and self._function.scales != "one":
            self._draw_scales(type_, drawn, rng)
        if self._has_output(type_):
            least = self._function.least_output(type_, drawn)
            drawn |= drawn_output(type_, self._range(type_, drawn), rng, least)
        return drawn

    def build(
        self, type_: str, configuration: Configuration, rng: np.random.Generator
    ) -> OperatorGraph:
        """Return the model of a valid configuration."""
        read = list(self._read(type_, configuration))
        raw = [np.asarray(operand_values(one, "uniform", rng)) for one in read]
        operands = [Operand(*one) for one in zip(read, raw, strict=True)]
        self._function.adjust(operands)
        if (constant := configuration["constant"]) != _TENSORS_ALONE:
            at = self._function.roles.index(str(constant))
            read[at] = read[at].constant(operands[at].raw)
        shape = dimensions(configuration, "shape")
        options: dict[str, Option] = dict(self._function.fixed_options.get(type_, {}))
        if self._function.activations:
            options["fusedActivationFunction"] = word(configuration, "activation")
        version = max(self._function.versions[type_], self._function.raised_version(configuration))
        written = [self._result(type_, shape, configuration)]
        return OperatorGraph.of_operator(self.operator, read, written, options, version)

    def read(self, graph: OperatorGraph) -> OperatorReading:
        """Return what a model of this one operator is."""
        (node,) = graph.nodes
        read, (written,) = _present(graph.operands(node)), graph.results(node)
        roles = self._function.roles
        if len(read) != len(roles):
            raise UnknownOperatorForm(f"{self.operator} reads {len(roles)} tensors")
        type_ = type_of(read[-1])
        if type_ not in self.types:
            raise UnknownOperatorForm(f"{self.operator} of {type_}")
        settings: dict[str, Setting] = {"shape": written.shape}
        for role in self._function.stretched:
            one = read[roles.index(role)]
            settings[f"{role}_broadcast"] = broadcast_setting(one.shape, written.shape)
        settings["constant"] = self._constant(read)
        if self._function.activations:
            settings["activation"] = node.options.get("fusedActivationFunction", "NONE")
        for role, one in zip((*roles, "output"), (*read, written), strict=True):
            settings |= quantization_settings(one, self._scale_role(role))
        settings = {one.name: settings[one.name] for one in self.parameters(type_)}
        self._check(type_, settings, (*read, written), node.options)
        return OperatorReading(type_, settings)

    def exact(
        self,
        options: Mapping[str, Option],
        operands: Sequence[Operand | None],
        results: Sequence[GraphValue],
    ) -> tuple[ExactAnswer, ...]:
        """Return the function of the operands."""
        present = [one for one in operands if one is not None]
        function, (result,) = self._function, results
        # Which of a zero and a negative zero is greater says no operator.
        chosen = function.kind == "order" and result.dtype != "float32"
        if function.kind == "choice" or chosen:
            return (bits(function.of(*(one.raw for one in present))),)
        clamp = CLAMPS[str(options.get("fusedActivationFunction", "NONE"))]
        return (answer(function.of, present, result, loss=function.loss, clamp=clamp),)

    def operands(
        self, graph: OperatorGraph, style: OperandStyle, rng: np.random.Generator
    ) -> tuple[Values, ...]:
        """Return values for which there is a result."""
        read = _present(graph.operands(graph.nodes[0]))
        raw = [
            np.asarray(operand_values(one, style, rng)) if one.values is None else one.values
            for one in read
        ]
        operands = [Operand(*one) for one in zip(read, raw, strict=True)]
        self._function.adjust(operands)
        return tuple(one.raw for one in operands if one.value.values is None)

    def with_input(
        self, type_: str, configuration: Configuration, value: GraphValue
    ) -> Configuration | None:
        """Return a configuration whose result has the tensor's shape."""
        function = self._function
        role = function.roles[0]
        try:
            if type_of(value) != self._type(role, type_):
                return None
        except UnknownOperatorForm:
            return None
        changed: dict[str, Setting] = {**configuration, "shape": value.shape}
        if role in function.stretched:
            changed[f"{role}_broadcast"] = NOT_BROADCAST
        if changed["constant"] == role:
            changed["constant"] = _TENSORS_ALONE
        if broadcast_fault(self._broadcasts(changed), value.shape) is not None:
            changed |= {f"{one}_broadcast": NOT_BROADCAST for one in function.stretched}
        return changed | quantization_settings(value, self._scale_role(role))

    def facts(self, type_: str, configuration: Configuration) -> Mapping[str, Setting]:
        """Return the sizes of the tensors, which operand is broadcast, and ratios of scales."""
        facts: dict[str, Setting] = {}
        shape = dimensions(configuration, "shape")
        facts["size"], facts["last_size"] = prod(shape), (1, *shape)[-1]
        for role, one in zip(self._function.roles, self._read(type_, configuration), strict=True):
            facts[f"{role}_size"] = one.size
        settings = zip(self._function.roles, self._broadcasts(configuration), strict=True)
        stretched = [role for role, setting in settings if setting != NOT_BROADCAST]
        facts["broadcast"] = " and ".join(stretched) or "none"
        if self._has_output(type_):
            first, second = (number(configuration, f"{one}_scale") for one in self._function.roles)
            written = number(configuration, "output_scale")
            facts["operand_ratio_log2"] = round(np.log2(first / second))
            facts["sum_ratio_log2"] = round(np.log2(max(first, second) / written))
            facts["product_ratio_log2"] = round(np.log2(first * second / written))
        return facts

    def _scale_fault(self, type_: str, configuration: Configuration) -> str | None:
        function = self._function
        if type_ not in QUANTIZED or function.scales == "one":
            return None
        scales = [number(configuration, f"{one}_scale") for one in function.roles]
        if function.scales == "operands":
            fine = max(scales) < 1
            return None if fine else f"{self.operator} compares values with scales below 1"
        least = function.least_output(type_, configuration)
        fine = number(configuration, "output_scale") > least
        return None if fine else f"output_scale is not above {least}"

    def _draw_scales(self, type_: str, drawn: dict[str, Setting], rng: np.random.Generator) -> None:
        """Change the scales of operands, mostly so that both matter."""
        first, second = (f"{role}_scale" for role in self._function.roles[-2:])
        if rng.random() < _REACHING:
            drawn[first] = reaching_scale(type_, rng)
        if rng.random() < _NEAR:
            near = number(drawn, first) * 2 ** rng.uniform(-3, 3)
            drawn[second] = float(np.float32(near))
        if self._function.scales == "operands":  # which are compared
            first, second = self._function.roles
            for role in (first, second):
                drawn[f"{role}_scale"] = float(np.float32(2 ** rng.uniform(*_COMPARABLE)))
            if rng.random() < _EQUAL:
                equal = ("scale", "zero_point")
                drawn |= {f"{second}_{one}": drawn[f"{first}_{one}"] for one in equal}

    def _type(self, role: str, type_: str) -> str:
        return BOOL if role == "condition" else type_

    def _scale_role(self, role: str) -> str:
        return "input" if self._function.scales == "one" else role

    def _has_output(self, type_: str) -> bool:
        """Return whether the result has a scale of its own."""
        return type_ in QUANTIZED and self._function.scales == "each"

    def _scaled(self) -> tuple[str, ...]:
        """Return the roles that have scales in configurations."""
        if self._function.scales == "one":
            return ("input",)
        written = ("output",) if self._function.scales == "each" else ()
        return (*self._function.roles, *written)

    def _broadcasts(self, configuration: Configuration) -> list[str]:
        """Return how each operand is broadcast, in the order of the roles."""
        names = [f"{role}_broadcast" for role in self._function.roles]
        return [
            word(configuration, one) if one in configuration else NOT_BROADCAST for one in names
        ]

    def _read(self, type_: str, configuration: Configuration) -> Iterator[GraphValue]:
        result = dimensions(configuration, "shape")
        settings = self._broadcasts(configuration)
        for role, setting in zip(self._function.roles, settings, strict=True):
            shape = operand_shape(setting, result)
            if shape is None:
                raise ValueError(f"an operand has more dimensions than {result}")
            kind = self._type(role, type_)
            yield activation(kind, shape, configuration, self._scale_role(role))

    def _result(self, type_: str, shape: Shape, configuration: Configuration) -> GraphValue:
        role = self._scale_role("output")
        return activation(self._function.result or type_, shape, configuration, role)

    def _range(self, type_: str, configuration: Configuration) -> Values:
        """Return results of some values of all operands."""
        some = [
            levels(activation(type_, (), configuration, role), _SOME_LEVELS)
            for role in self._function.roles
        ]
        clamp = CLAMPS[str(configuration.get("activation", "NONE"))]
        with np.errstate(all="ignore"):
            return np.clip(self._function.of(*np.meshgrid(*some)), *clamp)

    def _constant(self, read: Sequence[GraphValue]) -> str:
        pairs = zip(self._function.roles, read, strict=True)
        constants = [role for role, one in pairs if one.values is not None]
        if len(constants) > 1 or set(constants) - set(self._function.constants):
            raise UnknownOperatorForm(f"{self.operator} with the constants {constants}")
        return constants[0] if constants else _TENSORS_ALONE

    def _check(
        self,
        type_: str,
        configuration: Configuration,
        found: Sequence[GraphValue],
        options: Mapping[str, Option],
    ) -> None:
        """Raise UnknownOperatorForm unless a configuration says all of a model."""
        shape = dimensions(configuration, "shape")
        if broadcast_fault(self._broadcasts(configuration), shape) is not None:
            raise UnknownOperatorForm(f"the shapes of {self.operator} do not fit each other")
        said = (*self._read(type_, configuration), self._result(type_, shape, configuration))
        for one, other in zip(said, found, strict=True):
            if (one.dtype, one.shape, one.quantization) != (
                other.dtype,
                other.shape,
                other.quantization,
            ):
                raise UnknownOperatorForm(f"{self.operator} of {type_} has a {other.dtype} tensor")
        for name, option in self._function.fixed_options.get(type_, {}).items():
            if options.get(name) != option:
                raise UnknownOperatorForm(f"{self.operator} has {name} {options.get(name)}")


def _present(operands: Sequence[GraphValue | None]) -> list[GraphValue]:
    return [one for one in operands if one is not None]
