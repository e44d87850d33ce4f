"""The blocks of a compressed model, each promoted to float as a whole, and their errors.

A block is an operator with weights, together with the operators behind it that carry its numbers up
to the next operators with weights, such as an activation, a pool, a sum or a softmax. So between
two promoted blocks nothing is quantized, and a block that is promoted alone is quantized at its
ends only.

Each operator adds an error itself, by channel. It gets the inputs that it has in the original,
rounded to the steps of the compressed model. What it puts out is compared with what the original's
operator makes of the same rounded inputs. So the errors of the operators before it do not count,
and none counts twice. Nor does a shift of all logits of a softmax, which does not see it.

The *residual* of a block is the error that its operators add themselves, by the signal. It takes
seconds, so that each repair has it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from edgeflare.core.tensor import dequantize, quantize
from edgeflare.diagnose.layer_difference import layer_name
from edgeflare.diagnose.rounding_noise import WEIGHTED
from edgeflare.diagnose.tensor_ties import JOINING, consumers
from edgeflare.errors import UserError
from edgeflare.models.graph_parts import isolate
from edgeflare.models.model_probe import HostProbe, Values
from edgeflare.models.tflite_graph import Graph
from edgeflare.repair.candidate_details import Block, Residual
from edgeflare.repair.fitting.activation_ranges import activation_limits, counterparts
from edgeflare.repair.fitting.biases import softmax_choices
from edgeflare.repair.fitting.quantized_network import MatchedLayer, QuantizedNetwork
from edgeflare.repair.fitting.tensor_capture import each_captured

RESIDUAL_INPUTS = 64
"""Inputs by which operators are compared with the original's for the residual, at equal distances
of those to fit with."""


def joined_tail(network: QuantizedNetwork) -> tuple[int, ...]:
    """Return the operators from where unlike things are joined on to the model's outputs.

    What a detector puts out, such as boxes and scores, is often decoded in one tensor, whose step
    is that of the widest values. Operators without a counterpart are left out, and joins behind
    which there are weights.

    Raises:
        UserError: there are none.

    """
    graph, tail = network.graph, set[int]()
    for layer in graph.layers:
        if layer.name in JOINING:
            behind = _behind(graph, layer.index)
            if not any(graph.operators[index].name in WEIGHTED for index in behind):
                tail |= behind
    known = {layer.operator for layer in network.layers}
    if not tail & known:
        raise UserError("no operator joins what the model puts out")
    return tuple(sorted(tail & known))


def _behind(graph: Graph, operator: int) -> set[int]:
    """Return an operator and all that read what it makes, or what these make."""
    found, waiting = set[int](), [graph.operators[operator]]
    while waiting:
        current = waiting.pop()
        if current.index not in found:
            found.add(current.index)
            waiting += [reader for made in current.outputs for reader in consumers(graph, made)]
    return found


def blocks_of(network: QuantizedNetwork) -> tuple[Block, ...]:
    """Return the blocks that are computed in integers, in execution order.

    An operator without weights belongs to the last of the blocks whose numbers it reads. Those in
    front of all blocks, and those that make no quantized numbers, belong to none.

    Raises:
        UserError: there are none, or an operator with weights has no counterpart.

    """
    graph = network.graph
    weighted = {
        matched_layer.operator
        for matched_layer in network.layers
        if matched_layer.weights is not None and all(_in_integers(graph, matched_layer.inputs))
    }
    known = {matched_layer.operator for matched_layer in network.layers}
    members: dict[int, list[int]] = {}
    carried_by: dict[int, int] = {}  # the block that a tensor's numbers come from
    for layer in graph.layers:
        sources = [carried_by[tensor] for tensor in graph.fed(layer) if tensor in carried_by]
        if layer.index in weighted:
            members[layer.index] = [layer.index]
            sources = [layer.index]
        elif sources and layer.index in known and all(_in_integers(graph, layer.outputs)):
            members[max(sources)].append(layer.index)
        if sources:
            carried_by.update(dict.fromkeys(layer.outputs, max(sources)))
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
    return tuple(sorted(operator for block in blocks for operator in block.operators))


def _in_integers(graph: Graph, tensors: Iterable[int]) -> list[bool]:
    return [
        bool(graph.tensors[tensor].scales) and graph.tensors[tensor].dtype == "int8"
        for tensor in tensors
    ]


Real = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class OperatorErrors:
    """What an operator of a compressed model adds to the error.

    Attributes:
        squared: mean square of its own error by input and channel, (n, channels).
        signal: mean square of what the original's operator makes, over all inputs and channels.

    """

    squared: Real
    signal: float

    @property
    def relative(self) -> Real:
        """Own error by the root mean square of the signal, (n, channels)."""
        return np.asarray(np.sqrt(self.squared / self.signal if self.signal else self.squared))


def operator_errors(
    network: QuantizedNetwork, operators: Sequence[int]
) -> dict[int, OperatorErrors]:
    """Return the errors of operators, by their positions.

    Args:
        network: network with the inputs, which are taken as they are.
        operators: positions in the compressed graph, of such as have a counterpart; those that make
            no numbers, or whose activation the original does not have, are left out.

    Raises:
        UserError: a graph cannot be cut, the runtime refuses it or an input, or an operator puts
            out more or fewer values than the original's.

    """
    graph, original = network.graph, network.original_graph
    wanted_of = counterparts(network)
    layers = [
        layer
        for layer in network.layers
        if layer.operator in set(operators) and layer.output in wanted_of
    ]
    logits = {layer.output for layer in layers if softmax_choices(graph, layer)}
    rounded = isolate(graph, [layer.operator for layer in layers])
    exact = isolate(original, [layer.original for layer in layers])
    tensors = sorted({tensor for layer in layers for tensor in layer.original_inputs})
    squared: dict[int, list[Real]] = {layer.operator: [] for layer in layers}
    signals: dict[int, list[float]] = {layer.operator: [] for layer in layers}
    with (
        closing(HostProbe(rounded.content, "builtin")) as first,
        closing(HostProbe(exact.content, "builtin")) as second,
    ):
        for row in each_captured(network.original, network.original_rows, tensors):
            raw, real = _inputs(network, layers, row)
            got = dict(zip(rounded.outputs, first.run(raw), strict=True))
            wanted = dict(zip(exact.outputs, second.run(real), strict=True))
            for matched in layers:
                made = graph.tensors[matched.output].real(got[matched.output])
                limits = activation_limits(graph, matched.operator)
                signal = np.clip(wanted[matched.original_output].astype(np.float64), *limits)
                if signal.size != made.size:  # by another stride, of which a file says nothing
                    raise UserError(
                        f"{graph.source}: {graph.describe(matched.output)} has the shape"
                        f" {made.shape} by itself, and {signal.shape} in the original"
                    )
                error = made - signal.reshape(made.shape)
                if matched.output in logits:
                    error -= float(error.mean())
                squared[matched.operator].append(_by_channel(error**2))
                signals[matched.operator].append(float((signal**2).mean()))
    return {
        operator: OperatorErrors(np.stack(squared[operator]), float(np.mean(signals[operator])))
        for operator in squared
    }


def _inputs(
    network: QuantizedNetwork, layers: Sequence[MatchedLayer], row: Mapping[int, Values]
) -> tuple[list[Values], list[Values]]:
    """Return the inputs of all layers one after the other: raw ones, and the original's of them."""
    raw: list[Values] = []
    real: list[Values] = []
    for layer in layers:
        for tensor, there in zip(layer.inputs, layer.original_inputs, strict=True):
            known = network.graph.tensors[tensor]
            given = row[there].reshape(known.shape)
            if known.scales:
                steps = known.as_interface
                rounded = quantize(given.astype(np.float64), steps)
                given = dequantize(rounded, steps).astype(np.float32)
                raw.append(rounded)
            else:
                raw.append(given)
            real.append(given.reshape(network.original_graph.tensors[there].shape))
    return raw, real


