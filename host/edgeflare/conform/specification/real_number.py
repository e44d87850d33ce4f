"""A parameter that is a positive number, such as the factor of a softmax's exponents."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from edgeflare.conform.specification.parameter import OperatorParameter, ParameterKind
from edgeflare.conform.specification.settings import Setting


class RealNumber(OperatorParameter):
    """A number above zero, as float32 has it; what is usual, what is below and above it."""

    kind: ParameterKind = "mode"
    unit = ""

    def __init__(self, name: str, low: float, usual: float, high: float) -> None:
        """Declare a number that is mostly `usual`, else drawn from `low` to `high`."""
        self.name, self.simplest = name, float(np.float32(usual))
        self._usual, self._low, self._high = self.simplest, low, high
        self.buckets = (f"{usual:g}", f"below {usual:g}", f"above {usual:g}")

    def bucket(self, setting: Setting) -> str:
        """Return the bucket of a setting."""
        if not isinstance(setting, int | float):
            raise TypeError(f"{setting!r} is no number")
        # Models that a user brings may be beyond what is drawn.
        if not 0 < setting < np.inf:
            raise ValueError(f"{self.name} {setting}")
        if setting == self._usual:
            return self.buckets[0]
        return self.buckets[1 if setting < self._usual else 2]

    def draw(self, rng: np.random.Generator) -> Setting:
        """Return a setting."""
        place = int(rng.integers(3))
        if place == 0:
            return self._usual
        low, high = (self._low, self._usual) if place == 1 else (self._usual, self._high)
        return float(np.float32(np.exp(rng.uniform(np.log(low), np.log(high)))))

    def simpler(self, setting: Setting) -> Iterator[Setting]:
        """Yield simpler settings."""
        if setting != self.simplest:
            yield self.simplest
