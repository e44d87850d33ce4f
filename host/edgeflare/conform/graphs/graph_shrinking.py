"""The least part of a graph that still fails, by delta debugging over its operators.

What a part reads of operators that are left out, it is given as they answer alone. Each trial is
the whole part, run once; what its operators answer alone is known from those of the whole graph.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Generator, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

from edgeflare.conform.execution.kernel_arm import PosedModel
from edgeflare.conform.graphs.graph_trace import GraphTrace, compacted, part_of, with_rows
from edgeflare.conform.operator_graph import ABSENT, GraphNode, OperatorGraph

GraphShrinking = Generator[list["GraphTrial"], list[bool], "GraphTrial"]
"""Yields graphs to run, never none, is sent which of them fail, and returns the least."""

_PLAIN: Final = "RESHAPE"
"""The operator that all kernel sets have, and that does nothing."""

_MOST_TOGETHER: Final = 64
"""Graphs that are run at a time: together they take hardly longer than one."""


@dataclass(frozen=True, slots=True, eq=False)
class GraphTrial:
    """A graph that may fail as another does.

    Attributes:
        model: the graph, and what it is given.
        trace: what its operators answer one by one.

    """

    model: PosedModel
    trace: GraphTrace

    @property
    def size(self) -> int:
        """Operators, those that compute, and how they hang together."""
        graph = self.model.graph
        computing = sum(node.operator != _PLAIN for node in graph.nodes)
        return 64 * len(graph.nodes) + 8 * computing + len(graph.outputs)


def graph_shrinking(start: GraphTrial, most_runs: int) -> GraphShrinking:
    """Shrink a failing graph; see `GraphShrinking`.

    Args:
        start: fails.
        most_runs: graphs that may be run.

    """
    left, now = most_runs, start
    for moves in (_pairs, *_MOVES * _TIMES):
        again = True
        while again and left > 0:
            again = False
            for trials in _together(moves(now)):
                fails = yield trials[:left]
                left -= len(fails)
                smaller = [trial for trial, fail in zip(trials, fails, strict=False) if fail]
                if smaller:
                    now, again = min(smaller, key=lambda trial: trial.size), moves is not _pairs
                if smaller or left <= 0:
                    break
    return now


def _together(trials: Iterator[GraphTrial]) -> Iterator[list[GraphTrial]]:
    several: list[GraphTrial] = []
    for trial in trials:
        several.append(trial)
        if len(several) == _MOST_TOGETHER:
            yield several
            several = []
    if several:
        yield several


def _parts(now: GraphTrial, places: Collection[int]) -> Iterator[GraphTrial]:
    """Yield a part of a graph that answers what the graph does, and one that answers all."""
    graph = now.model.graph
    made = {at for place in places for at in graph.nodes[place].outputs}
    others = {
        at for place, node in enumerate(graph.nodes) if place not in places for at in node.inputs
    }
    seen = set()
    for outputs in (None, {*graph.outputs, *(made & others)}):
        part = part_of(now.model, places, now.trace, outputs)
        if part is not None and part.graph.outputs not in seen:
            seen.add(part.graph.outputs)
            yield GraphTrial(part, now.trace)


def _pairs(now: GraphTrial) -> Iterator[GraphTrial]:
    """Yield the operators that feed each other, in twos."""
    graph = now.model.graph
    if len(graph.nodes) <= 2:
        return
    makers = {at: place for place, node in enumerate(graph.nodes) for at in node.outputs}
    for place, node in enumerate(graph.nodes):
        for maker in dict.fromkeys(makers[at] for at in node.inputs if at in makers):
            yield from _parts(now, {maker, place})


def _chunks(now: GraphTrial) -> Iterator[GraphTrial]:
    """Yield parts without a half, a quarter, an eighth of the operators, and these alone."""
    count = len(now.model.graph.nodes)
    size = count // 2
    while size > 1:
        for begin in range(0, count, size):
            chunk = set(range(begin, min(begin + size, count)))
            for places in (chunk, set(range(count)) - chunk):
                if len(places) > 1:
                    yield from _parts(now, places)
        size //= 2


def _without_one(now: GraphTrial) -> Iterator[GraphTrial]:
    count = len(now.model.graph.nodes)
    for place in range(count) if count > 1 else ():
        yield from _parts(now, set(range(count)) - {place})


def _plainer(now: GraphTrial) -> Iterator[GraphTrial]:
    """Yield graphs in which an operator does nothing but hand on what is given, or what it reads.

    What stays in the least graph matters by what it does, and not by that there is something.
    """
    graph = now.model.graph
    read = {at for node in graph.nodes for at in node.inputs}
    for place, node in enumerate(graph.nodes):
        if node.operator == _PLAIN or len(node.outputs) > 1:
            continue
        (made,) = node.outputs
        given = graph.given_to(node)
        if made in now.trace.tensors:
            yield _handing_on(now, place, None)
        if made not in read and given and given[0] in now.trace.tensors:
            yield _handing_on(now, place, given[0])


def _handing_on(now: GraphTrial, place: int, source: int | None) -> GraphTrial:
    """Return a graph in which an operator hands a tensor on, by default one that is given."""
    graph, tensors = now.model.graph, dict(now.trace.tensors)
    (made,) = graph.nodes[place].outputs
    values = list(graph.values)
    inputs, operands = graph.inputs, now.model.operands
    if source is None:
        source = len(values)
        values.append(replace(values[made]))
        tensors[source] = tensors[made]
        inputs, operands = (*inputs, source), (*operands, tensors[made])
    values[made], tensors[made] = replace(values[source]), tensors[source]
    shape = values[made].shape
    node = GraphNode(_PLAIN, (source,), (made,), {"newShape": shape})
    nodes = (*graph.nodes[:place], node, *graph.nodes[place + 1 :])
    model = replace(
        now.model,
        graph=OperatorGraph(tuple(values), nodes, inputs, graph.outputs),
        operands=operands,
    )
    return GraphTrial(_without_unread(model), replace(now.trace, tensors=tensors))


def _without_output(now: GraphTrial) -> Iterator[GraphTrial]:
    """Yield graphs with an output less, of those that an operator reads too.

    A result that nothing reads is an arrangement of its own, of which other faults come.
    """
    graph = now.model.graph
    read = {at for node in graph.nodes for at in node.inputs}
    for at, tensor in enumerate(graph.outputs) if len(graph.outputs) > 1 else ():
        if tensor not in read:
            continue
        kept = (*graph.outputs[:at], *graph.outputs[at + 1 :])
        yield GraphTrial(replace(now.model, graph=replace(graph, outputs=kept)), now.trace)


def _cut(now: GraphTrial) -> Iterator[GraphTrial]:
    """Yield graphs in which a tensor that is read several times is read once less.

    Who read it is given a tensor of its own, which has the same values.
    """
    graph = now.model.graph
    times = Counter(at for node in graph.nodes for at in node.inputs if at != ABSENT)
    for place, node in enumerate(graph.nodes):
        for operand, at in enumerate(node.inputs):
            constant = at != ABSENT and graph.values[at].values is not None
            if times[at] > 1 and (constant or at in now.trace.tensors):
                yield _with_own(now, place, operand)


def _with_own(now: GraphTrial, place: int, operand: int) -> GraphTrial:
    graph, tensors = now.model.graph, dict(now.trace.tensors)
    node = graph.nodes[place]
    at, own = node.inputs[operand], len(graph.values)
    read = (*node.inputs[:operand], own, *node.inputs[operand + 1 :])
    nodes = (*graph.nodes[:place], replace(node, inputs=read), *graph.nodes[place + 1 :])
    inputs, operands = graph.inputs, now.model.operands
    if graph.values[at].values is None:
        tensors[own] = tensors[at]
        inputs, operands = (*inputs, own), (*operands, tensors[at])
    value = graph.values[at]
    if value.values is not None:  # what is one array is one buffer of the signatures of a file
        value = value.constant(value.values.copy())
    cut = OperatorGraph((*graph.values, value), nodes, inputs, graph.outputs)
    model = replace(now.model, graph=cut, operands=operands)
    return GraphTrial(_without_unread(model), replace(now.trace, tensors=tensors))


def _without_unread(model: PosedModel) -> PosedModel:
    """Return a graph without inputs that nothing reads or answers."""
    graph = model.graph
    used = {at for node in graph.nodes for at in node.inputs} | set(graph.outputs)
    both = zip(graph.inputs, model.operands, strict=True)
    kept = [(at, values) for at, values in both if at in used]
    inputs, operands = tuple(at for at, _ in kept), tuple(values for _, values in kept)
    return replace(model, graph=replace(graph, inputs=inputs), operands=operands)


def _fewer_rows(now: GraphTrial) -> Iterator[GraphTrial]:
    """Yield graphs that are invoked once."""
    for row in range(now.model.rows) if now.model.rows > 1 and now.model.operands else ():
        tensors = {at: values[[row]] for at, values in now.trace.tensors.items()}
        yield GraphTrial(with_rows(now.model, [row]), replace(now.trace, tensors=tensors))


_MOVES: Final = (_chunks, _without_one, _plainer, _without_output, _cut, _fewer_rows)

_TIMES: Final = 2
"""How often all moves have their turn: one may make another possible."""


def shrunk(
    several: Sequence[tuple[GraphTrial, int]],
    failing: Callable[[Sequence[int], Sequence[GraphTrial]], list[bool]],
    over: Callable[[], bool],
) -> list[tuple[GraphTrial, int]]:
    """Shrink graphs side by side; return the least of each, and how many graphs were run for it.

    Args:
        several: failing graphs, and how many graphs may be run for each.
        failing: returns which trials fail as the graphs do to which they belong, by their places.
        over: whether there is no time left.

    """
    asking = [graph_shrinking(start, runs) for start, runs in several]
    best = [start for start, _ in several]
    runs = [0] * len(several)
    trials: dict[int, list[GraphTrial]] = {}
    for at in range(len(several)):
        _advance(at, asking, best, trials, None)
    while trials and not over():
        flat = [(at, trial) for at, mine in trials.items() for trial in mine]
        fails = iter(failing([at for at, _ in flat], [trial for _, trial in flat]))
        for at, mine in list(trials.items()):
            told = [next(fails) for _ in mine]
            runs[at] += len(told)
            smaller = [trial for trial, fail in zip(mine, told, strict=True) if fail]
            best[at] = min([best[at], *smaller], key=lambda trial: trial.size)
            _advance(at, asking, best, trials, told)
    return [
        (replace(least, model=compacted(least.model)), count)
        for least, count in zip(best, runs, strict=True)
    ]


def _advance(
    at: int,
    asking: Sequence[GraphShrinking],
    best: list[GraphTrial],
    trials: dict[int, list[GraphTrial]],
    told: list[bool] | None,
) -> None:
    """Go on with what shrinks a graph."""
    try:
        trials[at] = next(asking[at]) if told is None else asking[at].send(told)
    except StopIteration as end:
        best[at] = end.value
        trials.pop(at, None)
