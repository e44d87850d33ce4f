"""Nodes of a draft made to fit the tensors that feed them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from edgeflare.conform.drafts.cells import cell_parameters, with_setting
from edgeflare.conform.drafts.draft import FRESH, Draft, DraftNode, NodeGraphs, fits
from edgeflare.conform.operator_graph import GraphValue
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
