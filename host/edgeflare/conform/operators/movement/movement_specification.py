"""The declaration of an operator that moves data: what it reads, what fits, and where data go.

Some rules of what fits are those of several operators, such as an axis within a rank.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from math import gcd, prod

import numpy as np

from edgeflare.conform.operator_graph import GraphValue, OperatorGraph, Values
from edgeflare.conform.specification.activation_tensors import (
    DTYPES,
    INT32,
    INT64,
    TYPES,
    Operands,
    OperandStyle,
    Options,
    Results,
    UnknownOperatorForm,
    operand_values,
    quantization_settings,
)
from edgeflare.conform.specification.exact_answer import ExactAnswers, bits
from edgeflare.conform.specification.model_parts import ModelParts, ShapeOf
from edgeflare.conform.specification.operator_specification import (
    OperatorReading,
    OperatorSpecification,
)
from edgeflare.conform.specification.parameter import (
    Configuration,
    Setting,
    Settings,
    dimensions,
    whole,
)

_INDEX_TYPE = "index_type"
_MOST_VALUES = 1000
"""Most values of all results of a model that is drawn."""


@dataclass(frozen=True, eq=False)
class MovementSpecification(OperatorSpecification):
    """An operator of which every value of the results is one of the operands', or a fixed one.

    From the rule of what fits follow what is drawn and what is a fault.

    Attributes:
        moved: returns the results' values from the settings and the values of all operands.
        limits: returns the least and the greatest value, by the settings, of each operand that
            holds indices.
        takes_any: other values than these are legal too.

    """

    moved: Callable[[Configuration, Sequence[Values]], Sequence[Values]]
    _: KW_ONLY
    limits: Callable[[Configuration], Mapping[int, tuple[int, int]]] = lambda _: {}
    takes_any: bool = False

    def fault(self, type_: str, configuration: Configuration) -> str | None:
        """Return why a configuration is no valid model, or None."""
        fitting = self.fit(dict(configuration), "")
        for name, setting in configuration.items():
            if fitting[name] != setting:
                return f"{name} is {setting}, where {fitting[name]} would fit"
        return self.refused(type_, configuration)

    def draw(self, type_: str, rng: np.random.Generator) -> Configuration:
        """Return settings at random; their results are of moderate size."""
        for _ in range(10):
            drawn = self.fit(dict(super().draw(type_, rng)), "")
            if self.invalid(type_, drawn) is None and self._size(type_, drawn) <= _MOST_VALUES:
                break
        return drawn

    def results(self, type_: str, configuration: Configuration, parts: ModelParts) -> Results:
        """Return the tensors that a valid configuration writes."""
        form = self.form(type_, configuration, "input")
        operands = [parts.tensors[at] for at in sorted(parts.tensors)]
        moved = self.moved(configuration, [_values(operand) for operand in operands])
        return [
            GraphValue(name, array.shape, form.quantization if name == form.dtype else None)
            for array, name in ((result, result.dtype.name) for result in moved)
        ]

    def type_of(self, data: GraphValue) -> str:
        """Return the type of an operator on a tensor, whether its whole numbers are quantized."""
        return TYPES.get(data.dtype, data.dtype)

    def check(self, reading: OperatorReading, parts: ModelParts) -> None:  # noqa: ARG002
        """Raise UnknownOperatorForm unless results are quantized as what is moved."""
        data = parts.tensors[self.data]
        for result in parts.results:
            if result.dtype == data.dtype and result.quantization != data.quantization:
                raise UnknownOperatorForm("its result has another scale than what it moves")

    def exact(self, options: Options, operands: Operands, results: Results) -> ExactAnswers:
        """Return the exact answers."""
        settings = self.reading(ModelParts.known(options, operands, results)).configuration
        moved = self.moved(settings, [operand.raw for operand in operands if operand is not None])
        return tuple(bits(result) for result in moved)

    def with_input(
        self, type_: str, configuration: Configuration, value: GraphValue
    ) -> Configuration | None:
        """Return a configuration near another, whose first operand is a tensor of another model."""
        settings = dict(configuration)
        place = next((part for part in self.places if isinstance(part, ShapeOf)), None)
        if place is None:
            # Without a parameter for its shape, what is given is a scalar.
            return self._with_data(type_, settings, value, "") if not value.shape else None
        if place.operand in self.limits(configuration) and not self.takes_any:
            return None
        if place.parameter.fault(value.shape):
            return None
        settings[place.parameter.name] = value.shape
        if not place.dtype:
            return self._with_data(type_, settings, value, place.parameter.name)
        if value.quantization is not None or value.dtype not in {INT32, INT64}:
            return None
        return self.fit({**settings, _INDEX_TYPE: value.dtype}, place.parameter.name)

    def _with_data(
        self, type_: str, settings: Settings, value: GraphValue, changed: str
    ) -> Configuration | None:
        if value.dtype != DTYPES[type_]:
            return None
        try:
            return self.fit({**settings, **quantization_settings(value, "input")}, changed)
        except UnknownOperatorForm:
            return None

    def operands(
        self, graph: OperatorGraph, style: OperandStyle, rng: np.random.Generator
    ) -> tuple[Values, ...]:
        """Return values for the tensors that a model of this one operator is given."""
        limits = self.limits(self.read(graph).configuration)
        given = []
        for at in graph.inputs:
            value = graph.values[at]
            if (limit := limits.get(graph.nodes[0].inputs.index(at))) is not None:
                given.append(rng.integers(*limit, value.shape, value.dtype, endpoint=True))
            else:
                given.append(operand_values(value, style, rng))
        return tuple(given)

    def facts(self, type_: str, configuration: Configuration) -> Mapping[str, Setting]:
        """Return sizes that follow from the settings."""
        found: dict[str, Setting] = {"result_size": self._size(type_, configuration)}
        if "axis" in configuration and "shape" in configuration:
            shape, axis = dimensions(configuration, "shape"), whole(configuration, "axis")
            # Of operators that add a dimension, the axis may be none of the shape's.
            if -len(shape) <= axis < len(shape):
                found["axis_size"] = shape[axis]
            found["axis_from_last"] = axis if axis < 0 else axis - len(shape)
        return found

    def _size(self, type_: str, configuration: Configuration) -> int:
        graph = self.build(type_, configuration, np.random.default_rng(0))
        return sum(result.size for result in graph.results(graph.nodes[0]))


def _values(value: GraphValue) -> Values:
    return np.zeros(value.shape, value.dtype) if value.values is None else value.values


def axis_within(axis: int, rank: int) -> int:
    """Return an axis of a rank, negative ones counted from the end; the given one if it is one."""
    return axis if -rank <= axis < rank else axis % max(rank, 1)


def as_many(numbers: tuple[int, ...], count: int, usual: int) -> tuple[int, ...]:
    """Return so many numbers: the last of the given ones, with usual ones before them."""
    return (usual,) * (count - len(numbers)) + numbers[max(0, len(numbers) - count) :]


def fit_axis(beyond: int = 0) -> Callable[[Settings, str], Settings]:
    """Return the rule that the axis is one of the shape's, or of a rank so much larger."""

    def fit(settings: Settings, _: str) -> Settings:
        rank = len(dimensions(settings, "shape")) + beyond
        settings["axis"] = axis_within(whole(settings, "axis"), rank)
        return settings

    return fit


def same_size(sizes: tuple[int, ...], shape: tuple[int, ...]) -> tuple[int, ...]:
    """Return a shape near one with as many values as another has; one size may be -1.

    The shape itself if it has as many.
    """
    size, known = prod(shape), prod(number for number in sizes if number != -1)
    if -1 in sizes:
        if known and size % known == 0:
            return sizes
        sizes = tuple(1 if number == -1 else number for number in sizes)
    if prod(sizes) == size:
        return sizes
    if not sizes or not size:
        return tuple(shape)
    fitting = []
    for asked in sizes[:-1]:
        fitting.append(gcd(size, asked) if asked else 1)
        size //= fitting[-1]
    return (*fitting, size)
