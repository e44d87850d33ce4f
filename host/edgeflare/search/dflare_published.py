"""DFlare as its published code behaves. For comparison only.

An input is mutated over and over. A mutant is gone on from when the distance of the two models'
top-1 probabilities *changes*, up or down, or when it shows a state not seen before. Operators whose
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
       (`PREVIOUS_RANK`): what was chosen before has no bearing on what comes next.
    5. Operators of equal ranking value are shuffled (`choose`).
    6. A mutant is accepted when |D - D_best| > 1e-3, decreases too, or when its state is new
       (`PublishedAcceptance`); the best starts as D = 0 and not new, whatever the seed's.
    7. Only new states are stored, the seed's first (`PublishedAcceptance`).
    8. A finding counts as a success of its operator. The tally ends with the chain, so this changes
       nothing and is not done here.

Differences from the original
    - Nearest neighbours are exact; the original's come from FLANN's approximate kd-tree.
    - Every draw comes from the chain's generator; the original's mutations are unseeded.
    - A deviation that does not count (a tie, or too weak) is a mutant like any other; to the
      original every deviation counts.
    - A mutant out of the bounds of the run (`--max-linf`, `--max-l2`) is brought back to them; the
      original has none, and `none` turns them off.

Parameters and their reasons
    1e-3 (`CHANGE`), 0.5 (`novelty.NEW`), 1e-7 in the ranking value: the original's.
"""

from __future__ import annotations

import numpy as np

from edgeflare.core.goal import Goal
from edgeflare.core.outcome import Outcome
from edgeflare.search.fitness import distance, state
from edgeflare.search.mutation_loop import walk
from edgeflare.search.operator_pool import image_operators
from edgeflare.search.operator_selection import Tally, draw_rank
from edgeflare.search.state_novelty import SeenStates
from edgeflare.search.strategy import SearchGenerator, Start
from edgeflare_operators import MutationOperator
from edgeflare_operators.image.noise import wrapping_gaussian_noise, wrapping_multiplicative_noise

PREVIOUS_RANK = -1
CHANGE = 1e-3


def dflare_published(start: Start) -> SearchGenerator:
    """Search as the published code does."""
    selection = PublishedSelection(start.rng)
    return walk(start, selection, PublishedAcceptance(start.goal, start.outcome))


class PublishedSelection:
    """Departures 1 to 5: which operator comes next."""

    def __init__(self, rng: np.random.Generator) -> None:
        self._pool = (
            wrapping_gaussian_noise,
            wrapping_multiplicative_noise,
            *image_operators(
                ("salt-and-pepper", "pixel-change", "average-blur", "gaussian-blur", "median-blur")
            ),
        )
        self._rng = rng
        self._tally = Tally(len(self._pool))
        self._last = 0

    def choose(self) -> MutationOperator:
        """Choose the next operator."""
        count = len(self._pool)
        ties = self._rng.random(count)
        ranked = sorted(zip(self._tally.values(), ties, range(count), strict=True), reverse=True)
        *_, self._last = ranked[draw_rank(count, PREVIOUS_RANK, self._rng)]
        self._tally.selected[self._last] += 1
        return self._pool[self._last]

    def reward(self) -> None:
        """Count the operator last chosen as a success: its mutant was accepted."""
        self._tally.accepted[self._last] += 1


class PublishedAcceptance:
    """Departures 6 and 7: which mutants are gone on from."""

    def __init__(self, goal: Goal, seed: Outcome) -> None:
        self._goal = goal
        self._last = 0.0
        self._known = SeenStates()
        self._known.add(state(seed, goal))

    def __call__(self, mutant: Outcome) -> bool:
        """Judge a mutant."""
        current = state(mutant, self._goal)
        new = self._known.is_new(current)
        if new:
            self._known.add(current)
        now = distance(mutant, self._goal)
        if not new and abs(now - self._last) <= CHANGE:
            return False
        self._last = now
        return True
