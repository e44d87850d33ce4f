"""The operators of a `.tflite` file that the user names, each as a model of its own."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property

from edgeflare.conform.drafts.draft import FRESH, Draft, DraftNode
from edgeflare.conform.drafts.file_operators import (
    FileOperator,
    file_graph,
    file_graphs,
    file_operators,
)
from edgeflare.conform.graph_file import graph_file
from edgeflare.conform.operator_graph import OperatorGraph
from edgeflare.conform.operators.operator_catalogue import known_operators
from edgeflare.conform.specification.activation_tensors import TYPES, UnknownOperatorForm
from edgeflare.conform.specification.operator_specification import OperatorReading
from edgeflare.errors import UserError


@dataclass(frozen=True, slots=True)
class ReadOperator:
    """An operator of a model that is known.

    Attributes:
        place: the operator's place among those of all the model's graphs, one behind the other.
        operator: name in the schema.
        graph: the operator alone, with its constants.
        reading: what it is.

    """

    place: int
    operator: str
    graph: OperatorGraph
    reading: OperatorReading

    @property
    def cell(self) -> tuple[str, str]:
        """Operator and type."""
        return self.operator, self.reading.type


@dataclass(frozen=True, slots=True)
class UnreadOperator:
    """An operator of a model that is not known.

    Attributes:
        place: the operator's place among those of all the model's graphs, one behind the other.
        operator: name in the schema.
        reason: why.

    """

    place: int
    operator: str
    reason: str


@dataclass(frozen=True, slots=True)
class ReadGraph:
    """A graph of a model: what a signature runs, or what an operator such as WHILE does.

    Attributes:
        name: what it is to the user; empty where the model has one graph alone.
        places: places of the graph's operators.
        graph: all of it; None where it has a tensor that no graph of ours can have.

    """

    name: str
    places: range
    graph: OperatorGraph | None


@dataclass(frozen=True)
class ModelReading:
    """What a model consists of.

    Attributes:
        known: operators, in order.
        unknown: likewise.
        draft: all known operators, each fed by what feeds it in the model.
        arithmetic: the multiply-accumulates of all operators, by their places.
        graphs: the main graph, and all others that run when the model does.

    """

    known: tuple[ReadOperator, ...]
    unknown: tuple[UnreadOperator, ...]
    draft: Draft
    arithmetic: Mapping[int, int]
    graphs: tuple[ReadGraph, ...] = ()

    def names_at(self, places: Collection[int]) -> tuple[str, ...]:
        """Return the names of the graphs that have operators equal to those at some places."""
        alike = self.equal_to(places)
        return tuple(
            graph.name for graph in self.graphs if graph.name and alike.intersection(graph.places)
        )

    @property
    def given(self) -> Mapping[int, OperatorGraph]:
        """The graphs of known operators, by their places."""
        return {operator.place: operator.graph for operator in self.known}

    @property
    def distinct(self) -> tuple[ReadOperator, ...]:
        """The known operators, of equal ones, constants included, the first."""
        return tuple(several[0] for several in self._equal)

    def distinct_at(self, places: Collection[int]) -> int:
        """Return how many distinct operators lie at some places of the model."""
        return sum(any(alike.place in places for alike in several) for several in self._equal)

    def equal_to(self, places: Collection[int]) -> set[int]:
        """Return the places of all operators that are equal to those at some places."""
        return {
            alike.place
            for several in self._equal
            if any(operator.place in places for operator in several)
            for alike in several
        }

    @cached_property
    def _equal(self) -> list[list[ReadOperator]]:
        """The known operators, equal ones together; their constants are written to tell."""
        files: dict[bytes, list[ReadOperator]] = {}
        for operator in self.known:
            files.setdefault(graph_file(operator.graph), []).append(operator)
        return list(files.values())


def read_operators(content: bytes, source: str = "the model") -> ModelReading:
    """Return the operators of all graphs of a file that run when the model does.

    Args:
        content: the file.
        source: what the user calls it, for messages.

    Raises:
        UserError: it is damaged, its weights are not in it, or none of its operators is known.

    """
    file = file_graphs(content, source)
    known: list[ReadOperator] = []
    unknown: list[UnreadOperator] = []
    nodes: list[DraftNode] = []
    arithmetic: dict[int, int] = {}
    graphs = []
    begin = 0
    for number, name in ((each.number, each.name) for each in file):
        found = file_operators(content, source, number)
        placed = [replace(raw, place=begin + raw.place) for raw in found]
        mine, unread = _parted(placed)
        nodes += _nodes(mine, placed, len(nodes))
        known += mine
        unknown += unread
        arithmetic |= {raw.place: raw.arithmetic for raw in placed}
        end = 1 + max((raw.place for raw in placed), default=begin - 1)
        whole = _whole(content, source, number)
        graphs.append(ReadGraph(name if file[1:] else "", range(begin, end), whole))
        begin = end
    if not known:
        names = ", ".join(sorted({skipped.operator for skipped in unknown})) or "none"
        raise UserError(
            f"{source}: none of its operators is known (it has {names}); "
            "`edgeflare conform --list` shows those that are"
        )
    return ModelReading(
        tuple(known), tuple(unknown), Draft(tuple(nodes)), arithmetic, tuple(graphs)
    )


def _parted(
    found: Sequence[FileOperator],
) -> tuple[list[ReadOperator], list[UnreadOperator]]:
    """Return the operators of a graph that are known, and the others."""
    known: list[ReadOperator] = []
    unknown: list[UnreadOperator] = []
    for raw in found:
        try:
            known.append(_read(raw))
        except UnknownOperatorForm as why:
            unknown.append(UnreadOperator(raw.place, raw.name, str(why)))
    return known, unknown


def _whole(content: bytes, source: str, number: int) -> OperatorGraph | None:
    try:
        return file_graph(content, source, number)
    except UserError:
        return None


def _read(one: FileOperator) -> ReadOperator:
    if one.graph is None:
        raise UnknownOperatorForm(one.reason)
    specification = known_operators().get(one.name)
    if specification is None:
        raise UnknownOperatorForm("the operator is not known")
    if not one.reads:
        raise UnknownOperatorForm("it reads nothing but constants")
    try:
        reading = specification.read(one.graph)
    except UnknownOperatorForm:
        raise
    except Exception as error:  # an operator of a file may have tensors and options of any kind
        raise UnknownOperatorForm("its tensors or options are not those of the operator") from error
    return ReadOperator(one.place, one.name, one.graph, reading)


def _nodes(
    known: Sequence[ReadOperator], found: Sequence[FileOperator], before: int
) -> Iterator[DraftNode]:
    """Yield the known operators of a graph, behind so many of other graphs."""
    operators = {raw.place: raw for raw in found}
    written: dict[int, int] = {}
    for at, read in enumerate(known, before):
        operator = operators[read.place]
        sources = tuple(written.get(tensor, FRESH) for tensor in operator.reads)
        yield DraftNode(*read.cell, read.reading.configuration, 0, sources, read.place)
        # Nodes are read by their first results alone.
        written[operator.writes[0]] = at


def graph_draft(graph: OperatorGraph) -> Draft:
    """Return the operators of a graph as documents have them, with their settings.

    Those whose form is not known have no settings.
    """
    written: dict[int, int] = {}
    nodes = []
    for place, node in enumerate(graph.nodes):
        sources = tuple(written.get(at, FRESH) for at in graph.given_to(node))
        nodes.append(_node_of(graph.alone(place), sources))
        written.update(dict.fromkeys(node.outputs, place))
    return Draft(tuple(nodes))


def _node_of(alone: OperatorGraph, sources: tuple[int, ...]) -> DraftNode:
    (node,) = alone.nodes
    specification = known_operators().get(node.operator)
    if specification is not None:
        with suppress(Exception):  # a file's operator may have tensors and options of any kind
            reading = specification.read(alone)
            return DraftNode(node.operator, reading.type, reading.configuration, 0, sources)
    first = next(
        (operand for operand in alone.operands(node) if operand is not None), alone.values[0]
    )
    return DraftNode(node.operator, TYPES.get(first.dtype, first.dtype), {}, 0, sources)
