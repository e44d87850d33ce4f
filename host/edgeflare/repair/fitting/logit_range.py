"""The range of logits that keeps the probabilities of a softmax best.

A softmax does not see a shift of all its logits, and hardly those far below the best one. So the
range need not have zero in it, nor the least logits: its ends are chosen for the least squared
error of the probabilities.
"""

from __future__ import annotations

from itertools import product

import numpy as np
from numpy.typing import NDArray

from edgeflare.models.quantized_range import QuantizedRange
from edgeflare.tasks.classification import softmax

Real = NDArray[np.float64]

_HEADROOM = 0.05
"""How far above the largest logit a range reaches at most, as a share of what all logits span."""

_ENDS = 16
"""How many lower and upper ends are tried."""

_MOST_ROWS = 4000
"""Logits of so many inputs, or pixels of inputs, are enough to choose by."""


def logit_range(logits: NDArray[np.floating]) -> QuantizedRange | None:
    """Return the range, which may lie above or below zero; None where all logits are alike.

    Args:
        logits: the original's, (..., classes), two classes at least.

    """
    rows = logits.reshape(-1, logits.shape[-1]).astype(np.float64)
    rows = rows[:: -(-len(rows) // _MOST_ROWS)]
    ordered = np.sort(rows, axis=-1)
    best, runner_up = ordered[:, -1], ordered[:, -2]
    largest = float(best.max())
    largest += _HEADROOM * (largest - float(ordered[:, 0].min()))
    lows = np.linspace(ordered[:, 0].min(), runner_up.min(), _ENDS)
    highs = np.linspace(max(runner_up.max(), lows[-1]), largest, _ENDS)
    ends = product(lows.tolist(), highs.tolist())
    tried = [QuantizedRange(low, high) for low, high in ends if low < high]
    if not tried:
        return None
    wanted = softmax(rows)

    def squared_error(one: QuantizedRange) -> float:
        step = (one.high - one.low) / 255
        rounded = one.low + step * np.clip(np.round((rows - one.low) / step), 0, 255)
        return float(((softmax(rounded) - wanted) ** 2).sum())

    return min(tried, key=squared_error)
