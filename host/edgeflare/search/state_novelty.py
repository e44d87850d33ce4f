"""The states that a chain has seen, and whether another one is new (paper §3.3.2).

A state is what the compared arms answered, their probability vectors one after the other. The paper
asks a nearest-neighbour index; its published code asks FLANN. At the sizes of a chain, up to a few
thousand states of a few dozen numbers, plain numpy is exact and faster: an index must be built anew
as states arrive, while a mutant's nearest state is nearly always among the newest, which are looked
at first (`benchmarks/novelty.py`).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

NEW = 0.5
"""A state is new when its squared L2 distance to every known one is above this.

The paper gives no figure; this is the published code's.
"""

NEWEST = 64
"""So many of the newest states are compared first."""


class SeenStates:
    """A growing set of states, all of one length."""

    def __init__(self) -> None:
        self._rows = np.empty((0, 0))
        self._count = 0

    def is_new(self, state: NDArray[np.float64]) -> bool:
        """Whether no known state is near `state`, of shape (length,)."""
        split = max(0, self._count - NEWEST)
        return _far(self._rows[split : self._count], state) and _far(self._rows[:split], state)

    def add(self, state: NDArray[np.float64]) -> None:
        """Make `state`, of shape (length,), a known one."""
        if self._count == len(self._rows):
            grown = np.empty((max(NEWEST, 2 * self._count), state.size))
            grown[: self._count] = self._rows[: self._count].reshape(self._count, state.size)
            self._rows = grown
        self._rows[self._count] = state
        self._count += 1


def _far(rows: NDArray[np.float64], state: NDArray[np.float64]) -> bool:
    """Whether no row, of shape (rows, length), is near. True where there are no rows.

    Not by a matrix product, which would be a little faster over many rows: its last digit depends
    on the BLAS and its threads, and results here depend on the run seed alone.
    """
    if not len(rows):
        return True
    apart = rows - state
    return bool(np.einsum("ij,ij->i", apart, apart).min() > NEW)
