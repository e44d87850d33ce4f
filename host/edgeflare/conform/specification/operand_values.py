"""Values to give to operators."""

from __future__ import annotations

from typing import Literal, get_args

import numpy as np

from edgeflare.conform.operator_graph import GraphValue, Values

OperandStyle = Literal["uniform", "extreme", "narrow", "special"]
"""How values are drawn: over the whole range; at its ends; from a few neighbouring values; and for
floats also denormals, NaN and infinities."""

OPERAND_STYLES: tuple[OperandStyle, ...] = get_args(OperandStyle)

_LARGEST_REAL = 8.0
"""Of floats that are drawn uniformly: beyond the ranges of all bounded activations."""

_LARGEST_WHOLE = 1000
"""Of 32-bit and 64-bit integers that are drawn uniformly."""

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
