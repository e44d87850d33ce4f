"""How the next mutation operator is chosen (paper §3.4)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np

from edgeflare_operators import MutationOperator


class Selection(Protocol):
    """Chooses operators one after the other, and is rewarded where a mutant was accepted."""

    def choose(self) -> MutationOperator:
        """Choose the next operator."""

    def reward(self) -> None:
        """Count the operator last chosen as a success: its mutant was accepted."""


class Uniform:
    """Every operator as likely, always."""

    def __init__(self, pool: Sequence[MutationOperator], rng: np.random.Generator) -> None:
        self._pool = pool
        self._rng = rng

    def choose(self) -> MutationOperator:
        """Choose the next operator."""
        return self._pool[int(self._rng.integers(len(self._pool)))]

    def reward(self) -> None:
        """Learn nothing."""


class MetropolisHastings:
    """Algorithm 2: prefer operators whose mutants were accepted more often.

    The first operator is uniform. The paper does not say how equal ranking values are ordered; here
    they keep the order of the pool, so that the pool and the generator alone decide.
    """

    def __init__(self, pool: Sequence[MutationOperator], rng: np.random.Generator) -> None:
        self._pool = pool
        self._rng = rng
        self._counts = AcceptanceCounts(len(pool))
        self._last: int | None = None

    def choose(self) -> MutationOperator:
        """Choose the next operator."""
        if self._last is None:
            self._last = int(self._rng.integers(len(self._pool)))
        else:
            values = self._counts.values()
            ranked = sorted(range(len(self._pool)), key=values.__getitem__, reverse=True)
            self._last = ranked[draw_rank(len(ranked), ranked.index(self._last), self._rng)]
        self._counts.selected[self._last] += 1
        return self._pool[self._last]

    def reward(self) -> None:
        """Count the operator last chosen as a success: its mutant was accepted."""
        if self._last is not None:
            self._counts.accepted[self._last] += 1


class AcceptanceCounts:
    """How often each operator of a pool was selected (N_op), and its mutant accepted (N_i)."""

    def __init__(self, size: int) -> None:
        self.selected = [0] * size
        self.accepted = [0] * size

    def values(self) -> list[float]:
        """Return each operator's ranking value v = N_i / (N_op + 1e-7)."""
        return [
            accepted / (selected + 1e-7)
            for accepted, selected in zip(self.accepted, self.selected, strict=True)
        ]


def draw_rank(count: int, previous: int, rng: np.random.Generator) -> int:
    """Draw one of `count` ranks, given the rank of the previous operator (Algorithm 2, lines 4-8).

    Ranks are drawn uniformly until one is accepted, with probability (1 - p)^(rank - previous) and
    p = 1 / count.
    """
    base = 1.0 - 1.0 / count
    while True:
        rank = int(rng.integers(count))
        if rng.random() < base ** (rank - previous):
            return rank
