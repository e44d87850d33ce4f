"""The search that knows nothing: every operator as likely, every mutant accepted.

The input drifts ever further from the seed until it happens to trigger. It is the yardstick of
every guided search, and it draws from the run's operator pool, a user's own too. DFlare's
paper has no such baseline; its §5.3.2 makes the choice uniform but keeps the fitness.

Differences from the original
    There is no original.

Parameters and their reasons
    None to choose.
"""

from __future__ import annotations

from edgeflare.core.outcome import Outcome
from edgeflare.search.mutation_loop import walk
from edgeflare.search.operator_selection import Uniform
from edgeflare.search.strategy import SearchGenerator, Start


def random_walk(start: Start) -> SearchGenerator:
    """Search by mutating at random."""
    return walk(start, Uniform(start.operators, start.rng), accept)


def accept(_mutant: Outcome) -> bool:
    """Accept the mutant, whatever its outcome."""
    return True
