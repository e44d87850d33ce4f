"""What operators have in common that are given one tensor, all else being constants and options."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from typing import Literal

import numpy as np

from edgeflare.conform.operator_graph import GraphValue, Option, Quantization
from edgeflare.conform.specification.activation_tensors import DTYPES
from edgeflare.conform.specification.declared_operator import DeclaredOperator
from edgeflare.conform.specification.model_parts import ConstantOf, Place, quantization_places
from edgeflare.conform.specification.operator_specification import (
    ExactAnswer,
    Operand,
    OperatorReading,
    UnknownOperatorForm,
)
from edgeflare.conform.specification.parameter import (
    Configuration,
    Setting,
    dimensions,
)

ResultQuantization = Literal["own", "operand"] | Mapping[str, Quantization]
"""The quantization of a result: a setting, the operand's, or by type what the operator demands."""

Answers = Callable[[Configuration, Operand, Sequence[GraphValue]], tuple[ExactAnswer, ...]]
"""Exact answers from the settings, the operand and the results."""


def of_same_shape(form: GraphValue, settings: Configuration) -> tuple[GraphValue, ...]:
    """Return one result of the operand's shape, see `OneInputOperator.written`."""
    return (replace(form, shape=dimensions(settings, "shape")),)


@dataclass(frozen=True, eq=False)
class OneInputOperator(DeclaredOperator):
    """An operator of one tensor, all else being constants and options.

    Attributes:
        answers: returns the exact answers; NumPy is silent about NaN and infinities.
        written: returns the results from the dtype and quantization of the first and the settings.
        quantized_result: how its first result is quantized.
        known: returns what conditions may speak of besides parameters.

    """

    answers: Answers
    _: KW_ONLY
    written: Callable[[GraphValue, Configuration], tuple[GraphValue, ...]] = of_same_shape
    quantized_result: ResultQuantization = "own"
    known: Callable[[Configuration], Mapping[str, Setting]] = lambda _: {}

    def places_of(self, type_: str) -> tuple[Place, ...]:
        """Return the places of all parameters of a type."""
        known = super().places_of(type_)
        if self.quantized_result != "own":
            return known
        return (*known, *quantization_places(type_, "output", lambda parts: parts.results[0]))

    def draw(self, type_: str, rng: np.random.Generator) -> Configuration:
        """Return settings at random that fit each other."""
        return self.varied(dict(super().draw(type_, rng)), rng)

    def results(
        self,
        type_: str,
        configuration: Configuration,
        operands: Sequence[GraphValue],  # noqa: ARG002 - whose shapes are settings
    ) -> tuple[GraphValue, ...]:
        """Return the tensors that a valid configuration writes."""
        if not isinstance(self.quantized_result, str):
            form = GraphValue(DTYPES[type_], (), self.quantized_result.get(type_))
        else:
            role = "output" if self.quantized_result == "own" else "input"
            form = self.form(type_, configuration, role)
        return self.written(form, configuration)

    def check(
        self,
        reading: OperatorReading,
        operands: Sequence[GraphValue | None],
        results: Sequence[GraphValue],
    ) -> None:
        """Raise UnknownOperatorForm unless a reading says all of a model."""
        given = [one is not None and one.values is None for one in operands]
        constants = {one.operand for one in self.places if isinstance(one, ConstantOf)}
        if given != [True, *[False] * len(constants)]:
            raise UnknownOperatorForm(
                f"{self.operator} reads other than one tensor and {len(constants)} constants"
            )
        super().check(reading, operands, results)

    def exact(
        self,
        options: Mapping[str, Option],
        operands: Sequence[Operand | None],
        results: Sequence[GraphValue],
    ) -> tuple[ExactAnswer, ...]:
        """Return the exact answers; NaN and infinities are carried through."""
        settings = self.known_settings(options, operands, results)
        (given,) = operands[:1]
        if given is None:
            raise ValueError("no operand")
        with np.errstate(all="ignore"):
            return self.answers(settings, given, results)

    def facts(self, type_: str, configuration: Configuration) -> Mapping[str, Setting]:  # noqa: ARG002
        """Return what a condition may speak of besides parameters."""
        return self.known(configuration)
