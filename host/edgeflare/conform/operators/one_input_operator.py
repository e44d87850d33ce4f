"""What operators have in common that are given one tensor, all else being constants and options."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import KW_ONLY, dataclass, replace
from typing import Literal

import numpy as np

from edgeflare.conform.operator_graph import GraphValue, Quantization
from edgeflare.conform.specification.activation_tensors import (
    DTYPES,
    INT8,
    INT16,
    UINT8,
    Operand,
    Operands,
    Options,
    Results,
    UnknownOperatorForm,
)
from edgeflare.conform.specification.exact_answer import ExactAnswer, ExactAnswers
from edgeflare.conform.specification.model_parts import (
    RESULT,
    ConstantOf,
    ModelParts,
    Place,
    quantization_places,
)
from edgeflare.conform.specification.operator_specification import (
    OperatorReading,
    OperatorSpecification,
)
from edgeflare.conform.specification.parameter import Configuration, dimensions

ResultQuantization = Literal["own", "operand"] | Mapping[str, Quantization]
"""The quantization of a result: a setting, the operand's, or by type what the operator demands."""

FROM_0_TO_1 = {
    INT8: Quantization((1 / 256,), -128),
    UINT8: Quantization((1 / 256,), 0),
    INT16: Quantization((1 / 32768,), 0),
}
"""Quantization of results between 0 and 1; int16 has half of its range for them."""

FROM_MINUS_1_TO_1 = {
    INT8: Quantization((1 / 128,), 0),
    UINT8: Quantization((1 / 128,), 128),
    INT16: Quantization((1 / 32768,), 0),
}
"""Quantization of results between -1 and 1."""

Answers = Callable[[Configuration, Operand, GraphValue], ExactAnswer | ExactAnswers]
"""The exact answer, or one for each result, from the settings, the operand and the first result."""


def of_same_shape(form: GraphValue, settings: Configuration) -> tuple[GraphValue, ...]:
    """Return one result of the operand's shape, see `OneInputOperator.written`."""
    return (replace(form, shape=dimensions(settings, "shape")),)


@dataclass(frozen=True, eq=False)
class OneInputOperator(OperatorSpecification):
    """An operator of one tensor, all else being constants and options.

    Attributes:
        answers: returns the exact answers; NumPy is silent about NaN and infinities.
        written: returns the results from the dtype and quantization of the first and the settings.
        quantized_result: how its first result is quantized.

    """

    answers: Answers
    _: KW_ONLY
    written: Callable[[GraphValue, Configuration], tuple[GraphValue, ...]] = of_same_shape
    quantized_result: ResultQuantization = "own"

    def places_of(self, type_: str) -> tuple[Place, ...]:
        """Return the places of all parameters of a type."""
        known = super().places_of(type_)
        if self.quantized_result != "own":
            return known
        return (*known, *quantization_places(type_, output=RESULT))

    def results(self, type_: str, configuration: Configuration, parts: ModelParts) -> Results:
        """Return the tensors that a valid configuration writes, given the operands."""
        del parts  # whose shapes are settings
        if not isinstance(self.quantized_result, str):
            form = GraphValue(DTYPES[type_], (), self.quantized_result.get(type_))
        else:
            role = "output" if self.quantized_result == "own" else "input"
            form = self.form(type_, configuration, role)
        return self.written(form, configuration)

    def check(self, reading: OperatorReading, parts: ModelParts) -> None:
        """Raise UnknownOperatorForm unless a reading says all of a model."""
        given = [at for at, tensor in parts.tensors.items() if tensor.values is None]
        constants = [place.operand for place in self.places if isinstance(place, ConstantOf)]
        if given != [0] or set(parts.tensors) != {0, *constants}:
            raise UnknownOperatorForm(
                f"{self.operator} reads other than one tensor and {len(set(constants))} constants"
            )
        super().check(reading, parts)

    def exact(self, options: Options, operands: Operands, results: Results) -> ExactAnswers:
        """Return the exact answers; NaN and infinities are carried through."""
        settings = self.known_settings(options, operands, results)
        (given,) = operands[:1]
        if given is None:
            raise ValueError("no operand")
        with np.errstate(all="ignore"):
            answers = self.answers(settings, given, results[0])
        return answers if isinstance(answers, tuple) else (answers,)