def _by_channel(values: Real) -> Real:
    return np.asarray(values.reshape(-1, values.shape[-1]).mean(axis=0))


def residual(network: QuantizedNetwork) -> Residual | None:
    """Return the blocks of a network as it came, and the error that each adds itself.

    Returns:
        None where the operators cannot be compared with the original's.

    """
    stride = max(1, len(network.rows) // RESIDUAL_INPUTS)
    few = replace(
        network, rows=network.rows[::stride], original_rows=network.original_rows[::stride]
    )
    try:
        blocks = blocks_of(network)
        scores = residual_scores(blocks, operator_errors(few, operators_of(blocks)))
    except UserError:  # a repair does not need it
        return None
    worst = blamed(blocks, scores)
    return Residual(blocks, scores, None if worst is None else worst.name)


def residual_scores(
    blocks: Sequence[Block], errors: Mapping[int, OperatorErrors]
) -> dict[str, float]:
    """Return the error that each block adds itself, by its signal: the root of the summed squares.

    Args:
        blocks: the blocks.
        errors: errors of their operators.

    Returns:
        A score for each block's name.

    """
    return {
        block.name: float(
            np.sqrt(
                sum(
                    float((errors[operator].relative ** 2).mean())
                    for operator in block.operators
                    if operator in errors
                )
            )
        )
        for block in blocks
    }


def blamed(blocks: Sequence[Block], scores: Mapping[str, float]) -> Block | None:
    """Return the block with the greatest score; None where no score is above 0.

    Of equal ones it is the first in execution order.
    """
    first = max(blocks, key=lambda block: scores[block.name])
    return first if scores[first.name] > 0 else None
