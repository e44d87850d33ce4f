"""Operators that give the values of a tensor another type."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod

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
    drawn_output,
    levels,
    quantization_parameters,
    quantization_settings,
    reaching_scale,
    type_of,
)
from edgeflare.conform.operators.elementwise.real_answers import Loss, answer
from edgeflare.conform.specification.operator_specification import (
    BOOL,
    EPSILON,
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
    bits,
    operand_values,
    reals,
)
from edgeflare.conform.specification.parameter import (
    Choice,
    Configuration,
    Dimensions,
    OperatorParameter,
    ParameterKind,
    ScaleParameter,
    Setting,
    dimensions,
    number,
    whole,
    word,
)

_ENDS = (-128, 0, 127, 128, 255)
"""The ends and the middles of 8-bit types, each a bucket of its own."""

_FLOATS = np.linspace(-8, 8, 17)
"""Some of what float operands are, by which the scales of results are drawn."""


@dataclass(frozen=True, slots=True)
class Conversion:
    """What one operator converts.

    Attributes:
        operator: name in the schema.
        to: the types that a type can be given.
        versions: the lowest version of types that demand more than 1, whether read or written.
        quantized: int8, uint8 and int16 tensors are quantized; else they stand for themselves.

    """

    operator: str
    to: Mapping[str, tuple[str, ...]]
    versions: Mapping[str, int]
    quantized: bool = True


class ConversionOperator(OperatorSpecification):
    """An operator that converts; its type is that of what it reads."""

    def __init__(self, conversion: Conversion) -> None:
        """Declare the operator of a conversion."""
        self.operator, self.types = conversion.operator, tuple(conversion.to)
        self._conversion = conversion

    def parameters(self, type_: str) -> tuple[OperatorParameter, ...]:
        """Return the shape, the type that is written, and how both tensors are quantized."""
        known: list[OperatorParameter] = [
            Dimensions("shape"),
            Choice("to", self._conversion.to[type_]),
        ]
        if self._conversion.quantized:
            known.extend(quantization_parameters(type_, "input"))
            if set(self._conversion.to[type_]) & set(QUANTIZED):
                known.extend(
                    (ScaleParameter("output_scale"), _ConvertedZeroPoint("output_zero_point"))
                )
        return tuple(known)

    def fault(self, type_: str, configuration: Configuration) -> str | None:
        """Return why a configuration is no valid model, or None."""
        del type_
        to = word(configuration, "to")
        if "output_zero_point" not in configuration:
            return None
        zero_point, known = whole(configuration, "output_zero_point"), np.iinfo(DTYPES[to])
        if to == INT16 and zero_point:
            return "the zero point of an int16 tensor is 0"
        within = known.min <= zero_point <= known.max
        return None if within else f"{zero_point} is no zero point of {to}"

    def draw(self, type_: str, rng: np.random.Generator) -> Configuration:
        """Return settings whose scales mostly fit each other."""
        drawn = dict(super().draw(type_, rng))
        if not self._conversion.quantized:
            return drawn
        real = _FLOATS
        if type_ in QUANTIZED:
            drawn["input_scale"] = reaching_scale(type_, rng)
            real = levels(activation(type_, (), drawn, "input"))
        if "output_scale" in drawn:
            drawn |= {"output_zero_point": 0, **drawn_output(word(drawn, "to"), real, rng)}
        return drawn

    def build(
        self,
        type_: str,
        configuration: Configuration,
        rng: np.random.Generator,  # noqa: ARG002 - there are no constants
    ) -> OperatorGraph:
        """Return the model of a valid configuration."""
        shape, to = dimensions(configuration, "shape"), word(configuration, "to")
        read, written = GraphValue(DTYPES[type_], shape), GraphValue(DTYPES[to], shape)
        options: dict[str, Option] = {}
        if self._conversion.quantized:
            read = activation(type_, shape, configuration, "input")
            if "output_scale" in configuration:
                scale = number(configuration, "output_scale")
                zero_point = whole(configuration, "output_zero_point")
                written = replace(written, quantization=Quantization((scale,), zero_point))
        else:
            options = {"inDataType": read.dtype.upper(), "outDataType": written.dtype.upper()}
        version = max(self._conversion.versions.get(one, 1) for one in (type_, to))
        return OperatorGraph.of_operator(self.operator, [read], [written], options, version)

    def read(self, graph: OperatorGraph) -> OperatorReading:
        """Return what a model of this one operator is."""
        (node,) = graph.nodes
        (read,), (written,) = graph.operands(node), graph.results(node)
        if read is None or read.values is not None or read.shape != written.shape:
            raise UnknownOperatorForm(f"{self.operator} reads one tensor of the result's shape")
        type_, to = self._type(read), self._type(written)
        if to not in self._conversion.to.get(type_, ()):
            raise UnknownOperatorForm(f"{self.operator} from {type_} to {to}")
        settings: dict[str, Setting] = {"shape": read.shape, "to": to}
        if self._conversion.quantized:
            settings |= quantization_settings(read, "input")
            if to in QUANTIZED:
                settings |= {"output_zero_point": 0, **quantization_settings(written, "output")}
        return OperatorReading(type_, settings)

    def exact(
        self,
        options: Mapping[str, Option],
        operands: Sequence[Operand | None],
        results: Sequence[GraphValue],
    ) -> tuple[ExactAnswer, ...]:
        """Return the same real values; of a cast, the same values."""
        del options
        (read,), (written,) = [one for one in operands if one is not None], results
        if not self._conversion.quantized:
            with np.errstate(all="ignore"):
                return (bits(read.raw.astype(written.dtype)),)
        exact = answer(lambda x: x, [read], written, loss=Loss(1))
        quantization = read.value.quantization
        if quantization is None or written.quantization is not None:
            return (exact,)
        # The zero point may be scaled by itself and subtracted afterwards.
        (scale,), zero_point = quantization.scales, abs(quantization.zero_point)
        magnitude = scale * (np.abs(read.raw.astype(np.float64)) + zero_point)
        return (reals(exact.values, exact.slack + EPSILON * magnitude),)

    def operands(
        self, graph: OperatorGraph, style: OperandStyle, rng: np.random.Generator
    ) -> tuple[Values, ...]:
        """Return values that the result's type has: what C does with others is not defined."""
        read, (written,) = graph.values[graph.inputs[0]], graph.results(graph.nodes[0])
        whole_result = written.dtype not in ("float32", "bool")
        if read.dtype != "float32" or not whole_result:
            return (operand_values(read, style, rng),)
        raw = np.asarray(operand_values(read, "uniform" if style == "special" else style, rng))
        return (np.abs(raw) if written.dtype == "uint8" and not written.quantization else raw,)

    def with_input(
        self, type_: str, configuration: Configuration, value: GraphValue
    ) -> Configuration | None:
        """Return a configuration of the tensor's shape and quantization."""
        try:
            if self._type(value) != type_:
                return None
        except UnknownOperatorForm:
            return None
        return {**configuration, "shape": value.shape, **quantization_settings(value, "input")}

    def facts(self, type_: str, configuration: Configuration) -> Mapping[str, Setting]:
        """Return the size of the result, and the ratio of scales."""
        facts: dict[str, Setting] = {"size": prod(dimensions(configuration, "shape"))}
        if type_ in QUANTIZED and "output_scale" in configuration:
            ratio = number(configuration, "input_scale") / number(configuration, "output_scale")
            facts["scale_ratio_log2"] = round(np.log2(ratio))
        return facts

    def _type(self, value: GraphValue) -> str:
        if self._conversion.quantized:
            return type_of(value)
        known = (one for one, dtype in DTYPES.items() if dtype == value.dtype)
        if value.quantization is not None or (type_ := next(known, None)) is None:
            raise UnknownOperatorForm(f"{self.operator} of a tensor of {value.dtype}")
        return type_


