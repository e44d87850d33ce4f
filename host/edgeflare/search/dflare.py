"""DFlare, exactly as its paper writes it, and the paper's two ablations.

An input is mutated over and over. A mutant is accepted when it increases the distance of the two
models' top-1 probabilities, or keeps it and shows a state not seen before. Operators whose mutants
were accepted are chosen more often.

Paper: Tian, Zhang, Wen, Cheung, Sun, Chen, Sun: "Finding Deviated Behaviors of the Compressed DNN
Models for Image Classifications", TOSEM 2023. Algorithms 1 and 2, §3.2 to §3.4; ablations §5.3.

Differences from the original
    None from the paper's text that we know of. (Its published code is another algorithm:
    `dflare_published`.) f and g are the two arms that the goal compares. Where the paper is silent:

    - The seed is the first state that is seen, so O(seed) = 1 in H(x_max) at the start.
    - A state is new above a squared L2 distance of 0.5 to all before it, as in the published code;
      nearest neighbours are exact, not approximate.
    - O of x_max keeps the value that it had when x_max was accepted, and N_i counts acceptances.
    - Operators of equal ranking value keep the order of the paper's Table 3.
    - The ranges of the operators are those of the published code.
    - A deviation that does not count (a tie, or too weak) is a mutant like any other.
    - A mutant out of the bounds of the run (`--max-linf`, `--max-l2`) is brought back to them; the
      paper has none, and `none` turns them off.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from edgeflare.search.fitness import (
    DISTANCE_TOLERANCE,
    NOVELTY_THRESHOLD,
    AtLeastAsFit,
    DistanceAndNovelty,
    distance,
)
from edgeflare.search.mutation_loop import mutation_loop
from edgeflare.search.operator_selection import MetropolisHastings, Uniform
from edgeflare.search.strategy import SearchGenerator, Start, Strategy
from edgeflare.search.strategy_parameters import parameter


@dataclass(frozen=True)
class NoveltyParameters(Strategy):
    """The parameters of fitness by distance and novelty."""

    distance_tolerance: float = parameter(
        DISTANCE_TOLERANCE,
        "Delta of H = D / delta + O: distances of top-1 probabilities closer than this count as"
        " equal, and novelty decides. The paper's.",
        above=0.0,
    )
    novelty_threshold: float = parameter(
        NOVELTY_THRESHOLD,
        "Squared L2 distance to all states seen above which a state is new. The published code's,"
        " since the paper gives none.",
        at_least=0.0,
    )

    def acceptance(self, start: Start) -> AtLeastAsFit:
        """Return the acceptance of mutants by H."""
        fitness = DistanceAndNovelty(start.goal, self.distance_tolerance, self.novelty_threshold)
        return AtLeastAsFit(fitness, start.outcome)


@dataclass(frozen=True)
class DFlare(NoveltyParameters):
    """DFlare, Algorithms 1 and 2; p = 1 / number of operators."""

    summary = "DFlare, Algorithms 1 and 2 as the paper writes them"
    draws_from_pool = False
    needs_paper_operators = True
    reads_other_seeds = frozenset()

    def search(self, start: Start) -> SearchGenerator:
        """Search as the paper's Algorithms 1 and 2 do."""
        selection = MetropolisHastings(start.paper_operators, start.rng)
        return mutation_loop(start, selection, self.acceptance(start))


@dataclass(frozen=True)
class DFlareD(Strategy):
    """The ablation DFlare_D: H = D, without state novelty."""

    summary = "DFlare without state novelty (the paper's ablation)"
    draws_from_pool = False
    needs_paper_operators = True
    reads_other_seeds = frozenset()

    def search(self, start: Start) -> SearchGenerator:
        """Search as the paper's ablation does."""
        selection = MetropolisHastings(start.paper_operators, start.rng)
        fitness = partial(distance, goal=start.goal)
        return mutation_loop(start, selection, AtLeastAsFit(fitness, start.outcome))


@dataclass(frozen=True)
class DFlareR(NoveltyParameters):
    """The ablation DFlare_R: operators drawn uniformly."""

    summary = "DFlare with operators drawn uniformly (the paper's ablation)"
    draws_from_pool = False
    needs_paper_operators = True
    reads_other_seeds = frozenset()

    def search(self, start: Start) -> SearchGenerator:
        """Search as the paper's ablation does."""
        selection = Uniform(start.paper_operators, start.rng)
        return mutation_loop(start, selection, self.acceptance(start))
