"""The loop of Algorithm 1 (paper §3.2), with two exchangeable parts.

The last accepted input is mutated and the mutant is queried; the search ends if the mutant triggers
and goes on from it if it is accepted. A `Selection` chooses the next operator, an `Acceptance`
decides which mutants are accepted. The time limit is not here: the campaign stops asking.
"""

from __future__ import annotations

from collections.abc import Callable

from edgeflare.core.goal import Trigger
from edgeflare.core.query import Outcome, Query
from edgeflare.search.mutation import mutated
from edgeflare.search.operator_selection import Selection
from edgeflare.search.strategy import SearchGenerator, Start

Acceptance = Callable[[Outcome], bool]
"""Given the outcome of each non-triggering mutant in turn: whether it becomes the next parent."""


def mutation_loop(start: Start, selection: Selection, accepts: Acceptance) -> SearchGenerator:
    """Return a search that mutates one input over and over.

    Raises:
        UserError: an operator of the user's breaks its promise.

    """
    candidate, names = start.seed, list[str]()
    while True:
        operator = selection.choose()
        mutant = start.bounds.project(mutated(operator, candidate, start.rng), start.seed)
        (outcome,) = yield (Query(mutant, start.goal.needed),)
        kind = start.goal.met(outcome)
        if kind is not None:
            return Trigger(mutant, kind, outcome, (*names, operator.name))
        if accepts(outcome):
            candidate = mutant
            names.append(operator.name)
            selection.reward()
