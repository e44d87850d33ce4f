"""A model as it is drawn: operators with their configurations, and which of them feeds which.

Nodes have graphs, from which follow the tensors that they read and write, and are made to fit the
tensors that feed them. What draws models is a `DraftSource`, the seam to the rounds that have them
run.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np

from edgeflare.conform.drafts.cells import cell_parameters, with_setting
from edgeflare.conform.operator_graph import GraphNode, GraphValue, OperatorGraph
from edgeflare.conform.operators.operator_catalogue import known_operators
from edgeflare.conform.specification.parameter import (
    Choice,
    Configuration,
    Dimensions,
    OperatorParameter,
    ScaleParameter,
    Setting,
    Whole,
    ZeroPoint,
)

FRESH = -1
"""Stands in place of a node for a tensor that the model is given."""


@dataclass(frozen=True, slots=True)
class DraftNode:
    """One operator of a draft.

    Attributes:
        operator: the operator's name in the schema.
        type: the operator's type.
        configuration: valid for the type.
        constants_seed: seed of the values of its constants.
        sources: the node whose first result feeds each tensor that the operator alone would be
            given, in order; `FRESH` for none.
        given: the operator's place in the model that the user named, whose constants it has as
            they stand; None for constants that are drawn.

    """

    operator: str
    type: str
    configuration: Configuration
    constants_seed: int
    sources: tuple[int, ...]
    given: int | None = None

    @property
    def cell(self) -> tuple[str, str]:
        """Operator and type."""
        return self.operator, self.type


@dataclass(frozen=True, slots=True)
class Draft:
    """A model of one to eight operators, each fed by operators before it or by the user."""

    nodes: tuple[DraftNode, ...]


@dataclass(frozen=True, slots=True)
class DraftedModel:
    """The graphs of a draft.

    Attributes:
        graph: all of it; its outputs are the results that no node reads.
        alone: each node as a graph of its own, in order.

    """

    graph: OperatorGraph
    alone: tuple[OperatorGraph, ...]


def drafted(draft: Draft, given: Mapping[int, OperatorGraph] | None = None) -> DraftedModel:
    """Return the graphs of a draft.

    Args:
        draft: a draft whose nodes are valid, and each fits what feeds it.
        given: the operators of the model that the user named, by their place in it.

    Raises:
        ValueError: a node is fed with a tensor of another shape, dtype or quantization.

    """
    alone = tuple(_alone(node, given or {}) for node in draft.nodes)
    return DraftedModel(_joined(alone, [node.sources for node in draft.nodes]), alone)


def _alone(node: DraftNode, given: Mapping[int, OperatorGraph]) -> OperatorGraph:
    if node.given is not None:
        return given[node.given]
    rng = np.random.default_rng(node.constants_seed)
    return known_operators()[node.operator].build(node.type, node.configuration, rng)


def _joined(alone: Sequence[OperatorGraph], sources: Sequence[tuple[int, ...]]) -> OperatorGraph:
    values: list[GraphValue] = []
    nodes: list[GraphNode] = []
    inputs: list[int] = []
    results: list[tuple[int, ...]] = []
    for graph, feeding in zip(alone, sources, strict=True):
        places: dict[int, int] = {}
        for at, source in zip(graph.inputs, feeding, strict=True):
            if source != FRESH:
                places[at] = results[source][0]
                _check_fit(values[places[at]], graph.values[at])
        for at, value in enumerate(graph.values):
            if at not in places:
                places[at] = len(values)
                values.append(value)
        inputs.extend(
            places[at] for at, source in zip(graph.inputs, feeding, strict=True) if source == FRESH
        )
        results.append(tuple(places[at] for at in graph.outputs))
        nodes.extend(node.moved(places) for node in graph.nodes)
    read = {at for node in nodes for at in node.inputs}
    outputs = tuple(at for several in results for at in several if at not in read)
    return OperatorGraph(tuple(values), tuple(nodes), tuple(inputs), outputs)


def _check_fit(made: GraphValue, read: GraphValue) -> None:
    one = (made.dtype, made.shape, made.quantization)
    other = (read.dtype, read.shape, read.quantization)
    if one != other:
        raise ValueError(f"a tensor {one} cannot be read as {other}")


def draft_to_json(draft: Draft) -> list[dict[str, Any]]:
    """Return a draft as plain JSON values, one object for each operator."""
    return [
        {
            "operator": node.operator,
            "type": node.type,
            "settings": dict(node.configuration),
            "constants_seed": node.constants_seed,
            "sources": list(node.sources),
            "given": node.given,
        }
        for node in draft.nodes
    ]


_REMEMBERED = 2000


class NodeGraphs:
    """Builds the graphs of nodes, and remembers some."""

    def __init__(self, given: Mapping[int, OperatorGraph] | None = None) -> None:
        """Begin.

        Args:
            given: the operators of the model that the user named, by their place in it.

        """
        self._given = dict(given or {})
        self._built: OrderedDict[Hashable, OperatorGraph] = OrderedDict()

    def graph(self, node: DraftNode) -> OperatorGraph:
        """Return the graph of a node alone; its configuration is valid."""
        if node.given is not None:
            return self._given[node.given]
        key = (*node.cell, node.constants_seed, *node.configuration.items())
        if key not in self._built:
            rng = np.random.default_rng(node.constants_seed)
            specification = known_operators()[node.operator]
            self._built[key] = specification.build(node.type, node.configuration, rng)
            if len(self._built) > _REMEMBERED:
                self._built.popitem(last=False)
        return self._built[key]

    def operands(self, node: DraftNode) -> tuple[GraphValue, ...]:
        """Return the tensors that a node alone is given."""
        graph = self.graph(node)
        return tuple(graph.values[at] for at in graph.inputs)

    def result(self, node: DraftNode) -> GraphValue:
        """Return the tensor that other nodes may read of a node."""
        graph = self.graph(node)
        return graph.values[graph.outputs[0]]


def fits(made: GraphValue, read: GraphValue) -> bool:
    """Return whether a tensor that one node writes can be what another reads."""
    return (made.dtype, made.shape, made.quantization) == (
        read.dtype,
        read.shape,
        read.quantization,
    )


@dataclass(frozen=True, slots=True)
class DraftOutcome:
    """What became of a draft, as far as drawing needs it.

    Attributes:
        nodes: whether the device took each node alone; one that crashes it or answers wrongly was
            taken. None where nobody knows, since what feeds it gave no answer, or the draft was not
            run.
        whole: whether the device took the model of all nodes.

    """

    nodes: tuple[bool | None, ...]
    whole: bool

    @classmethod
    def not_run(cls, draft: Draft) -> DraftOutcome:
        """Return the outcome of a draft that was left out, of which nobody knows anything."""
        return cls((None,) * len(draft.nodes), whole=False)


class DraftSource(Protocol):
    """Draws models one after the other.

    What is drawn depends on the generator that it was made with and on what it was told, so that
    a run is resumed by telling it the same again.
    """

    def ask(self, count: int) -> list[Draft]:
        """Return the next models, fewer than asked for only where there are no more."""

    def tell(self, drafts: Sequence[Draft], outcomes: Sequence[DraftOutcome]) -> None:
        """Take what became of models that were asked for, in any order."""


_MOST_VALUES = 4096
"""The most values of a result that no larger tensor is behind. A chain of operators that each
enlarge their operand would grow beyond all bounds."""


def rederived(nodes: Sequence[DraftNode], graphs: NodeGraphs) -> Draft | None:
    """Return a draft of nodes, each changed as far as what feeds it demands.

    Args:
        nodes: each is fed by nodes before it.
        graphs: builds them.

    Returns:
        None if a node cannot be what it is with what feeds it.

    """
    done: list[DraftNode] = []
    for node in nodes:
        values = {
            at: graphs.result(done[source])
            for at, source in enumerate(node.sources)
            if source != FRESH
        }
        unchanged = _is_fed(node, values, graphs)
        fed = _with_sources(node, graphs) if unchanged else node_fed(node, values, graphs)
        if fed is None:
            return None
        done.append(fed)
    return Draft(tuple(done))


def node_fed(
    node: DraftNode, values: Mapping[int, GraphValue], graphs: NodeGraphs
) -> DraftNode | None:
    """Return a node whose operands are tensors of other nodes, or None where that cannot be.

    Args:
        node: as it was, with whatever operands.
        values: the tensors, by which of the node's given operands they are to be.
        graphs: builds nodes.

    """
    configuration: Configuration | None = node.configuration
    if 0 in values:
        configuration = first_fed(node, values[0])
    if configuration is None:
        return None
    changed = replace(node, configuration=configuration, given=None)
    for at in sorted(set(values) - {0}):
        kept = {place: value for place, value in values.items() if place < at}
        changed = _operand_fed(changed, at, values[at], kept, graphs)
    limit = max(_MOST_VALUES, *(value.size for value in values.values()))
    if node.given is not None:
        limit = max(limit, graphs.result(node).size)
    if not _is_fed(changed, values, graphs) or graphs.result(changed).size > limit:
        return None
    return _with_sources(changed, graphs)


def first_fed(node: DraftNode, value: GraphValue) -> Configuration | None:
    """Return a node's valid configuration with another tensor as its first operand, or None."""
    specification = known_operators()[node.operator]
    configuration = specification.with_input(node.type, node.configuration, value)
    if configuration is None or specification.invalid(node.type, configuration) is not None:
        return None
    return configuration


