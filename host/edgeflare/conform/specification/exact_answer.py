"""What an operator should answer, and how far from it an answer may lie."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

AnswerKind = Literal["bits", "steps", "reals"]
"""How an answer is held to the exact one: "bits", equal as it stands; "steps", a quantized answer,
by the step that the exact real value lies in; "reals", a float, by its distance."""

ACTIVATION_LIMITS: Mapping[str, tuple[float, float]] = {
    "NONE": (-np.inf, np.inf),
    "RELU": (0.0, np.inf),
    "RELU_N1_TO_1": (-1.0, 1.0),
    "RELU6": (0.0, 6.0),
}
"""The limits that fused activations put on real values."""

EPSILON = float(np.finfo(np.float32).eps)
"""The rounding of one float32 operation, relative."""


@dataclass(frozen=True, slots=True)
class ExactAnswer:
    """The right answer of an operator, for one of its results.

    Attributes:
        kind: how an answer is held to it.
        values: (*shape of the result); of "bits" the raw values in the result's dtype, otherwise
            real values as float64, before rounding and saturation to the result's type.
        slack: real units that are allowed besides the rounding of the result, broadcastable with
            the values; such as what float32 sums may lose, or the rounding of a dynamic-range
            input. 0 for "bits".

    """

    kind: AnswerKind
    values: NDArray[Any]
    slack: NDArray[np.float64] = field(default_factory=lambda: np.zeros(()))


ExactAnswers = tuple[ExactAnswer, ...]
"""One for each result."""


def bits(values: NDArray[Any]) -> ExactAnswer:
    """Return an answer that has to be met to the bit."""
    return ExactAnswer("bits", values)


def reals(values: NDArray[Any], slack: NDArray[np.float64] | float = 0.0) -> ExactAnswer:
    """Return an answer that a float has to be near."""
    return ExactAnswer("reals", np.asarray(values, np.float64), np.asarray(slack, np.float64))


def steps(values: NDArray[Any], slack: NDArray[np.float64] | float = 0.0) -> ExactAnswer:
    """Return an answer that a quantized value has to be the nearest step of."""
    return ExactAnswer("steps", np.asarray(values, np.float64), np.asarray(slack, np.float64))


def sum_slack(terms: int, magnitude: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return what a float32 sum of products may lose.

    Args:
        terms: how many products are added.
        magnitude: the sum of their absolute values.

    """
    return (terms + 2) * EPSILON * magnitude
