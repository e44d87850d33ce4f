"""The range of a tensor that is added to another, where an activation cuts off the sum.

What the activation cuts off needs no steps: the low end of a residual branch may lie far above its
least value if a ReLU follows the sum. So the error is counted behind the activation.
"""

from __future__ import annotations

from itertools import product

import numpy as np
from numpy.typing import NDArray

from edgeflare.models.quantized_range import QuantizedRange

_MOST_PAIRS = 40_000
_SHARES = np.arange(10, 106, 5) / 100
"""Of the values' largest and least one, which are tried as ends of the range."""


def summand_range(
    values: NDArray[np.floating],
    others: NDArray[np.floating],
    clipped_by: tuple[float, float],
    known: QuantizedRange,
) -> QuantizedRange:
    """Return the range of values with the least squared error behind sum and activation.

    Args:
        values: real ones, (n,).
        others: what each is added to, (n,).
        clipped_by: the least and the largest value that the activation leaves.
        known: a range that is kept where no other has less error, or all values are zero.

    """
    stride = -(-len(values) // _MOST_PAIRS)
    first, second = values[::stride].astype(np.float64), others[::stride].astype(np.float64)
    least, largest = min(0.0, first.min()), max(0.0, first.max())
    if least == largest:
        return known
    wanted = np.clip(first + second, *clipped_by)

    def squared_error(tried: QuantizedRange) -> float:
        made = np.clip(tried.nearest(first) + second, *clipped_by)
        return float(((made - wanted) ** 2).sum())

    lows = least * _SHARES if least < 0 else np.zeros(1)
    highs = largest * _SHARES if largest > 0 else np.zeros(1)
    ends = product(lows.tolist(), highs.tolist())
    return min((known, *(QuantizedRange(low, high) for low, high in ends)), key=squared_error)
