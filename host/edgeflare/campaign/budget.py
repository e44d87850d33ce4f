"""How the campaign's queries are shared out over its chains.

A bound on all queries together must hold exactly, and yet the results must not depend on which
chains happened to run first. So the bound is given out in passes: every chain may spend an equal
allowance; what the chains that ended left over is shared out equally among the others in the next
pass, until a share is less than one query.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Spent:
    """What a chain has spent, and whether it has ended."""

    queries: int
    ended: bool


def first_allowance(chains: int, max_queries: int, total_queries: int | None) -> int:
    """Return the queries that each chain may spend in the first pass."""
    if total_queries is None or chains == 0:
        return max_queries
    return min(max_queries, total_queries // chains)


def next_allowance(
    allowance: int, spent: Iterable[Spent], max_queries: int, total_queries: int | None
) -> int | None:
    """Return what each unended chain may have spent by the end of the next pass.

    Args:
        allowance: what each chain could spend by the end of the pass that is over.
        spent: of every chain. Chains that were already ended in a later pass (in a run that is
            resumed) count as unended here if they spent more than the allowance.
        max_queries: bound for one chain.
        total_queries: bound for all chains together.

    Returns:
        The allowance of the next pass, or None if there is none.

    """
    if total_queries is None or allowance >= max_queries:
        return None
    used = 0
    waiting = 0
    for chain in spent:
        if chain.ended and chain.queries <= allowance:
            used += chain.queries
        else:
            waiting += 1
    if waiting == 0:
        return None
    # Of what the ended ones left, not of what is unspent: a chain that asks several queries at once
    # may still have some of its allowance, which must not be given out twice.
    following = min(max_queries, (total_queries - used) // waiting)
    return following if following > allowance else None
