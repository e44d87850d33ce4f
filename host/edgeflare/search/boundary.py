"""Boundary bisection: searches between the decision boundaries of the two compared arms.

Two arms that disagree have decision boundaries that do not coincide, and a trigger lies between the
two. The search mutates the seed until the decision changes, bisects between the seed and that
mutant, and follows the boundary from there, held on it by the margin of the first arm, until the
second arm is on its other side. The host answers first; the device is queried where its surrogate
deviates (`surrogates`).

Paper: DFlare (TOSEM 2023) searches for the same inputs by increasing |p_f - p_g|, §3.3. Its choice
of mutation operators, §3.4, is what the ablation `boundary-mh` keeps.

Differences from the original
    Everything but the mutation operators. Mutants are not accepted by fitness but used as
    directions. Margins are differences of scores (logits, or logarithms of probabilities), so that
    a saturated softmax is no plateau.
"""

from __future__ import annotations

from dataclasses import dataclass

from edgeflare.core.goal import Trigger
from edgeflare.search.boundary_parameters import BoundaryParameters
from edgeflare.search.boundary_search import BoundarySearch
from edgeflare.search.operator_selection import MetropolisHastings, Uniform
from edgeflare.search.strategy import QueryGenerator, Start


@dataclass(frozen=True)
class Boundary(BoundaryParameters):
    """Boundary bisection, mutation operators drawn uniformly."""

    summary = "bisect to the decision boundary and follow it"

    def search(self, start: Start) -> QueryGenerator[Trigger | None]:
        """Search by boundary bisection."""
        return BoundarySearch(start, Uniform(start.operators, start.rng), self).run()


@dataclass(frozen=True)
class BoundaryMH(BoundaryParameters):
    """Boundary bisection, mutation operators chosen by Metropolis-Hastings: the ablation."""

    summary = "boundary, operators by Metropolis-Hastings (ablation)"

    def search(self, start: Start) -> QueryGenerator[Trigger | None]:
        """Search by boundary bisection."""
        return BoundarySearch(start, MetropolisHastings(start.operators, start.rng), self).run()
