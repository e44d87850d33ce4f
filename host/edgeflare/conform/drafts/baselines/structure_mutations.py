"""MEMO's mutations of a draft's structure: NLA, LResh, LMerg and LConn.

The paper's §3.3 says what they do to models of Keras.

Differences from the original:

- A layer is a cell, an operator with its type, and fits the tensor before it by its own settings,
  not by padding, cropping or reshaping layers around it, as in the published code: these would be
  most of a model of eight operators. What follows the new layer reads it where it can be made to
  fit, otherwise it stays as it was, and the new layer's result is another output of the model.
- Among cells that serve alike, one is preferred that makes a new pair. The paper has that for LConn
  alone; the published code has it for layers as well.
- A model that would have more than eight operators loses its first ones.
- LConn replaces an operand. In the published code it adds a merging layer before the second.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from edgeflare.conform.drafts.cell_pairs import example_pair, operand_count
from edgeflare.conform.drafts.cells import Cell, drawn_configuration, drawn_seed
from edgeflare.conform.drafts.draft import FRESH, Draft, DraftNode, node_fed, rederived
from edgeflare.conform.drafts.draft_mutation import (
    MutationContext,
    refed,
    reordered,
    with_node,
    without_oldest,
)

RESHAPING = frozenset(
    (
        "BATCH_TO_SPACE_ND",
        "BROADCAST_TO",
        "DEPTH_TO_SPACE",
        "EXPAND_DIMS",
        "MIRROR_PAD",
        "PAD",
        "PADV2",
        "RESHAPE",
        "RESIZE_BILINEAR",
        "RESIZE_NEAREST_NEIGHBOR",
        "SLICE",
        "SPACE_TO_BATCH_ND",
        "SPACE_TO_DEPTH",
        "SQUEEZE",
        "STRIDED_SLICE",
        "TILE",
        "TRANSPOSE",
    )
)
"""Operators whose result has another shape than their operand, and otherwise its values: what
Keras calls reshaping layers, and what TFLite has beside them."""

_MOST_TRIES = 6
"""Places and cells that are tried for one new layer."""


def added_layers(draft: Draft, context: MutationContext) -> Draft | None:
    """Insert one to five layers that were not invoked before (NLA)."""
    return _with_layers(draft, context, context.coverage.cells)


def added_reshaping_layers(draft: Draft, context: MutationContext) -> Draft | None:
    """Insert one to five reshaping layers that were not invoked before (LResh)."""
    pool = [cell for cell in context.coverage.cells if cell[0] in RESHAPING]
    return _with_layers(draft, context, pool)


def merged_layers(draft: Draft, context: MutationContext) -> Draft | None:
    """Add a layer that reads two results of the same type and shape (LMerg)."""
    results = [context.graphs.result(node) for node in draft.nodes]
    pairs = [
        (earlier, later)
        for later, result in enumerate(results)
        for earlier, like in enumerate(results[:later])
        if (like.dtype, like.shape) == (result.dtype, result.shape)
    ]
    if not pairs:
        return None
    pool = [cell for cell in context.coverage.cells if operand_count(cell) > 1]
    for _ in range(_MOST_TRIES):
        first, second = pairs[int(context.rng.integers(len(pairs)))]
        if context.rng.random() < 1 / 2:
            first, second = second, first
        cell = _next_cell(draft.nodes[first].cell, pool, draft, context)
        node = None if cell is None else _unfed(cell, context)
        fed = (
            None
            if node is None
            else node_fed(node, {0: results[first], 1: results[second]}, context.graphs)
        )
        if fed is not None:
            fed = replace(fed, sources=(first, second, *fed.sources[2:]))
            return without_oldest(Draft((*draft.nodes, fed)))
    return None


def connected_layers(draft: Draft, context: MutationContext) -> Draft | None:
    """Feed one layer with another's result, a pair not invoked before if there is one (LConn)."""
    places = [
        (reader, other)
        for reader, first in enumerate(draft.nodes)
        for other, second in enumerate(draft.nodes)
        if reader != other
        and reader not in second.sources
        and second.sources
        and example_pair(first.cell, second.cell) is not None
    ]
    cells = [node.cell for node in draft.nodes]
    # Stable: pairs that are not new stay in a random order behind those that are.
    ordered = sorted(
        context.shuffled(places),
        key=lambda pair: not context.coverage.is_new_pair((cells[pair[0]], cells[pair[1]])),
    )
    for reader, other in ordered[:_MOST_TRIES]:
        operand = 0
        if context.rng.random() < 1 / 4:
            operand = int(context.rng.integers(len(draft.nodes[other].sources)))
        nodes = reordered(refed(draft.nodes, other, operand, reader))
        connected = None if nodes is None else rederived(nodes, context.graphs)
        if connected is not None:
            return connected
    return None


def _with_layers(draft: Draft, context: MutationContext, pool: Sequence[Cell]) -> Draft | None:
    """Insert one to five layers of some cells, each where it fits; None if none does."""
    mutant = draft
    for _ in range(context.change_count()):
        for _ in range(_MOST_TRIES):
            with_layer = _with_layer(mutant, context, pool)
            if with_layer is not None:
                mutant = without_oldest(with_layer)
                break
    return None if mutant is draft else mutant


def _with_layer(draft: Draft, context: MutationContext, pool: Sequence[Cell]) -> Draft | None:
    """Insert one layer behind another, and before one that reads that, if it can be."""
    before = int(context.rng.integers(len(draft.nodes)))
    cell = _next_cell(draft.nodes[before].cell, pool, draft, context)
    node = None if cell is None else _unfed(cell, context)
    if node is None:
        return None
    fed = node_fed(node, {0: context.graphs.result(draft.nodes[before])}, context.graphs)
    if fed is None:
        return None
    at = before + 1
    nodes = with_node(draft, at, replace(fed, sources=(before, *fed.sources[1:])))
    readers = [
        (reader, operand)
        for reader in range(at + 1, len(nodes))
        for operand, source in enumerate(nodes[reader].sources)
        if source == before
    ]
    for reader, operand in context.shuffled(readers)[:1]:
        between = rederived(refed(nodes, reader, operand, at), context.graphs)
        if between is not None:
            return between
    return Draft(nodes)


def _next_cell(
    before: Cell, pool: Sequence[Cell], draft: Draft, context: MutationContext
) -> Cell | None:
    """Return a cell that another can feed.

    One that was never invoked, else one that makes a new pair, else one that the draft lacks.
    """
    coverage = context.coverage
    new = set(coverage.new_cells())
    present = {node.cell for node in draft.nodes}
    lacking = [cell for cell in pool if cell not in present and not coverage.is_refused(cell)]
    ordered = sorted(
        context.shuffled(lacking),
        key=lambda cell: 0 if cell in new else 1 if coverage.is_new_pair((before, cell)) else 2,
    )
    return next((cell for cell in ordered if example_pair(before, cell) is not None), None)


def _unfed(cell: Cell, context: MutationContext) -> DraftNode | None:
    configuration = drawn_configuration(cell, context.rng)
    if configuration is None:
        return None
    node = DraftNode(*cell, configuration, drawn_seed(context.rng), ())
    return replace(node, sources=(FRESH,) * len(context.graphs.operands(node)))
