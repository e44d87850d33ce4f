"""The loop of Algorithm 1 (paper §3.2), its two parts left open.

Mutate the last accepted input, ask about the mutant, end if it triggers, keep it if it is accepted,
go on. *Which operator comes next* is one part, a `Selection`; *which mutants are accepted* is the
other, an `Acceptance`. The time limit is not here: whoever asks may stop asking.
"""

from __future__ import annotations

from collections.abc import Callable

from edgeflare.core.outcome import Outcome
from edgeflare.core.query import Query
from edgeflare.core.trigger import Trigger
from edgeflare.search.mutation import mutated
from edgeflare.search.operator_selection import Selection
from edgeflare.search.strategy import SearchGenerator, Start

Acceptance = Callable[[Outcome], bool]
"""Told the outcome of each non-triggering mutant in turn: whether to go on from that mutant."""


def walk(start: Start, selection: Selection, accepts: Acceptance) -> SearchGenerator:
    """Tell the story of a search that mutates one input over and over.

    Raises:
        UserError: an operator of the user's breaks its promise.

    """
    image, trail = start.image, list[str]()
    while True:
        operator = selection.choose()
        mutant = start.bounds.project(mutated(operator, image, start.rng), start.image)
        (outcome,) = yield (Query(mutant, start.goal.needed),)
        kind = start.goal.met(outcome)
        if kind is not None:
            return Trigger(mutant, kind, outcome, (*trail, operator.name))
        if accepts(outcome):
            image = mutant
            trail.append(operator.name)
            selection.reward()
