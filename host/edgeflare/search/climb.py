"""Climb: increases the distance of the two compared arms, for tasks without decisions to choose.

Where a model gives values there is no decision boundary to follow, but the distance of the two arms
is known at every input. First changes of the seed are compared; then the best inputs so far are
changed. A change is a mutation by the operators of the run, or a wave in one block: gradients of
models lie mostly in low frequencies (`refining.gradient_estimate`), so a wave moves their outputs
farther than noise of its length. Most changes are of one block alone, since a change of the whole
input nearly always undoes what made the two arms differ. What kind of change is tried is chosen by
how often it helped. The host answers first; the device is queried where its surrogate deviates
(`surrogates`).

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

    summary = "increase the distance of the outputs, by waves and mutations of blocks"
    reads_other_seeds = frozenset()

    first_mutants: int = parameter(
        30,
        "Changes of the seed that are compared before the best of them are changed further:"
        " mutations and waves in turns.",
        at_least=1,
    )
    longest_mutation: int = parameter(
        3, "Operators that are applied in a row at most, to make a mutant.", at_least=1
    )
    elite: int = parameter(4, "The best inputs so far, which are changed and crossed.", at_least=2)

    def search(self, start: Start) -> SearchGenerator:
        """Search by climbing the distance."""
        climb = DistanceClimb(start, self.elite, self.longest_mutation)
        return climb.run(self.first_mutants)
