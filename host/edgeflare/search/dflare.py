"""DFlare, exactly as its paper writes it, and the paper's two ablations.

An input is mutated over and over. A mutant is gone on from when it drives the two models' top-1
probabilities apart, or keeps their distance and shows a state not seen before. Operators whose
mutants were accepted are chosen more often.

Paper: Tian, Zhang, Wen, Cheung, Sun, Chen, Sun: "Finding Deviated Behaviors of the Compressed DNN
Models for Image Classifications", TOSEM 2023. Algorithms 1 and 2, §3.2 to §3.4; ablations §5.3.

Differences from the original
    None from the paper's text that we know of. (Its published code is another algorithm:
    `dflare_published`.) f and g are the two arms that the goal compares. Where the paper is silent:

    - The seed is the first state that is observed, so O(seed) = 1 in H(x_max) at the start.
    - A state is new above a squared L2 distance of 0.5 to all before it, as in the published code;
      nearest neighbours are exact, not approximate.
    - O of x_max keeps the value that it had when x_max was accepted, and N_i counts acceptances.
    - Operators of equal ranking value keep the order of the paper's Table 3.
    - The ranges of the operators are those of the published code.
    - A deviation that does not count (a tie, or too weak) is a mutant like any other.
    - A mutant out of the bounds of the run (`--max-linf`, `--max-l2`) is brought back to them; the
      paper has none, and `none` turns them off.

Parameters and their reasons
    delta = 1e-3, epsilon = 1e-7, p = 1 / number of operators: the paper's. The threshold of
    novelty is the published code's, since the paper gives none.
"""

from __future__ import annotations

from functools import partial

from edgeflare.search.fitness import AtLeastAsFit, DistanceAndNovelty, distance
from edgeflare.search.mutation_loop import walk
from edgeflare.search.operator_pool import image_operators
from edgeflare.search.operator_selection import MetropolisHastings, Uniform
from edgeflare.search.strategy import SearchGenerator, Start

TABLE_3 = (
    "pixel-change",
    "gaussian-noise",
    "multiplicative-noise",
    "average-blur",
    "gaussian-blur",
    "median-blur",
)
"""The paper's operators."""


def dflare(start: Start) -> SearchGenerator:
    """Search as the paper's Algorithms 1 and 2 do."""
    selection = MetropolisHastings(image_operators(TABLE_3), start.rng)
    fitness = DistanceAndNovelty(start.goal)
    return walk(start, selection, AtLeastAsFit(fitness, start.outcome))


def dflare_d(start: Start) -> SearchGenerator:
    """Search as the ablation DFlare_D does: H = D, blind to states."""
    selection = MetropolisHastings(image_operators(TABLE_3), start.rng)
    fitness = partial(distance, goal=start.goal)
    return walk(start, selection, AtLeastAsFit(fitness, start.outcome))


def dflare_r(start: Start) -> SearchGenerator:
    """Search as the ablation DFlare_R does: every operator as likely, always."""
    selection = Uniform(image_operators(TABLE_3), start.rng)
    fitness = DistanceAndNovelty(start.goal)
    return walk(start, selection, AtLeastAsFit(fitness, start.outcome))
