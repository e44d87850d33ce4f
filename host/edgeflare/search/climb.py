"""Climb: increases the distance of the two compared arms, for tasks without decisions to choose.

Where a model gives values there is no decision boundary to follow, but the distance of the two arms
is known at every input. First mutants of the seed are compared; then the best inputs so far are
changed, most often within one block alone, since a mutation of the whole input nearly always undoes
what made the two arms differ. What kind of change is tried is chosen by how often it helped. The
host answers first; the device is queried where its surrogate deviates (`surrogates`).

Paper: none. DFlare (TOSEM 2023) increases |p_f - p_g|, §3.3, by mutations of the whole input.

Differences from the original
    There is no original.
"""

from __future__ import annotations

from dataclasses import dataclass

from edgeflare.search.distance_climb import DistanceClimb
from edgeflare.search.strategy import SearchGenerator, Start, Strategy
from edgeflare.search.strategy_parameters import parameter


@dataclass(frozen=True)
class Climb(Strategy):
    """Climb the distance of the compared arms."""

    summary = "increase the distance of the outputs, block by block"

    first_mutants: int = parameter(
        60,
        "Mutants of the seed that are compared before the best of them are changed.",
        at_least=1,
    )
    even_changes: int = parameter(
        90,
        "Changes after them that start from each of the elite alike: which of them leads farthest"
        " shows only after some changes.",
        at_least=0,
    )
    longest_mutation: int = parameter(
        3, "Operators that are applied in a row at most, to make a mutant.", at_least=1
    )
    elite: int = parameter(6, "The best inputs so far, which are changed and crossed.", at_least=2)

    def search(self, start: Start) -> SearchGenerator:
        """Search by climbing the distance."""
        climb = DistanceClimb(start, self.elite, self.longest_mutation)
        return climb.run(self.first_mutants, self.even_changes)
