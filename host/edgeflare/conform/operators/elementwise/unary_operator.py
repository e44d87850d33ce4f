"""Operators with one operand, each value of which gives one of the result."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Literal

import numpy as np

from edgeflare.conform.graphs.operator_graph import (
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
    levels,
    quantization_parameters,
    quantization_settings,
    reaching_scale,
    type_of,
)
from edgeflare.conform.operators.elementwise.output_scales import drawn_output
from edgeflare.conform.operators.elementwise.real_answers import NO_LOSS, Loss, Reals, answer
from edgeflare.conform.specification.exact_answer import ExactAnswer
from edgeflare.conform.specification.operand_values import OperandStyle, operand_values
from edgeflare.conform.specification.operator_specification import (
    Operand,
    OperatorReading,
    OperatorSpecification,
    UnknownOperatorForm,
)
from edgeflare.conform.specification.parameter import Dimensions, OperatorParameter
from edgeflare.conform.specification.settings import (
    Configuration,
    Setting,
    dimensions,
    number,
    whole,
)

ResultScale = Literal["free", "same"]
"""How a result is quantized: as it is drawn, or as what is read."""

_REACHING = 3 / 4
"""The share of draws with a scale at which functions bend; the others have any scale."""


@dataclass(frozen=True, slots=True)
class UnaryFunction:
    """What one unary operator computes, and in which models.

    Attributes:
        operator: its name in the schema.
        versions: of each type, the lowest version that has it.
        of: the function of float64 values, or of int64 ones of whole numbers, given the options.
        loss: what float32 arithmetic may lose.
        result: how the result is quantized; or what it has to be, by type.
        options: parameters that are options of the schema, by their names there.
        domain: "positive" if negative values have no result, and zero none that is finite.
        least_output: the scale of the result is greater than that of the operand times this.
        reaches: to 2 to such a power most operands reach.

    """

    operator: str
    versions: Mapping[str, int]
    of: Callable[[Values, Mapping[str, Option]], Values]
    loss: Loss = NO_LOSS
    result: ResultScale | Mapping[str, Quantization] = "free"
    options: Mapping[str, OperatorParameter] = field(default_factory=dict)
    domain: Literal["all", "positive"] = "all"
    least_output: float = 0.0
    reaches: tuple[float, float] = (-1, 5)


class UnaryOperator(OperatorSpecification):
    """An operator with one operand."""

    def __init__(self, function: UnaryFunction) -> None:
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
