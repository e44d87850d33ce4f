"""The operators whose answers may lie farther from the exact ones than others', each with why."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

USUAL_STEPS = 1.0
"""Steps of quantization that an answer may be off: any rounding, of an argument that is known to
about half a step."""

USUAL_ULP = 4.0
"""Units in the last place that a float may be off besides what its sums lose."""

USUAL_MEAN = 0.1
"""Steps that quantized answers may be off on average. Rounding to the nearest is off by nothing,
truncation by half a step."""


@dataclass(frozen=True, slots=True)
class Allowance:
    """How far from the exact answers of an operator an answer may lie.

    Attributes:
        reason: why these figures are not the usual ones.
        steps: of quantization, for one value.
        ulp: of float32, for one value, besides the exact answer's slack.
        mean: steps of quantization, for the mean of a model's values.

    """

    reason: str
    steps: float = USUAL_STEPS
    ulp: float = USUAL_ULP
    mean: float = USUAL_MEAN


_USUAL = Allowance("")

EXCEPTIONS: Mapping[tuple[str, str], Allowance] = {}
"""Allowances by operator and type. What one kernel set alone needs belongs in no exception: it is
a deviation."""


def allowance(operator: str, type_: str) -> Allowance:
    """Return how far from the exact answers of an operator the answers of a type may lie."""
    return EXCEPTIONS.get((operator, type_), _USUAL)
