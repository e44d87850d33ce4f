"""The blocks of a compressed model: what is promoted to another precision as a whole.

A block is an operator with weights, together with the operators behind it that carry its numbers up
to the next operators with weights, such as an activation, a pool, a sum or a softmax. So between
two promoted blocks nothing is quantized, and a block that is promoted alone is quantized at its
ends only.
"""

from __future__ import annotations

from collections.abc import Iterable

from edgeflare.diagnose.layer_difference import layer_name
from edgeflare.errors import UserError
from edgeflare.models.tflite_graph import Graph
from edgeflare.repair.fitting.quantized_network import QuantizedNetwork
from edgeflare.repair.precision_details import Block


def blocks_of(network: QuantizedNetwork) -> tuple[Block, ...]:
    """Return the blocks that are computed in integers, in execution order.

    An operator without weights belongs to the last of the blocks whose numbers it reads. Those in
    front of all blocks, and those that make no quantized numbers, belong to none.

    Raises:
        UserError: there are none, or an operator with weights has no counterpart.

    """
    graph = network.graph
    weighted = {
        one.operator
        for one in network.layers
        if one.weights is not None and all(_in_integers(graph, one.inputs))
    }
    known = {one.operator for one in network.layers}
    members: dict[int, list[int]] = {}
    carried_by: dict[int, int] = {}  # the block that a tensor's numbers come from
    for one in graph.layers:
        sources = [carried_by[tensor] for tensor in graph.fed(one) if tensor in carried_by]
        if one.index in weighted:
            members[one.index] = [one.index]
            sources = [one.index]
        elif sources and one.index in known and all(_in_integers(graph, one.outputs)):
            members[max(sources)].append(one.index)
        if sources:
            carried_by.update(dict.fromkeys(one.outputs, max(sources)))
    if not members:
        raise UserError(
            f"{graph.source} has no operator with weights that computes on int8 numbers, so there "
            "is nothing to promote: repair it by another method"
        )
    layers = [layer_name(graph, graph.operators[first]) for first in members]
    return tuple(
        Block(str(layer), layer.tensor, tuple(operators))
        for layer, operators in zip(layers, members.values(), strict=True)
    )


def operators_of(blocks: Iterable[Block]) -> tuple[int, ...]:
    """Return the operators of blocks, ascending."""
    return tuple(sorted(operator for one in blocks for operator in one.operators))


def _in_integers(graph: Graph, tensors: Iterable[int]) -> list[bool]:
    return [
        bool(graph.tensors[one].scales) and graph.tensors[one].dtype == "int8" for one in tensors
    ]
