"""The declaration of an operator that moves data: what it reads, what fits, and where data go.

Some rules of what fits are those of several operators, such as an axis within a rank.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import gcd, prod

import numpy as np

from edgeflare.conform.operator_graph import (
    GraphValue,
    OperatorGraph,
    Option,
    Quantization,
    Values,
)
from edgeflare.conform.operators.movement.model_parts import ModelParts, Place, ShapeOf
from edgeflare.conform.specification.operator_specification import (
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
    bits,
    operand_values,
)
from edgeflare.conform.specification.parameter import (
    Configuration,
    OperatorParameter,
    ScaleParameter,
    Setting,
    ZeroPoint,
    dimensions,
    number,
    whole,
)

_SCALE, _ZERO_POINT = "input_scale", "input_zero_point"
_INDEX_TYPE = "index_type"
_QUANTIZED = {INT8: "int8", UINT8: "uint8", INT16: "int16"}
_MOST_VALUES = 1000
"""Most values of all results of a model that is drawn."""


@dataclass(frozen=True, eq=False)
class MovementSpecification(OperatorSpecification):
    """An operator of which every value of the results is one of the operands', or a fixed one.

    A rule says what fits: it returns settings that fit each other, unchanged where they did. From
    it follow what is drawn, what is a fault, and what follows a setting that has changed.

    Attributes:
        operator: name in the schema.
        types: the operator's types.
        places: where each parameter but the quantization stands in a model.
        moved: returns the results' values from the settings and the values of all operands.
        fit: returns settings that fit, given the one that may not be changed, "" for none.
        varied: changes settings that are drawn, where those that fit would be too much alike.
        versions: the operator's version by the dtype of what is moved, where it is not 1.
        least_version: returns the lowest version for settings, whatever the dtype.
        fixed: options that no parameter stands in.
        data: the place of the operand that says what is moved.
        complete: adds operands that follow from the settings or are drawn.
        refused: why settings that fit are none that kernels take, None if they do.
        limits: returns the least and the greatest value, by the settings, of each operand that
            holds indices.
        takes_any: other values than these are legal too.

    """

    operator: str
    types: tuple[str, ...]
    places: tuple[Place, ...]
    moved: Callable[[Configuration, Sequence[Values]], Sequence[Values]]
    fit: Callable[[Settings, str], Settings] = lambda settings, _: settings
    versions: Mapping[str, int] = field(default_factory=dict)
    least_version: Callable[[Configuration], int] = lambda _: 1
    fixed: Mapping[str, Option] = field(default_factory=dict)
    data: int = 0
    varied: Callable[[Settings, np.random.Generator], Settings] = lambda settings, _: settings
    complete: Callable[[Configuration, ModelParts, np.random.Generator], None] | None = None
    refused: Callable[[str, Configuration], str | None] = lambda *_: None
    limits: Callable[[Configuration], Mapping[int, tuple[int, int]]] = lambda _: {}
    takes_any: bool = False

    def parameters(self, type_: str) -> tuple[OperatorParameter, ...]:
        """Return the parameters of a type."""
        own = tuple(place.parameter for place in self.places)
        if type_ in {INT8, UINT8}:
            return (*own, ScaleParameter(_SCALE), ZeroPoint(_ZERO_POINT, type_))
        # The zero point of 16-bit activations is always 0.
        return (*own, ScaleParameter(_SCALE)) if type_ == INT16 else own

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
            settings = self.varied(dict(super().draw(type_, rng)), rng)
            drawn = self.fit(settings, "")
            if self.invalid(type_, drawn) is None and self._size(type_, drawn) <= _MOST_VALUES:
                break
        return drawn

    def adapted(self, type_: str, configuration: Configuration, changed: str) -> Configuration:
        """Return a configuration in which what depends on a changed setting follows it."""
        known = {one.name: one for one in self.parameters(type_)}
        if known[changed].fault(configuration[changed]):
            return configuration
        return self.fit(dict(configuration), changed)

    def build(
        self, type_: str, configuration: Configuration, rng: np.random.Generator
    ) -> OperatorGraph:
        """Return the model of a valid configuration, in the lowest version that does."""
        parts = ModelParts(_data(type_, configuration), dict(self.fixed))
        for place in self.places:
            place.write(configuration[place.parameter.name], parts)
        if self.complete is not None:
            self.complete(configuration, parts, rng)
        operands = [parts.tensors[at] for at in range(len(parts.tensors))]
        results = self.moved(configuration, [_values(one) for one in operands])
        version = self.versions.get(parts.data.dtype, 1)
        return OperatorGraph.of_operator(
            self.operator,
            operands,
            [_result(parts.data, one) for one in results],
            parts.options,
            max(version, self.least_version(configuration)),
        )

    def read(self, graph: OperatorGraph) -> OperatorReading:
        """Return what a model of this one operator is."""
        (node,) = graph.nodes
        operands = graph.operands(node)
        type_, settings = self._read(node.options, operands)
        data = operands[self.data]
        for result in graph.results(node):
            if data and result.dtype == data.dtype and result.quantization != data.quantization:
                raise UnknownOperatorForm("its result has another scale than what it moves")
        return OperatorReading(type_, settings)

    def exact(
        self,
        options: Mapping[str, Option],
        operands: Sequence[Operand | None],
        results: Sequence[GraphValue],  # noqa: ARG002 - follow from the operands
    ) -> tuple[ExactAnswer, ...]:
        """Return the exact answers."""
        tensors = [None if one is None else replace(one.value, values=one.raw) for one in operands]
        _, settings = self._read(options, tensors)
        moved = self.moved(settings, [one.raw for one in operands if one is not None])
        return tuple(bits(one) for one in moved)

    def with_input(
        self, type_: str, configuration: Configuration, value: GraphValue
    ) -> Configuration | None:
        """Return a configuration near another, whose first operand is a tensor of another model."""
        settings = dict(configuration)
        place = next((one for one in self.places if isinstance(one, ShapeOf)), None)
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
        if value.dtype != _QUANTIZED.get(type_, type_):
            return None
        try:
            return self.fit({**settings, **_quantization(type_, value)}, changed)
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
        return sum(one.size for one in graph.results(graph.nodes[0]))

    def _read(
        self, options: Mapping[str, Option], operands: Sequence[GraphValue | None]
    ) -> tuple[str, Settings]:
        data = operands[self.data] if self.data < len(operands) else None
        if data is None:
            raise UnknownOperatorForm("nothing is moved")
        type_ = INT16 if data.dtype == "int16" else data.dtype
        if type_ not in self.types:
            raise UnknownOperatorForm(f"{self.operator} has no type {type_}")
        for name, setting in self.fixed.items():
            if options.get(name, setting) != setting:
                raise UnknownOperatorForm(f"its option {name} is {options[name]}")
        tensors = {at: one for at, one in enumerate(operands) if one is not None}
        parts = ModelParts(data, dict(options), tensors)
        settings = {place.parameter.name: place.read(parts) for place in self.places}
        return type_, {**settings, **_quantization(type_, data)}


def _data(type_: str, configuration: Configuration) -> GraphValue:
    if type_ not in _QUANTIZED:
        return GraphValue(type_, ())
    zero_point = whole(configuration, _ZERO_POINT) if _ZERO_POINT in configuration else 0
    quantization = Quantization((number(configuration, _SCALE),), zero_point)
    return GraphValue(_QUANTIZED[type_], (), quantization)


def _quantization(type_: str, value: GraphValue) -> Settings:
    if type_ not in _QUANTIZED:
        return {}
    known = value.quantization
    if known is None or len(known.scales) != 1:
        raise UnknownOperatorForm("what it moves has not one scale")
    if type_ != INT16:
        return {_SCALE: known.scales[0], _ZERO_POINT: known.zero_point}
    if known.zero_point:
        raise UnknownOperatorForm("16-bit activations have another zero point than 0")
    return {_SCALE: known.scales[0]}


def _values(value: GraphValue) -> Values:
    return np.zeros(value.shape, value.dtype) if value.values is None else value.values


def _result(data: GraphValue, values: Values) -> GraphValue:
    quantization = data.quantization if values.dtype.name == data.dtype else None
    return GraphValue(values.dtype.name, values.shape, quantization)


Settings = dict[str, Setting]


def axis_within(axis: int, rank: int) -> int:
    """Return an axis of a rank, negative ones counted from the end; the given one if it is one."""
    return axis if -rank <= axis < rank else axis % max(rank, 1)


def as_many(numbers: tuple[int, ...], count: int, usual: int) -> tuple[int, ...]:
    """Return so many numbers: the last of the given ones, with usual ones before them."""
    return (usual,) * (count - len(numbers)) + numbers[max(0, len(numbers) - count) :]


def fit_axis(beyond: int = 0) -> Callable[[Settings, str], Settings]:
    """Return the rule that the axis is one of the shape's, or of a rank so much larger."""

    def fit(settings: Settings, changed: str) -> Settings:
        del changed
        rank = len(dimensions(settings, "shape")) + beyond
        settings["axis"] = axis_within(whole(settings, "axis"), rank)
        return settings

    return fit


def same_size(sizes: tuple[int, ...], shape: tuple[int, ...]) -> tuple[int, ...]:
    """Return a shape near one with as many values as another has; one size may be -1.

    The shape itself if it has as many.
    """
    size, known = prod(shape), prod(one for one in sizes if one != -1)
    if -1 in sizes:
        if known and size % known == 0:
            return sizes
        sizes = tuple(1 if one == -1 else one for one in sizes)
    if prod(sizes) == size:
        return sizes
    if not sizes or not size:
        return tuple(shape)
    fitting = []
    for one in sizes[:-1]:
        fitting.append(gcd(size, one) if one else 1)
        size //= fitting[-1]
    return (*fitting, size)
