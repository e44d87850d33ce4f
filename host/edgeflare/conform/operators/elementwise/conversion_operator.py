"""Operators that give the values of a tensor another type."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import KW_ONLY, dataclass
from math import prod

import numpy as np

from edgeflare.conform.operator_graph import GraphValue, OperatorGraph, Values
from edgeflare.conform.operators.elementwise.real_answers import Loss, answer
from edgeflare.conform.operators.elementwise.result_scales import (
    drawn_output,
    levels,
    reaching_scale,
    scale_ratio,
)
from edgeflare.conform.operators.one_input_operator import OneInputOperator, of_same_shape
from edgeflare.conform.specification.activation_tensors import (
    BOOL,
    DTYPES,
    FLOAT,
    INT8,
    INT16,
    INT32,
    INT64,
    QUANTIZED,
    TYPES,
    UINT8,
    Operand,
    OperandStyle,
    Results,
    UnknownOperatorForm,
    operand_values,
    single_quantization,
)
from edgeflare.conform.specification.exact_answer import EPSILON, ExactAnswer, bits, reals
from edgeflare.conform.specification.model_parts import (
    ModelParts,
    Place,
    ReadFrom,
    ShapeOf,
    quantization_places,
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
    whole,
    word,
)

_ENDS = (-128, 0, 127, 128, 255)
"""The ends and the middles of 8-bit types, each a bucket of its own."""

_FLOATS = np.linspace(-8, 8, 17)
"""Some of what float operands are, by which the scales of results are drawn."""


_SHAPE = ShapeOf(Dimensions("shape"))


@dataclass(frozen=True, eq=False)
class _Conversion(OneInputOperator):
    """An operator that converts; its type is that of what it reads.

    Attributes:
        to: the types that a type can be given.

    """

    _: KW_ONLY
    to: Mapping[str, tuple[str, ...]]

    def places_of(self, type_: str) -> tuple[Place, ...]:
        """Return the places of the shape, and of the type that is written."""
        choice = Choice("to", self.to[type_])
        return (*self.places, ReadFrom(choice, lambda parts: self.type_of(parts.results[0])))

    def results(self, type_: str, configuration: Configuration, parts: ModelParts) -> Results:
        """Return a tensor of the other type."""
        del type_, parts
        written = self.form(word(configuration, "to"), configuration, "output")
        return of_same_shape(written, configuration)

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

    def facts(self, type_: str, configuration: Configuration) -> Mapping[str, Setting]:  # noqa: ARG002
        """Return the size of the result, and the ratio of scales."""
        return {"size": prod(dimensions(configuration, "shape")), **scale_ratio(configuration)}


@dataclass(frozen=True, eq=False)
class _Cast(_Conversion):
    """A conversion of values that stand for themselves, whatever their type."""

    def form(self, type_: str, configuration: Configuration, role: str) -> GraphValue:
        """Return a tensor of a type."""
        del configuration, role
        return GraphValue(DTYPES[type_], ())

    def type_of(self, data: GraphValue) -> str:
        """Return the type by the dtype of a tensor."""
        if data.quantization is not None or data.dtype not in TYPES:
            raise UnknownOperatorForm(f"{self.operator} of a tensor of {data.dtype}")
        return TYPES[data.dtype]


def _name_types(settings: Configuration, parts: ModelParts, _: np.random.Generator) -> None:
    parts.options["inDataType"] = parts.data.dtype.upper()
    parts.options["outDataType"] = DTYPES[word(settings, "to")].upper()


@dataclass(frozen=True, eq=False)
class _Quantization(_Conversion):
    """A conversion of the real values of tensors that may be quantized."""

    def places_of(self, type_: str) -> tuple[Place, ...]:
        """Return the places of all parameters of a type."""
        given = quantization_places(type_, input=self.data)
        known = (*super().places_of(type_), *given)
        if not set(self.to[type_]) & set(QUANTIZED):
            return known
        scale, zero_point = ScaleParameter("output_scale"), _ConvertedZeroPoint("output_zero_point")
        return (
            *known,
            ReadFrom(scale, lambda parts: single_quantization(parts.results[0])[0]),
            ReadFrom(zero_point, lambda parts: single_quantization(parts.results[0])[1]),
        )

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
        real = _FLOATS
        if type_ in QUANTIZED:
            drawn["input_scale"] = reaching_scale(type_, rng)
            real = levels(self.form(type_, drawn, "input"))
        if "output_scale" in drawn:
            drawn |= {"output_zero_point": 0, **drawn_output(word(drawn, "to"), real, rng)}
        return drawn


def _same_reals(_settings: Configuration, operand: Operand, result: GraphValue) -> ExactAnswer:
    exact = answer(lambda x: x, [operand], result, loss=Loss(1))
    quantization = operand.value.quantization
    if quantization is None or result.quantization is not None:
        return exact
    # The zero point may be scaled by itself and subtracted afterwards.
    (scale,), zero_point = quantization.scales, abs(quantization.zero_point)
    magnitude = scale * (np.abs(operand.raw.astype(np.float64)) + zero_point)
    return reals(exact.values, exact.slack + EPSILON * magnitude)


_CAST = (FLOAT, INT8, UINT8, INT16, INT32, INT64, BOOL)


def _latest(versions: Mapping[str, int]) -> Callable[[Configuration], int]:
    """Return the lowest version for what is written, by type."""
    return lambda settings: versions.get(word(settings, "to"), 1)


CONVERSION_OPERATORS = (
    _Cast(
        "CAST",
        _CAST,
        (_SHAPE,),
        lambda _, operand, result: bits(operand.raw.astype(result.dtype)),
        to={type_: tuple(other for other in _CAST if other != type_) for type_ in _CAST},
        versions={INT8: 3},
        least_version=_latest({INT8: 3}),
        complete=_name_types,
    ),
    _Quantization(
        "QUANTIZE",
        (FLOAT, INT8, UINT8, INT16),
        (_SHAPE,),
        _same_reals,
        to={
            FLOAT: (INT8, UINT8, INT16),
            INT8: (INT8, UINT8),
            UINT8: (UINT8, INT8),
            INT16: (INT16, INT8),
        },
        versions={INT16: 2},
        least_version=_latest({INT16: 2}),
    ),
    _Quantization(
        "DEQUANTIZE",
        (INT8, UINT8, INT16),
        (_SHAPE,),
        _same_reals,
        to={INT8: (FLOAT,), UINT8: (FLOAT,), INT16: (FLOAT,)},
        versions={INT8: 2, INT16: 3},
    ),
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
