"""The fewest operators of a failing graph that still fail as all of them do together."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations, pairwise

from edgeflare.conform.drafts.cells import Cell
from edgeflare.conform.drafts.draft import FRESH, Draft
from edgeflare.conform.drafts.draft_mutation import kept_nodes
from edgeflare.conform.drafts.feeding import rederived
from edgeflare.conform.findings.model_shrinking import ROWS, Shrinking
from edgeflare.conform.findings.shrink_candidate import ShrinkCandidate, ShrinkContext
from edgeflare.conform.findings.shrinking_moves import fewer_operators

_MOST_PARTS = 2
"""Parts of one graph that are looked at for the same operators, those that feed each other first.
It may have them several times."""


def fewest_operators(start: ShrinkCandidate, context: ShrinkContext, most_runs: int) -> Shrinking:
    """Leave operators out of a graph that fails, but for two; see `Shrinking`.

    First the pairs of operators of which one feeds the other are tried, since most faults of
    joined operators are of such a pair.

    Args:
        start: fails; of several operators.
        context: makes models and operands, and draws.
        most_runs: models that the device may run; see `joined_runs`.

    """
    best, left = start, most_runs
    wide = context.with_rows(start, ROWS)
    tried, fewer = _parts(wide, context, _pairs(wide.draft)), _without_one(wide, context)
    while tried or fewer:
        if not tried:
            tried, fewer = fewer, []
        allowed = _allowed(tried, left)
        left -= sum(map(joined_runs, allowed))
        fails = (yield allowed) if allowed else []
        smaller = next((one for one, fail in zip(allowed, fails, strict=True) if fail), None)
        tried = []
        if smaller is not None:
            best, fewer = smaller, _without_one(smaller, context)
    return best


def joined_runs(one: ShrinkCandidate) -> int:
    """Return how many models the device runs to try one: its operators, and all of it."""
    return len(one.draft.nodes) + 1


def parts_of_cells(
    one: ShrinkCandidate, cells: Sequence[Cell], context: ShrinkContext
) -> list[ShrinkCandidate]:
    """Return the parts of a graph that have some operators in their order; of many the first few.

    Args:
        one: the graph.
        cells: the operators and their types.
        context: makes models and operands, and draws.

    """
    nodes = one.draft.nodes
    places = [
        several
        for several in combinations(range(len(nodes)), len(cells))
        if [nodes[at].cell for at in several] == list(cells)
    ]
    places.sort(key=lambda several: -_feeding(one.draft, several))
    return _parts(context.with_rows(one, ROWS), context, places[:_MOST_PARTS])


def _feeding(draft: Draft, places: Sequence[int]) -> int:
    """Return how many of some nodes feed the next of them."""
    return sum(before in draft.nodes[after].sources for before, after in pairwise(places))


def _pairs(draft: Draft) -> list[tuple[int, ...]]:
    """Return the nodes of a draft of more than two that feed each other, in twos."""
    if len(draft.nodes) == 2:
        return []
    return [
        (source, at)
        for at, node in enumerate(draft.nodes)
        for source in dict.fromkeys(node.sources)
        if source != FRESH
    ]


def _without_one(one: ShrinkCandidate, context: ShrinkContext) -> list[ShrinkCandidate]:
    """Return what is left of a graph of more than two operators without one of them."""
    made = [move.made(one) for move in fewer_operators(one, context)]
    return [less for less in made if less is not None and len(less.draft.nodes) > 1]


def _parts(
    one: ShrinkCandidate, context: ShrinkContext, places: Sequence[Sequence[int]]
) -> list[ShrinkCandidate]:
    """Return what is left of a graph with some of its nodes, where these can be fed so."""
    drafts = (rederived(kept_nodes(one.draft, kept).nodes, context.graphs) for kept in places)
    return [context.candidate(draft, one) for draft in drafts if draft is not None]


def _allowed(tried: Sequence[ShrinkCandidate], runs: int) -> list[ShrinkCandidate]:
    """Return the first of some candidates that the device may run."""
    found: list[ShrinkCandidate] = []
    for one in tried:
        runs -= joined_runs(one)
        if runs < 0:
            break
        found.append(one)
    return found
