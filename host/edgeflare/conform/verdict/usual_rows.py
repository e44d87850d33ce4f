"""Which rows of operands are usual numbers. What kernels make of others is not laid down."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from edgeflare.conform.graphs.operator_graph import OperatorGraph, Values

_LARGEST = 1e15
"""A float32 beyond it may overflow where it is squared and summed."""

_TINIEST = float(np.finfo(np.float32).tiny)


def usual_rows(graph: OperatorGraph, operands: Sequence[Values], rows: int) -> NDArray[np.bool_]:
    """Return the rows without NaN, infinities, denormals and numbers near them, (rows).

    No row of a model is usual in which a tensor has no values.

    Args:
        graph: the model.
        operands: one array for each of its inputs, (rows, *shape) in its dtype.
        rows: how many there are.

    """
    usual = np.full(rows, all(value.size for value in graph.values))
    for one in operands:
        if one.dtype.kind == "f":
            size = np.abs(one.reshape(rows, -1))
            usual &= np.all((size == 0) | ((size >= _TINIEST) & (size <= _LARGEST)), axis=1)
    return usual
