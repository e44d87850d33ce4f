"""Faults of graphs: a buffer that is reused too early, an output that is taken for a temporary.

Each changes what a graph answers that has its arrangement, never what an operator answers alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from edgeflare.conform.execution.kernel_arm import ModelAnswer, PosedModel, RunFailure, Turns
from edgeflare.conform.graphs.graph_arrangement import VIEWS
from edgeflare.conform.operator_graph import GraphNode, OperatorGraph, Values

TYPES = ("float32", "int8")

OPERATORS = (
    *("ADD", "AVERAGE_POOL_2D", "CONCATENATION", "CONV_2D", "DEPTHWISE_CONV_2D", "LOGISTIC"),
    *("MAXIMUM", "MAX_POOL_2D", "MEAN", "MUL", "PAD", "RELU", "SLICE", "SUB", "SUM", "TANH"),
    *("TRANSPOSE", "LEAKY_RELU", "REDUCE_MIN", "SQUARED_DIFFERENCE", "TILE"),
)
ELEMENTWISE = ("ADD", "MAXIMUM", "MINIMUM", "MUL", "SUB")
SPLITTING = ("SPLIT", "SPLIT_V", "TOPK_V2", "UNPACK")

KEEPING: dict[str, Turns] = {"kept shapes": "shapes", "kept signature": "signatures"}
"""Kinds that show only where a graph takes turns, and how it has to: the operator `first` computes
as in the turn before."""

Kind = Callable[["GraphFault", OperatorGraph], Iterator[int]]
"""Yields the tensors of a graph that are wrong by a fault."""


@dataclass(frozen=True)
class GraphFault:
    """A fault that was planted.

    Attributes:
        kind: a name of `KINDS` or `KEEPING`.
        type: the type of its operators.
        first: an operator, in its order.
        second: the one that reads its result; empty where there is none.

    """

    kind: str
    type: str
    first: str
    second: str

    def is_said(self, names: Sequence[str], arrangement: Sequence[str]) -> bool:
        """Return whether a finding says what was planted."""
        said = " ".join(arrangement)
        wanted = {
            "output": f"the result of {self.first} is read and is an output",
            "twice": f"{self.first} reads one tensor twice",
            "two results": f"{self.second} reads two results of one operator",
            "unread": f"a result of {self.first} is read by nothing",
            "input": "an input is an output",
            "double": "two outputs are one tensor",
            "several": f"the result of {self.first} is read by several",
            "views": "a view of a view",
            "kept shapes": "invoked in two shapes in turn",
            "kept signature": "invoked by two signatures in turn",
        }.get(self.kind, "")
        own = [one for one in (self.first, self.second) if one and self.kind not in _ANY]
        rest = [one for one in names if one not in VIEWS]
        most = {"three": 3, "several": 3, "views": 2, "input": 1, "double": 1}
        return (
            wanted in said and set(own) <= set(rest) and len(rest) <= most.get(self.kind, len(own))
        )


_ANY = ("input", "double")
"""Kinds that have nothing to do with operators."""


def _edges(fault: GraphFault, graph: OperatorGraph) -> Iterator[tuple[GraphNode, GraphNode]]:
    for node in graph.nodes:
        for reader in graph.nodes:
            named = (node.operator, reader.operator) == (fault.first, fault.second)
            if named and set(node.outputs) & set(reader.inputs):
                yield node, reader


def _after(graph: OperatorGraph, tensors: Sequence[int]) -> Iterator[int]:
    """Yield tensors, and all that follows from them."""
    reached = set(tensors)
    for node in graph.nodes:
        if reached & set(node.inputs):
            reached |= set(node.outputs)
    yield from reached


def _output(fault: GraphFault, graph: OperatorGraph) -> Iterator[int]:
    for node, _ in _edges(fault, graph):
        yield from set(node.outputs) & set(graph.outputs)


def _fused(fault: GraphFault, graph: OperatorGraph) -> Iterator[int]:
    for node, reader in _edges(fault, graph):
        if not set(node.outputs) & set(graph.outputs):
            yield from _after(graph, reader.outputs)


def _three(fault: GraphFault, graph: OperatorGraph) -> Iterator[int]:
    if len(graph.nodes) > 2:
        for _, reader in _edges(fault, graph):
            yield from _after(graph, reader.outputs)


def _twice(fault: GraphFault, graph: OperatorGraph) -> Iterator[int]:
    for node in graph.nodes:
        if node.operator == fault.first and len(set(node.inputs[:2])) == 1 < len(node.inputs):
            yield from _after(graph, node.outputs)


def _two_results(fault: GraphFault, graph: OperatorGraph) -> Iterator[int]:
    for node in graph.nodes:
        for reader in graph.nodes:
            both = set(node.outputs) & set(reader.inputs)
            if len(both) > 1 and (node.operator, reader.operator) == (fault.first, fault.second):
                yield from _after(graph, reader.outputs)


def _unread(fault: GraphFault, graph: OperatorGraph) -> Iterator[int]:
    read = {at for node in graph.nodes for at in node.inputs} | set(graph.outputs)
    for node in graph.nodes:
        if node.operator == fault.first and set(node.outputs) - read:
            yield from graph.outputs


def _input(_: GraphFault, graph: OperatorGraph) -> Iterator[int]:
    yield from set(graph.inputs) & set(graph.outputs)


def _double(_: GraphFault, graph: OperatorGraph) -> Iterator[int]:
    yield from (at for at in graph.outputs if graph.outputs.count(at) > 1)


def _several(fault: GraphFault, graph: OperatorGraph) -> Iterator[int]:
    for node, reader in _edges(fault, graph):
        readers = [one for one in graph.nodes if set(node.outputs) & set(one.inputs)]
        if len(readers) > 1:
            yield from _after(graph, reader.outputs)


def _views(fault: GraphFault, graph: OperatorGraph) -> Iterator[int]:
    """Yield what reads the first view of a view over which an operator has written."""
    makers = {at: node for node in graph.nodes for at in node.outputs}
    for place, node in enumerate(graph.nodes):
        second = makers.get(node.inputs[0])
        if node.operator != fault.first or second is None or second.operator not in VIEWS:
            continue
        first = second.inputs[0]
        if first in makers and makers[first].operator in VIEWS:
            for later in graph.nodes[place + 1 :]:
                if first in later.inputs:
                    yield from _after(graph, later.outputs)


def _kept(fault: GraphFault, graph: OperatorGraph) -> Iterator[int]:
    for node in graph.nodes:
        if node.operator == fault.first:
            yield from _after(graph, node.outputs)


KINDS: dict[str, tuple[Kind, tuple[str, ...], tuple[str, ...]]] = {
    "output": (_output, OPERATORS, OPERATORS),
    "fused": (_fused, OPERATORS, OPERATORS),
    "twice": (_twice, ELEMENTWISE, ("",)),
    "two results": (_two_results, SPLITTING[:2], ELEMENTWISE),
    "unread": (_unread, SPLITTING, ("",)),
    "input": (_input, ("",), ("",)),
    "double": (_double, ("",), ("",)),
    "several": (_several, OPERATORS, ELEMENTWISE),
    "views": (_views, (*ELEMENTWISE, "LOGISTIC", "RELU"), ("",)),
    "three": (_three, ELEMENTWISE, ELEMENTWISE),
}
"""The kinds of faults, and which operators are drawn for each."""


def drawn_faults(seed: int, count: int) -> list[GraphFault]:
    """Return faults of all kinds in turn, no two alike."""
    rng = np.random.default_rng(seed)
    found: dict[GraphFault, None] = {}
    while len(found) < count:
        for name, (_, firsts, seconds) in KINDS.items():
            first, second = (str(rng.choice(some)) for some in (firsts, seconds))
            found[GraphFault(name, str(rng.choice(TYPES)), first, second)] = None
    return list(found)[:count]


def drawn_keeping_faults(seed: int, count: int) -> list[GraphFault]:
    """Return faults that show in turns alone, no two alike."""
    rng = np.random.default_rng([seed, 1])
    found: dict[GraphFault, None] = {}
    while len(found) < count:
        for name in KEEPING:
            found[GraphFault(name, str(rng.choice(TYPES)), str(rng.choice(OPERATORS)), "")] = None
    return list(found)[:count]


def spoiled_in_turn(fault: GraphFault, model: PosedModel, answer: ModelAnswer) -> ModelAnswer:
    """Return what a device with a fault answers in turns where sound kernels answer so."""
    wrong = wrong_outputs(fault, model.graph)
    count = len(model.graph.outputs)
    if answer.failure is not None or not wrong:
        return answer
    turn = zip(model.graph.outputs, answer.outputs[count : 2 * count], strict=True)
    kept = (changed(one) if at in wrong else one for at, one in turn)
    return ModelAnswer((*answer.outputs[:count], *kept, *answer.outputs[2 * count :]))


def spoiled(fault: GraphFault, model: PosedModel, answer: ModelAnswer) -> ModelAnswer:
    """Return what a device with a fault answers where sound kernels answer so."""
    wrong = wrong_outputs(fault, model.graph)
    if answer.failure is not None or not wrong or fault.kind in KEEPING:
        return answer
    if fault.kind == "unread":
        return ModelAnswer(failure=RunFailure("crash", "planted"))
    outputs = zip(model.graph.outputs, answer.outputs, strict=True)
    return ModelAnswer(tuple(changed(one) if at in wrong else one for at, one in outputs))


def wrong_outputs(fault: GraphFault, graph: OperatorGraph) -> set[int]:
    """Return the outputs of a graph that are wrong by a fault."""
    typed = graph.values[graph.inputs[0]].dtype if graph.inputs else ""
    kind = _kept if fault.kind in KEEPING else KINDS[fault.kind][0]
    wrong = set(kind(fault, graph)) if typed == fault.type else set()
    return wrong & set(graph.outputs)


def changed(values: Values) -> Values:
    """Return other values in the place of a tensor's."""
    if values.dtype == np.bool_:
        return ~values
    return np.asarray(5 - values, values.dtype)
