"""The zero point of a tensor whose type is a parameter too."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from edgeflare.conform.specification.parameter import OperatorParameter, ParameterKind
from edgeflare.conform.specification.settings import Setting

_ENDS = (-128, 0, 127, 128, 255)
"""The ends and the middles of 8-bit types, each a bucket of its own."""


class ConvertedZeroPoint(OperatorParameter):
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
