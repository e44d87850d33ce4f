"""The models that MEMO begins with: parts of the user's model, or drawn ones."""

from __future__ import annotations

from edgeflare.conform.drafts.draft import Draft
from edgeflare.conform.drafts.draft_mutation import MOST_NODES, MutationContext, kept_nodes
from edgeflare.conform.drafts.structure_mutations import added_layers
from edgeflare.conform.drafts.uniform_drawing import drawn_node

DRAWN_SEEDS = 50
"""As many as the pool of the published code holds."""


def model_seeds(model: Draft) -> list[Draft]:
    """Return a model of any length as models of as many operators as mutants have, in order.

    What a part reads of the one before is given to it.
    """
    places = range(len(model.nodes))
    return [kept_nodes(model, places[at : at + MOST_NODES]) for at in places[::MOST_NODES]]


def drawn_seeds(count: int, context: MutationContext) -> list[Draft]:
    """Return models of an operator at random and up to five that follow it.

    Fewer than asked for where no cell has a valid configuration.
    """
    seeds: list[Draft] = []
    cells = context.coverage.cells
    for at in range(count if cells else 0):
        if at % len(cells) == 0:
            order = context.shuffled(cells)
        node = drawn_node(order[at % len(cells)], context.coverage, context.graphs, context.rng)
        if node is not None:
            draft = Draft((node,))
            seeds.append(added_layers(draft, context) or draft)
    return seeds
