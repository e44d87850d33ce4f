"""The values that operators are given, and how they are drawn."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from edgeflare.conform.operator_graph import GraphValue, Option, Values

Shape = tuple[int, ...]
"""The shape of a tensor."""

Reals = NDArray[np.float64]
"""The values that raw ones stand for."""


@dataclass(frozen=True, slots=True)
class Operand:
    """A tensor that an operator reads, with its values.

    Attributes:
        value: the tensor.
        raw: (*shape) in its dtype.

    """

    value: GraphValue
    raw: Values

    @property
    def real(self) -> Reals:
        """The values that the raw ones stand for, as float64."""
        return np.asarray(self.value.real(self.raw), np.float64)


Operands = Sequence[Operand | None]
"""The operands of an operator in its order, None where one is left out."""

Options = Mapping[str, Option]
"""The options of an operator, by their names in the schema."""

Results = Sequence[GraphValue]
"""The tensors that an operator writes."""

OperandStyle = Literal["uniform", "extreme", "narrow", "special"]
"""How values are drawn: over the whole range; at its ends; from a few neighbouring values; and for
floats also denormals, NaN and infinities."""

OPERAND_STYLES: tuple[OperandStyle, ...] = get_args(OperandStyle)

_LARGEST_REAL = 8.0
"""Largest float that is drawn uniformly: beyond the ranges of all bounded activations."""

_LARGEST_WHOLE = 1000
"""Largest of 32-bit and 64-bit integers that are drawn uniformly."""

_SPECIAL = (0.0, -0.0, 1e-40, -1e-40, 1e38, -1e38, np.inf, -np.inf, np.nan)


def operand_values(value: GraphValue, style: OperandStyle, rng: np.random.Generator) -> Values:
    """Return values for a tensor: (*shape) in its dtype."""
    if value.dtype == "bool":
        return rng.random(value.shape) < (0.5 if style != "narrow" else 0.95)
    if value.dtype.startswith("float"):
        return _floats(value.shape, style, rng).astype(value.dtype)
    known = np.iinfo(value.dtype)
    low, high = int(known.min), int(known.max)
    if high > _LARGEST_WHOLE * 100 and style != "extreme":
        low, high = -_LARGEST_WHOLE, _LARGEST_WHOLE
    if style == "extreme":
        ends = np.array([low, low + 1, 0, high - 1, high], known.dtype)
        return ends[rng.integers(len(ends), size=value.shape)]
    if style == "narrow":
        begin = int(rng.integers(low, high - 3))
        low, high = begin, begin + 3
    return rng.integers(low, high, value.shape, known.dtype, endpoint=True)


def _floats(shape: tuple[int, ...], style: OperandStyle, rng: np.random.Generator) -> Values:
    if style == "extreme":
        return rng.choice([-_LARGEST_REAL, -1.0, 0.0, 1.0, _LARGEST_REAL], shape)
    if style == "narrow":
        return rng.uniform(-_LARGEST_REAL, _LARGEST_REAL) + rng.uniform(0, 0.01, shape)
    values = rng.uniform(-_LARGEST_REAL, _LARGEST_REAL, shape)
    if style == "special":
        # Mostly ordinary values: sums in which everything is NaN show little.
        special = rng.choice(_SPECIAL, shape)
        values = np.where(rng.random(shape) < 1 / 8, special, values)
    return values
