"""What a mutation of MEMO is, and edits of drafts that several of them make."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np

from edgeflare.conform.drafts.coverage import Coverage
from edgeflare.conform.drafts.draft import FRESH, Draft, DraftNode, NodeGraphs

T = TypeVar("T")

MOST_NODES = 8
"""Operators of a draft."""

_MOST_CHANGES = 5
"""Layers that one mutation adds or changes (§3.3: a random number from 1 to 5)."""


@dataclass(frozen=True, slots=True)
class MutationContext:
    """What mutations draw with.

    Attributes:
        coverage: says what was invoked before.
        graphs: builds nodes.
        rng: every draw.

    """

    coverage: Coverage
    graphs: NodeGraphs
    rng: np.random.Generator

    def shuffled(self, items: Sequence[T]) -> list[T]:
        """Return items in a random order."""
        return [items[at] for at in self.rng.permutation(len(items))]

    def change_count(self) -> int:
        """Return how many layers a mutation adds or changes."""
        return int(self.rng.integers(1, _MOST_CHANGES + 1))


DraftMutation = Callable[[Draft, MutationContext], Draft | None]
"""Returns another draft, each node of which fits what feeds it, or None where there is none."""


def with_node(draft: Draft, at: int, node: DraftNode) -> tuple[DraftNode, ...]:
    """Return a draft's nodes with another before place `at`, which nothing reads yet."""
    moved = (
        replace(each, sources=tuple(source + (source >= at) for source in each.sources))
        for each in draft.nodes
    )
    nodes = list(moved)
    return (*nodes[:at], node, *nodes[at:])


def refed(nodes: Sequence[DraftNode], at: int, operand: int, source: int) -> tuple[DraftNode, ...]:
    """Return nodes of which one reads the result of another, whether it fits or not."""
    sources = list(nodes[at].sources)
    sources[operand] = source
    changed = replace(nodes[at], sources=tuple(sources))
    return (*nodes[:at], changed, *nodes[at + 1 :])


def without_oldest(draft: Draft) -> Draft:
    """Return a draft of at most `MOST_NODES`, without its first nodes.

    What read their results is given tensors instead.
    """
    many = len(draft.nodes) - MOST_NODES
    if many <= 0:
        return draft
    return kept_nodes(draft, range(many, len(draft.nodes)))


def kept_nodes(draft: Draft, kept: Sequence[int]) -> Draft:
    """Return a draft of some of its nodes; what read the results of others is given tensors."""
    places = {old: new for new, old in enumerate(kept)} | {FRESH: FRESH}
    nodes = tuple(
        replace(node, sources=tuple(places.get(source, FRESH) for source in node.sources))
        for node in (draft.nodes[at] for at in kept)
    )
    return Draft(nodes)


def reordered(nodes: Sequence[DraftNode]) -> tuple[DraftNode, ...] | None:
    """Return nodes with each behind what feeds it, or None where they feed each other in a ring."""
    places: dict[int, int] = {FRESH: FRESH}
    order: list[int] = []
    while len(order) < len(nodes):
        ready = [
            at
            for at, node in enumerate(nodes)
            if at not in places and all(source in places for source in node.sources)
        ]
        if not ready:
            return None
        places[ready[0]] = len(order)
        order.append(ready[0])
    return tuple(
        replace(node, sources=tuple(places[source] for source in node.sources))
        for node in (nodes[at] for at in order)
    )