def _with_sources(node: DraftNode, graphs: NodeGraphs) -> DraftNode:
    """Return a node with a source for each operand, which may have become more or fewer."""
    wanted = len(graphs.operands(node))
    sources = (*node.sources, *[FRESH] * wanted)[:wanted]
    return node if sources == node.sources else replace(node, sources=sources)


def _is_fed(node: DraftNode, values: Mapping[int, GraphValue], graphs: NodeGraphs) -> bool:
    operands = graphs.operands(node)
    return all(at < len(operands) and fits(value, operands[at]) for at, value in values.items())


def _operand_fed(
    node: DraftNode,
    at: int,
    value: GraphValue,
    kept: Mapping[int, GraphValue],
    graphs: NodeGraphs,
) -> DraftNode:
    """Return a node whose operand is as near to a tensor as single changes of settings bring it.

    Specifications say how the first operand is set. Of the others any parameter may be the one,
    so each is tried.
    """
    apart = _apart(node, at, value, graphs)
    for parameter in cell_parameters(node.cell):
        for setting in _settings_of(parameter, node.configuration[parameter.name], value):
            if apart == 0:
                return node
            configuration = with_setting(node.cell, node.configuration, parameter.name, setting)
            if configuration is None:
                continue
            other = replace(node, configuration=configuration, given=None)
            nearer = _apart(other, at, value, graphs)
            if nearer < apart and _is_fed(other, kept, graphs):
                node, apart = other, nearer
    return node


