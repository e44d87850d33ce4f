"""The slope of a function below zero, as a parameter."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from edgeflare.conform.specification.parameter import OperatorParameter, ParameterKind
from edgeflare.conform.specification.settings import Setting

_SPANS = {
    "negative": (-2.0, -0.01),
    "0": (0.0, 0.0),
    "below 1": (0.01, 0.99),
    "1": (1.0, 1.0),
    "above 1": (1.01, 2.0),
}
"""What is drawn, by bucket."""


class Slope(OperatorParameter):
    """A factor of negative values."""

    kind: ParameterKind = "mode"
    unit = ""
    simplest = 0.5
    buckets = tuple(_SPANS)

    def __init__(self, name: str) -> None:
        """Declare a slope."""
        self.name = name

    def bucket(self, setting: Setting) -> str:
        """Return the bucket of a setting."""
        if isinstance(setting, bool) or not isinstance(setting, int | float):
            raise TypeError(f"{self.name} is {setting!r}, no number")
        if setting < 0:
            return "negative"
        return "0" if setting == 0 else _against_1(setting)

    def draw(self, rng: np.random.Generator) -> Setting:
        """Return a setting."""
        low, high = _SPANS[self.buckets[int(rng.integers(len(self.buckets)))]]
        return float(np.float32(rng.uniform(low, high)))

    def simpler(self, setting: Setting) -> Iterator[Setting]:
        """Yield simpler settings."""
        if setting != self.simplest:
            yield self.simplest


def _against_1(setting: float) -> str:
    if setting == 1:
        return "1"
    return "below 1" if setting < 1 else "above 1"
