"""Random walk: every mutation operator is equally likely, and every mutant is accepted.

The input moves ever farther from the seed until it happens to trigger. It is the baseline of every
guided search, and it draws from the operator pool of the run.
DFlare's paper has no such baseline; its §5.3.2 makes the choice uniform but keeps the fitness.

Differences from the original
    There is no original.
"""

from __future__ import annotations

from dataclasses import dataclass

from edgeflare.core.query import Outcome
from edgeflare.strategies.mutation_loop import Uniform, mutation_loop
from edgeflare.strategies.strategy import SearchGenerator, Start, Strategy


@dataclass(frozen=True)
class RandomWalk(Strategy):
    """Random walk."""

    summary = "every operator as likely, every mutant accepted"
    reads_other_seeds = frozenset()

    def search(self, start: Start) -> SearchGenerator:
        """Search by mutating at random."""
        return mutation_loop(start, Uniform(start.operators, start.rng), accept_all)


def accept_all(_mutant: Outcome) -> bool:
    """Accept the mutant, whatever its outcome."""
    return True
