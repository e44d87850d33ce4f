"""The least graph of a finding, recognized in other graphs: what it explains need not be shrunk."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Final

from edgeflare.conform.graphs.graph_arrangement import VIEWS
from edgeflare.conform.operator_graph import ABSENT, GraphNode, OperatorGraph

ANY: Final = "any"
"""Stands for the name of an operator that may be any."""

VIEW: Final = "view"
"""Stands for the names of views."""


@dataclass(frozen=True, slots=True, eq=False)
class LeastGraph:
    """A failing graph from which nothing can be left out.

    Attributes:
        graph: the graph.
        wrong: wrong results of the graph; empty where it gives no answer.

    """

    graph: OperatorGraph
    wrong: tuple[int, ...]

    def form(self, any_place: int | None = None) -> str:
        """Return what least graphs have in common that are alike but for one operator.

        Args:
            any_place: the place of that operator; None where none may be another.

        """
        numbers = graph_numbers(self.graph)
        names = [ANY if at == any_place else name for at, name in enumerate(names_of(self.graph))]
        wrong = [numbers[at] for at in self.wrong if at in numbers]
        return repr((names, wiring(self.graph), wrong))

    def reached(self, other: OperatorGraph, any_place: int | None = None) -> set[int] | None:
        """Return the tensors of another graph that are wrong because it contains this one.

        Args:
            other: the other graph.
            any_place: the place of an operator that may be any other there; by default that of one
                that only hands on what it is given, for what it does is of no matter.

        Returns:
            What is wrong in each place where it contains this graph, and what follows from that;
            None where it does not contain it.

        """
        found = [
            {tensors[at] for at in self.wrong if at in tensors}
            for tensors in self._places(other, self._plain if any_place is None else any_place)
        ]
        if not found:
            return None
        reached = set[int]().union(*found)
        for node in other.nodes:
            if reached & set(node.inputs):
                reached |= set(node.outputs)
        return reached

    @property
    def _plain(self) -> int | None:
        """The place of an operator that only hands on; None where there is none, or other views."""
        graph = self.graph
        views = [place for place, name in enumerate(names_of(graph)) if name == VIEW]
        if len(views) != 1 or len(graph.nodes) == 1:
            return None
        node = graph.nodes[views[0]]
        same = graph.values[node.inputs[0]].shape == graph.values[node.outputs[0]].shape
        return views[0] if same else None

    def _places(self, other: OperatorGraph, any_place: int | None) -> Iterator[dict[int, int]]:
        """Yield the tensors of another graph that stand for those of this one."""
        names, theirs = names_of(self.graph), names_of(other)
        if any_place is not None:
            names[any_place] = ANY
        if Counter(name for name in names if name != ANY) - Counter(theirs):
            return
        numbers = graph_numbers(self.graph)

        def extended(
            place: int, used: set[int], tensors: dict[int, int]
        ) -> Iterator[dict[int, int]]:
            if place == len(names):
                if self._is_used_alike(tensors, other):
                    yield tensors
                return
            for at, node in enumerate(other.nodes):
                if at in used or names[place] not in (ANY, theirs[at]):
                    continue
                mine = self.graph.nodes[place]
                bound = _bound_to_any if names[place] == ANY else _bound
                for more in bound(mine, node, numbers, tensors):
                    yield from extended(place + 1, {*used, at}, more)

        yield from extended(0, set(), {})

    def _is_used_alike(self, tensors: dict[int, int], other: OperatorGraph) -> bool:
        """Return whether tensors are outputs, and are read by nothing, where those here are."""
        read = {at for node in self.graph.nodes for at in node.inputs}
        read_there = {at for node in other.nodes for at in node.inputs}
        given, given_there = set(self.graph.inputs), set(other.inputs)
        for mine, theirs in tensors.items():
            times = self.graph.outputs.count(mine)
            matters = times > 1 or (times and (mine in read or mine in given))
            if matters and other.outputs.count(theirs) < times:
                return False
            if times and mine in given and theirs not in given_there:
                return False
            unread = not times and mine not in read and mine not in given
            answered = theirs in read_there or theirs in other.outputs
            if unread and answered and len(self.graph.nodes) == 1:
                return False
        return True


def _bound(
    mine: GraphNode, theirs: GraphNode, numbers: dict[int, int], tensors: dict[int, int]
) -> Iterator[dict[int, int]]:
    """Yield the tensors that stand for others, once an operator stands for another of its name.

    Args:
        mine: the operator of the least graph.
        theirs: the operator that stands for it.
        numbers: tensors of the least graph that matter: others are as good as constants.
        tensors: tensors that stand for others before it.

    """
    bound = {**tensors, **dict(zip(mine.outputs, theirs.outputs, strict=False))}
    both = list(zip(mine.inputs, theirs.inputs, strict=False))
    if any(at in numbers for at in mine.inputs[len(both) :]):
        return
    for at, there in both:
        if at in numbers and bound.setdefault(at, there) != there:
            return
    for (one, there), (other, over_there) in combinations(both, 2):
        if ABSENT not in (one, there) and (one == other) != (there == over_there):
            return
    yield bound


def _bound_to_any(
    mine: GraphNode, theirs: GraphNode, numbers: dict[int, int], tensors: dict[int, int]
) -> Iterator[dict[int, int]]:
    """Yield the tensors that stand for others, once any operator stands for another.

    It may read them in other places; see `_bound`.
    """
    bound = {**tensors, **dict(zip(mine.outputs, theirs.outputs, strict=False))}
    read = [at for at in mine.inputs if at in numbers]
    new = {at for at in read if at not in tensors}
    twice = len(set(read)) < len(read)
    if twice and len(set(theirs.inputs)) == len(theirs.inputs):
        return
    if any(tensors[at] not in theirs.inputs for at in read if at in tensors) or len(new) > 1:
        return
    if not new:
        yield bound
    for at in new:
        for there in dict.fromkeys(theirs.inputs):
            if there != ABSENT and there not in bound.values():
                yield {**bound, at: there}


def names_of(graph: OperatorGraph) -> list[str]:
    """Return the names of a graph's operators; views are one as another."""
    return [VIEW if node.operator in VIEWS else node.operator for node in graph.nodes]


def wiring(graph: OperatorGraph) -> object:
    """Return how operators hang together: which are views, what they read, and what is answered.

    What an operator alone is given is as good as a constant.
    """
    names = graph_numbers(graph)

    def told(several: Sequence[int]) -> list[int]:
        return [names[at] for at in several if at in names]

    nodes = [
        (node.operator in VIEWS, told(node.inputs), told(node.outputs)) for node in graph.nodes
    ]
    return nodes, told(graph.outputs)


def graph_numbers(graph: OperatorGraph) -> dict[int, int]:
    """Return numbers of the tensors by which operators hang together, in their order."""
    times = Counter(at for node in graph.nodes for at in node.inputs)
    own = {at for at in graph.inputs if times[at] == 1 and at not in graph.outputs}
    every = [
        *(at for node in graph.nodes for at in (*node.inputs, *node.outputs)),
        *graph.outputs,
    ]
    matters = (
        at for at in every if at != ABSENT and graph.values[at].values is None and at not in own
    )
    return {at: number for number, at in enumerate(dict.fromkeys(matters))}
