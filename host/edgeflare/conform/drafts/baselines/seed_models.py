"""The models that MEMO begins with: parts of the user's model, or drawn ones; and their reduction.

Algorithm 1 of MEMO (§3.2) leaves a model without what it repeats, for it is to be run many times.

Within each block, layers go that repeat one before them and change no shape; then blocks go that
repeat one before them and change no rank. What a layer is, is its cell and the buckets of its
settings; its edges are the cells that feed it.

Differences from the original:

- The paper's blocks are those that the authors of a model named. Here a block ends wherever one
  tensor is all that later layers read, which is what the blocks that the paper describes have in
  common ("all blocks are sequentially connected"). In a chain of layers each is a block.
- Layers behind what is gone follow the tensor that they read now. Where one cannot, the repeated
  part stays.
- The published code makes a new model with the same layers, pairs and inputs, layer by layer
  ("model deduplication"), which is another algorithm than the paper's.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from edgeflare.conform.drafts.baselines.structure_mutations import added_layers
from edgeflare.conform.drafts.cells import Cell
from edgeflare.conform.drafts.coverage import Bucket, node_buckets
from edgeflare.conform.drafts.draft import FRESH, Draft, NodeGraphs, rederived
from edgeflare.conform.drafts.draft_mutation import MOST_NODES, MutationContext, kept_nodes
from edgeflare.conform.drafts.drawing import drawn_node

DRAWN_SEEDS = 50
"""Number of drawn seed models, as many as the pool of the published code holds."""


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


_Layer = tuple[Cell, frozenset[Bucket]]
_Edges = tuple[Cell | None, ...]


def reduced(draft: Draft, graphs: NodeGraphs) -> Draft:
    """Return a draft without repeated layers and blocks.

    Args:
        draft: a draft of any length.
        graphs: builds its nodes.

    """
    return _without_blocks(_without_layers(draft, graphs), graphs)


def blocks(draft: Draft) -> list[range]:
    """Return the places of a draft's nodes, parted where a single tensor leads on."""
    found, begin = [], 0
    for end in range(1, len(draft.nodes) + 1):
        later = {
            source
            for node in draft.nodes[end:]
            for source in node.sources
            if source != FRESH and source < end
        }
        if later <= {end - 1}:
            found.append(range(begin, end))
            begin = end
    return found


def _without_layers(draft: Draft, graphs: NodeGraphs) -> Draft:
    """Reduce each block (lines 5 to 15)."""
    repeated = []
    for block in blocks(draft):
        layers: set[_Layer] = set()
        edges: set[_Edges] = set()
        for at in block:
            layer, feeding = _properties(draft, at)
            if layer in layers and feeding in edges:
                repeated.append(at)
            layers.add(layer)
            edges.add(feeding)
    # From the last: what is gone moves nothing that is still to go.
    for at in reversed(repeated):
        node = draft.nodes[at]
        if node.sources[0] == FRESH:
            continue
        before = graphs.result(draft.nodes[node.sources[0]])
        after = graphs.result(node)
        if (before.dtype, before.shape) == (after.dtype, after.shape):
            draft = _without(draft, range(at, at + 1), node.sources[0], graphs) or draft
    return draft


def _without_blocks(draft: Draft, graphs: NodeGraphs) -> Draft:
    """Remove repeated blocks (lines 16 to 21)."""
    diverse: set[tuple[tuple[_Layer, _Edges], ...]] = set()
    repeated = []
    for block in blocks(draft):
        properties = tuple(_properties(draft, at) for at in block)
        if properties in diverse:
            repeated.append(block)
        diverse.add(properties)
    for block in reversed(repeated):
        if block.start == 0:
            continue
        # All that a block reads of the model is the last result before it.
        before = graphs.result(draft.nodes[block.start - 1])
        after = graphs.result(draft.nodes[block.stop - 1])
        if (before.dtype, len(before.shape)) == (after.dtype, len(after.shape)):
            draft = _without(draft, block, block.start - 1, graphs) or draft
    return draft


def _properties(draft: Draft, at: int) -> tuple[_Layer, _Edges]:
    node = draft.nodes[at]
    feeding = tuple(
        None if source == FRESH else draft.nodes[source].cell for source in node.sources
    )
    return (node.cell, frozenset(node_buckets(node))), feeding


def _without(draft: Draft, gone: range, entry: int, graphs: NodeGraphs) -> Draft | None:
    """Return a draft without some nodes; what read the last of them reads another node."""
    led = tuple(
        replace(
            node,
            sources=tuple(entry if source == gone.stop - 1 else source for source in node.sources),
        )
        for node in draft.nodes
    )
    kept: Sequence[int] = [at for at in range(len(led)) if at not in gone]
    return rederived(kept_nodes(Draft(led), kept).nodes, graphs)
