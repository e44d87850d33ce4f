"""The states that a chain has seen, and whether another one is new (paper §3.3.2).

A state is the answer of the compared arms: their probability vectors, concatenated. The paper uses
a nearest-neighbour index, its published code FLANN. At the sizes of a chain, up to a few thousand
states of a few dozen numbers, plain numpy is exact and faster: an index must be rebuilt as states
arrive, while a mutant's nearest state is nearly always among the newest, which are compared first
(`benchmarks/novelty.py`).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

NOVELTY_THRESHOLD = 0.5
"""Squared L2 distance to every state seen above which a state is new.

The paper gives no figure; this is the published code's.
"""

NEWEST = 64
"""Number of the newest states, which are compared first."""


class SeenStates:
    """A growing set of states, all of one length."""

    def __init__(self, threshold: float = NOVELTY_THRESHOLD) -> None:
        self._threshold = threshold
        self._rows = np.empty((0, 0))
        self._count = 0

    def is_new(self, state: NDArray[np.float64]) -> bool:
        """Whether no state seen is within the threshold of `state`, of shape (length,)."""
        split = max(0, self._count - NEWEST)
        newest, older = self._rows[split : self._count], self._rows[:split]
        return self._is_apart(newest, state) and self._is_apart(older, state)

    def add(self, state: NDArray[np.float64]) -> None:
        """Add `state`, of shape (length,), to those seen."""
        if self._count == len(self._rows):
            grown = np.empty((max(NEWEST, 2 * self._count), state.size))
            grown[: self._count] = self._rows[: self._count].reshape(self._count, state.size)
            self._rows = grown
        self._rows[self._count] = state
        self._count += 1

    def _is_apart(self, rows: NDArray[np.float64], state: NDArray[np.float64]) -> bool:
        """Whether the state is new to all rows, (rows, length). True where there are no rows.

        This takes no matrix product, which would be a little faster over many rows: its last digit
        depends on the BLAS and its threads, and results here depend on the run seed alone.
        """
        if not len(rows):
            return True
        apart = rows - state
        return bool(np.einsum("ij,ij->i", apart, apart).min() > self._threshold)
