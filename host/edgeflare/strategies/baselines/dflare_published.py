"""DFlare as its published code behaves. For comparison only.

An input is mutated over and over. A mutant is accepted when the distance of the two models' top-1
probabilities *changes*, up or down, or when it shows a state not seen before. Operators whose
mutants were accepted are chosen more often, whatever the last one was.

Code: https://github.com/yqtianust/DFlare (`test_gen_main.py`, mode a), made for the paper that
`dflare` follows.

Differences of the published code from the paper
    1. Seven operators: salt and pepper too (`PublishedSelection`).
    2. The two noises are cast to uint8, truncated and wrapped around, before they are clipped, so
       clipping does nothing (`wrapping_gaussian_noise`, `wrapping_multiplicative_noise`).
    3. Operators are drawn uniformly not once but until the first acceptance. The shuffle (5) does
       that by itself, all ranking values being 0 until then.
    4. The previous operator is looked up by the wrong key and never found, so its rank is always -1
       (`PREVIOUS_RANK`): the choice does not depend on the one before.
    5. Operators of equal ranking value are shuffled (`choose`).
    6. A mutant is accepted when |D - D_best| > 1e-3, decreases too, or when its state is new
       (`PublishedAcceptance`); the best starts as D = 0 and not new, whatever the seed's.
    7. Only new states are stored, the seed's first (`PublishedAcceptance`).
    8. A finding counts as a success of its operator. The counts end with the chain, so this changes
       nothing and is not done here.

Differences from the original
    - Nearest neighbours are exact; the original's come from FLANN's approximate kd-tree.
    - Every draw comes from the chain's generator; the original's mutations are unseeded.
    - A deviation that does not count (a tie, or too weak) is a mutant like any other; to the
      original every deviation counts.
    - A mutant out of the bounds of the run (`--max-linf`, `--max-l2`) is brought back to them; the
      original has none, and `none` turns them off.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from edgeflare.core.goal import Goal
from edgeflare.core.query import Outcome
from edgeflare.strategies.dflare import (
    DISTANCE_TOLERANCE,
    NOVELTY_THRESHOLD,
    SeenStates,
    distance,
    state,
)
from edgeflare.strategies.mutation_loop import AcceptanceCounts, draw_rank, mutation_loop
from edgeflare.strategies.strategy import SearchGenerator, Start, Strategy
from edgeflare.strategies.strategy_parameters import parameter
from edgeflare_operators import MutationOperator

PREVIOUS_RANK = -1


@dataclass(frozen=True)
class DFlarePublished(Strategy):
    """DFlare as its published code behaves; 1e-7 in the ranking value is the original's too."""

    summary = "DFlare as its published code behaves"
    draws_from_pool = False
    needs_paper_operators = True
    reads_other_seeds = frozenset()

    distance_tolerance: float = parameter(
        DISTANCE_TOLERANCE,
        "Change of the distance of top-1 probabilities up to which it counts as unchanged. The"
        " original's.",
        at_least=0.0,
    )
    novelty_threshold: float = parameter(
        NOVELTY_THRESHOLD,
        "Squared L2 distance to all new states so far above which a state is new. The original's.",
        at_least=0.0,
    )

    def search(self, start: Start) -> SearchGenerator:
        """Search as the published code does."""
        acceptance = PublishedAcceptance(
            start.goal, start.outcome, self.distance_tolerance, self.novelty_threshold
        )
        return mutation_loop(
            start, PublishedSelection(start.published_operators, start.rng), acceptance
        )


class PublishedSelection:
    """Departures 1 to 5: which operator comes next."""

    def __init__(self, pool: Sequence[MutationOperator], rng: np.random.Generator) -> None:
        self._pool = pool
        self._rng = rng
        self._counts = AcceptanceCounts(len(self._pool))
        self._last = 0

    def choose(self) -> MutationOperator:
        """Choose the next operator."""
        count = len(self._pool)
        ties = self._rng.random(count)
        ranked = sorted(zip(self._counts.values, ties, range(count), strict=True), reverse=True)
        *_, self._last = ranked[draw_rank(count, PREVIOUS_RANK, self._rng)]
        self._counts.select(self._last)
        return self._pool[self._last]

    def reward(self) -> None:
        """Count the operator last chosen as a success: its mutant was accepted."""
        self._counts.accept(self._last)


class PublishedAcceptance:
    """Departures 6 and 7: which mutants are accepted."""

    def __init__(
        self,
        goal: Goal,
        seed: Outcome,
        tolerance: float = DISTANCE_TOLERANCE,
        novelty_threshold: float = NOVELTY_THRESHOLD,
    ) -> None:
        self._goal = goal
        self._tolerance = tolerance
        self._last = 0.0
        self._seen = SeenStates(novelty_threshold)
        self._seen.add(state(seed, goal))

    def __call__(self, mutant: Outcome) -> bool:
        """Judge a mutant."""
        current = state(mutant, self._goal)
        new = self._seen.is_new(current)
        if new:
            self._seen.add(current)
        now = distance(mutant, self._goal)
        if not new and abs(now - self._last) <= self._tolerance:
            return False
        self._last = now
        return True
