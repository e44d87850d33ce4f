"""The time that models may take for their values and their arithmetic, on the slowest device."""

from __future__ import annotations

from collections.abc import Sequence

from edgeflare.conform.execution.kernel_arm import PosedModel
from edgeflare.conform.execution.pack_groups import model_bytes
from edgeflare.conform.graphs.operator_graph import GraphNode, OperatorGraph

_MULTIPLICATIONS_PER_SECOND = 10e6
"""Of plain kernels on an emulated core. Models that are drawn have some 100,000; operators of a
user's model, as they stand, may have a thousand times as many."""

_BYTES_PER_SECOND = 256 * 1024
"""A hundred times what tensors of small models take under QEMU."""


def row_seconds(models: Sequence[PosedModel]) -> float:
    """Return how many seconds one row of some models may take, besides what the smallest take."""
    transfer = sum(map(model_bytes, models)) / _BYTES_PER_SECOND
    return transfer + sum(map(work_seconds, models))


def work_seconds(model: PosedModel) -> float:
    """Return how many seconds one row of a model may take, for its multiplications alone."""
    graph = model.graph
    return sum(_multiplications(graph, node) for node in graph.nodes) / _MULTIPLICATIONS_PER_SECOND


def _multiplications(graph: OperatorGraph, node: GraphNode) -> float:
    """Return about how many there are, rather too many.

    Each place of the result is given a product with all weights; without weights, each value one
    with as many values as the longest dimension has.
    """
    operands = [one for one in graph.operands(node) if one is not None]
    results = sum(one.size for one in graph.results(node))
    weights = max((one.size for one in operands if one.values is not None), default=0)
    channels = max((one.shape[-1] for one in graph.results(node) if one.shape), default=1)
    longest = max((size for one in operands for size in one.shape), default=1)
    return float(max(results * weights / max(channels, 1), results * longest))