def _apart(node: DraftNode, at: int, value: GraphValue, graphs: NodeGraphs) -> int:
    """Return in how many ways an operand differs from a tensor."""
    operands = graphs.operands(node)
    if at >= len(operands):
        return 5
    operand = operands[at]
    one, other = operand.quantization, value.quantization
    if one is None or other is None:
        quantized = int(one is not other)
    else:
        quantized = (one.scales != other.scales) + (one.zero_point != other.zero_point)
    return (operand.dtype != value.dtype) + (operand.shape != value.shape) + quantized


def _settings_of(
    parameter: OperatorParameter, setting: Setting, value: GraphValue
) -> Iterator[Setting]:
    """Yield settings by which a parameter could say that an operand is some tensor."""
    sizes = dict.fromkeys(value.shape)
    quantization = value.quantization
    if isinstance(parameter, Choice):
        yield from parameter.settings
    elif isinstance(parameter, Whole):
        yield from dict.fromkeys((len(value.shape), *sizes))
    elif isinstance(parameter, ScaleParameter | ZeroPoint):
        if quantization is not None and len(quantization.scales) == 1:
            scaled = isinstance(parameter, ScaleParameter)
            yield quantization.scales[0] if scaled else quantization.zero_point
    elif isinstance(parameter, Dimensions):
        yield value.shape
    else:
        yield parameter.simplest
        # Such as the sizes of what is concatenated, along the axis.
        if isinstance(setting, tuple) and setting:
            yield from ((size, *setting[1:]) for size in sizes)