_CAST = (FLOAT, INT8, UINT8, INT16, INT32, INT64, BOOL)

CONVERSION_OPERATORS = tuple(
    map(
        ConversionOperator,
        (
            Conversion(
                "CAST",
                {one: tuple(other for other in _CAST if other != one) for one in _CAST},
                {INT8: 3},
                quantized=False,
            ),
            Conversion(
                "QUANTIZE",
                {
                    FLOAT: (INT8, UINT8, INT16),
                    INT8: (INT8, UINT8),
                    UINT8: (UINT8, INT8),
                    INT16: (INT16, INT8),
                },
                {INT16: 2},
            ),
            Conversion(
                "DEQUANTIZE",
                {INT8: (FLOAT,), UINT8: (FLOAT,), INT16: (FLOAT,)},
                {INT8: 2, INT16: 3},
            ),
        ),
    )
)
"""Conversions between types."""


class _ConvertedZeroPoint(OperatorParameter):
    """A zero point of int8, uint8 or int16."""

    kind: ParameterKind = "quantization"
    unit = "zero point"
    simplest = 0
    buckets = (*map(str, _ENDS), "between")

    def __init__(self, name: str) -> None:
        """Declare a zero point."""
        self.name = name

    def bucket(self, setting: Setting) -> str:
        """Return the bucket of a setting."""
        if not isinstance(setting, int):
            raise TypeError(f"{self.name} is {setting!r}, no whole number")
        if not _ENDS[0] <= setting <= _ENDS[-1]:
            raise ValueError(f"{self.name} {setting}")
        return str(setting) if setting in _ENDS else "between"

    def draw(self, rng: np.random.Generator) -> Setting:
        """Return a setting."""
        choices = (*_ENDS, int(rng.integers(_ENDS[0], _ENDS[-1] + 1)))
        return choices[int(rng.integers(len(choices)))]

    def simpler(self, setting: Setting) -> Iterator[Setting]:
        """Yield simpler settings."""
        if setting != self.simplest:
            yield self.simplest
