"""Which cells can feed which, by the shapes, types and quantization of their tensors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from zlib import crc32

import numpy as np

from edgeflare.conform.drafts.cells import Cell, drawn_configuration, drawn_seed
from edgeflare.conform.drafts.draft import FRESH, DraftNode, NodeGraphs, node_fed
from edgeflare.conform.operator_graph import GraphValue

CellPair = tuple[Cell, Cell]
"""A cell, and another that reads its result."""

_SAMPLES = 8
"""Valid models of each cell that are tried. A cell that takes one rank alone meets it among the
results of most others."""


@dataclass(frozen=True, slots=True)
class _Sample:
    """A model of a cell, and its tensors without their constants."""

    node: DraftNode
    operands: tuple[GraphValue, ...]
    result: GraphValue


@cache
def _samples(cell: Cell) -> tuple[_Sample, ...]:
    # Of the names alone, so that what is allowed is the same in every run.
    rng = np.random.default_rng(crc32(" ".join(cell).encode()))
    graphs, found = NodeGraphs(), []
    for _ in range(_SAMPLES):
        configuration = drawn_configuration(cell, rng)
        if configuration is not None:
            node = DraftNode(*cell, configuration, drawn_seed(rng), ())
            operands = graphs.operands(node)
            node = replace(node, sources=(FRESH,) * len(operands))
            found.append(_Sample(node, operands, graphs.result(node)))
    return tuple(found)


@cache
def operand_count(cell: Cell) -> int:
    """Return how many tensors a model of a cell is given, at most."""
    return max((len(sample.operands) for sample in _samples(cell)), default=0)


@cache
def example_pair(first: Cell, second: Cell) -> tuple[DraftNode, DraftNode] | None:
    """Return two nodes, the first of which feeds the second's first operand, or None.

    None where no sample of the one can be made to feed a sample of the other.
    """
    graphs = NodeGraphs()
    readers = [sample for sample in _samples(second) if sample.operands]
    taken = {sample.operands[0].dtype for sample in readers}
    makers = [sample for sample in _samples(first) if sample.result.dtype in taken]
    for at, maker in enumerate(makers):
        # Each result meets two of the readers, in turn.
        for reader in (readers[at % len(readers)], readers[(at + 3) % len(readers)]):
            fed = node_fed(reader.node, {0: maker.result}, graphs)
            if fed is not None:
                return maker.node, replace(fed, sources=(0, *fed.sources[1:]))
    return None


def allowed_pairs(cells: Sequence[Cell]) -> tuple[CellPair, ...]:
    """Return the ordered pairs of cells of which the first can feed the second."""
    return tuple(
        (first, second)
        for first in cells
        for second in cells
        if example_pair(first, second) is not None
    )
