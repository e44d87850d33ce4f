"""An operator of which each result is made of several values of one tensor."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import KW_ONLY, dataclass

import numpy as np

from edgeflare.conform.operator_graph import GraphValue
from edgeflare.conform.operators.one_input_operator import OneInputOperator
from edgeflare.conform.specification.activation_tensors import UnknownOperatorForm
from edgeflare.conform.specification.model_parts import ModelParts, ShapeOf
from edgeflare.conform.specification.operator_specification import OperatorReading
from edgeflare.conform.specification.parameter import Configuration, Dimensions, Setting, number

SHAPE = ShapeOf(Dimensions("shape", (1, 5), most_values=1000))

_LEAST_SCALE, _GREATEST_SCALE = 2.0**-120, 2.0**120


@dataclass(frozen=True, eq=False)
class AggregateOperator(OneInputOperator):
    """An operator of which each result is made of several values of one tensor.

    Attributes:
        gain: returns how far results spread, as a multiple of how far the operand does.

    """

    _: KW_ONLY
    gain: Callable[[Configuration, np.random.Generator], float] = lambda *_: 1.0

    def draw(self, type_: str, rng: np.random.Generator) -> Configuration:
        """Return settings at random that fit each other."""
        drawn = dict(super().draw(type_, rng))
        if "output_scale" in drawn:
            wanted = number(drawn, "input_scale") * self.gain(drawn, rng)
            # Mostly over the whole range, at times saturated or far too coarse.
            octaves = (rng.uniform(-1, 1), rng.uniform(-5, 0), rng.uniform(0, 5))
            exponent = octaves[int(rng.choice(3, p=(0.7, 0.2, 0.1)))]
            drawn["output_scale"] = as_scale(wanted * 2.0**exponent)
        return drawn

    def check(self, reading: OperatorReading, parts: ModelParts) -> None:
        """Raise UnknownOperatorForm unless a reading is valid and says all of a model."""
        if (why := self.invalid(reading.type, reading.configuration)) is not None:
            raise UnknownOperatorForm(why)
        super().check(reading, parts)

    def with_input(
        self, type_: str, configuration: Configuration, value: GraphValue
    ) -> Configuration | None:
        """Return the configuration near another that reads a tensor."""
        found = super().with_input(type_, configuration, value)
        if found is None or "output_scale" not in found:
            return found
        # Results grow as operands do.
        ratio = number(found, "input_scale") / number(configuration, "input_scale")
        return {**found, "output_scale": as_scale(number(found, "output_scale") * ratio)}

    def facts(self, type_: str, configuration: Configuration) -> Mapping[str, Setting]:
        """Return the number of dimensions and values, and the size of the last dimension."""
        parts = self.parts(type_, configuration)
        given, result = parts.tensors[0], self.results(type_, configuration, parts)[0]
        return {
            "rank": len(given.shape),
            "last_dimension": given.shape[-1] if given.shape else 1,
            "input_size": given.size,
            "output_size": result.size,
            **self.known(configuration),
        }


def as_scale(wanted: float) -> float:
    """Return the scale nearest to a number that float32 has."""
    return float(np.float32(np.clip(wanted, _LEAST_SCALE, _GREATEST_SCALE)))
