"""What is particular in how the operators of a graph hang together."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Final

from edgeflare.conform.operator_graph import SHARED_NAME, GraphNode, OperatorGraph

VIEWS: Final = ("EXPAND_DIMS", "RESHAPE", "SQUEEZE")
"""Operators whose results runtimes let share the memory of their operands."""


_SHAPING: Final = frozenset(
    {
        *("BROADCAST_TO", "MIRROR_PAD", "PAD", "PADV2", "RESIZE_BILINEAR"),
        *("RESIZE_NEAREST_NEIGHBOR", "SLICE", "STRIDED_SLICE", "TILE"),
    }
)
"""Operators that are there to give a tensor another shape. One that does not may be left out by a
runtime, and what it reads with it."""


ALSO: Final = "also "
"""The beginning of what is said of a finding's other graphs besides how they hang together."""


INVOKED: Final = "invoked "
"""The beginning of what is said of how a graph is invoked."""


def arrangement(graph: OperatorGraph, invocation: str = "") -> tuple[str, ...]:
    """Return how the operators of a graph hang together, in words that stand for conditions.

    Of a graph from which nothing can be left out all of them are needed.

    Args:
        graph: the graph.
        invocation: how it is invoked; empty for its rows in their order.

    """
    asked = (f"{INVOKED}{invocation}",) if invocation else ()
    wired = (
        *(*_outputs(graph), *_reads(graph), *_views(graph)),
        *(*_variables(graph), *_keeping_shapes(graph)),
    )
    return tuple(dict.fromkeys((*wired, *asked)))


def hang_together(graph: OperatorGraph) -> bool:
    """Return whether operators of a graph share a tensor, or one of them is used peculiarly."""
    makers = _makers(graph)
    reads = any(at in makers for node in graph.nodes for at in node.inputs)
    return reads or bool(arrangement(graph))


def own_arrangement(told: Sequence[str]) -> tuple[str, ...]:
    """Return how a finding's least graph hangs together, without what is said of its others.

    Which others a run comes upon differs from run to run.

    Args:
        told: what a finding's document says.

    """
    return tuple(words for words in told if not words.startswith(ALSO))


def _outputs(graph: OperatorGraph) -> Iterator[str]:
    if set(graph.inputs) & set(graph.outputs):
        yield "an input is an output"
    if len(set(graph.outputs)) < len(graph.outputs):
        yield "two outputs are one tensor"
    read = _readers(graph)
    for node in graph.nodes:
        for at in node.outputs:
            if at in graph.outputs and read[at]:
                yield f"the result of {node.operator} is read and is an output"
            if at not in graph.outputs and not read[at]:
                yield f"a result of {node.operator} is read by nothing"


def _reads(graph: OperatorGraph) -> Iterator[str]:
    read, makers = _readers(graph), _makers(graph)
    for node in graph.nodes:
        given = graph.given_to(node)
        if max(Counter(given).values(), default=0) > 1:
            yield f"{node.operator} reads one tensor twice"
        made = Counter(id(makers[at]) for at in set(given) if at in makers)
        if max(made.values(), default=0) > 1:
            yield f"{node.operator} reads two results of one operator"
    for at, value in enumerate(graph.values):
        if value.values is None and read[at] > 1:
            what = f"the result of {makers[at].operator}" if at in makers else "an input"
            yield f"{what} is read by several"
        elif value.values is not None and read[at] > 1:
            yield "a constant is read by several"


def _views(graph: OperatorGraph) -> Iterator[str]:
    makers = _makers(graph)
    for node in graph.nodes:
        maker = makers.get(node.inputs[0]) if node.operator in VIEWS else None
        if maker is not None and maker.operator in VIEWS:
            yield "a view of a view"


def _variables(graph: OperatorGraph) -> Iterator[str]:
    named = [node for node in graph.nodes if SHARED_NAME in node.options]
    forms = Counter(
        (node.options[SHARED_NAME], value.dtype, value.shape)
        for node in named
        for value in graph.results(node)
    )
    if max(forms.values(), default=0) > 1:
        yield "a variable is assigned and read twice"


def _keeping_shapes(graph: OperatorGraph) -> Iterator[str]:
    for node in graph.nodes:
        shapes = [graph.values[at].shape for at in (node.inputs[0], *node.outputs)]
        if node.operator in _SHAPING and len(set(shapes)) == 1:
            yield f"{node.operator} keeps the shape of what it reads"


def _readers(graph: OperatorGraph) -> Counter[int]:
    """Return how many operators read each tensor."""
    return Counter(at for node in graph.nodes for at in set(node.inputs))


def _makers(graph: OperatorGraph) -> dict[int, GraphNode]:
    return {at: node for node in graph.nodes for at in node.outputs}
