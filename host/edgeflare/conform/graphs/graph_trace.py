"""A graph taken apart: its operators alone, and parts of it with the tensors that they read."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from edgeflare.conform.execution.kernel_arm import KernelArm, ModelAnswer, PosedModel, RunFailure
from edgeflare.conform.execution.packing_arm import run_padded
from edgeflare.conform.operator_graph import ABSENT, GraphNode, OperatorGraph, Values


@dataclass(frozen=True, slots=True)
class GraphTrace:
    """What the operators of a graph answer one by one.

    Attributes:
        tensors: what the graph is given and what its operators answer, by tensor: (rows, *shape).
        failures: why an operator gave no answer, by its place; nothing of one that was not run,
            since what feeds it gave none.

    """

    tensors: Mapping[int, Values]
    failures: Mapping[int, RunFailure]

    def expected(self, graph: OperatorGraph) -> tuple[Values, ...] | None:
        """Return what a graph answers if its operators answer as alone; None where one did not."""
        if self.failures or any(at not in self.tensors for at in graph.outputs):
            return None
        return tuple(self.tensors[at] for at in graph.outputs)

    def taken(self, graph: OperatorGraph) -> tuple[bool | None, ...]:
        """Return whether each operator answered alone, None for one that was not run."""
        return tuple(
            False if at in self.failures else True if node.outputs[0] in self.tensors else None
            for at, node in enumerate(graph.nodes)
        )


def traced(models: Sequence[PosedModel], device: KernelArm) -> list[GraphTrace]:
    """Return what the operators of graphs answer one by one, each with what those before it did.

    Args:
        models: the graphs, and what they are given.
        device: runs the operators, those of all graphs beside each other.

    Raises:
        InfrastructureError: the device is lost.

    """
    tensors = [dict(zip(model.graph.inputs, model.operands, strict=True)) for model in models]
    failures: list[dict[int, RunFailure]] = [{} for _ in models]
    left = [set(range(len(model.graph.nodes))) for model in models]
    while ready := _ready(models, tensors, left):
        answers = run_padded(
            [device], [_posed_alone(models[at], node, tensors[at]) for at, node in ready]
        )
        for (at, node), answer in zip(ready, answers, strict=True):
            left[at].discard(node)
            _keep(
                models[at].graph.nodes[node], node, answer[device.name], tensors[at], failures[at]
            )
    return [GraphTrace(*both) for both in zip(tensors, failures, strict=True)]


def _ready(
    models: Sequence[PosedModel],
    tensors: Sequence[Mapping[int, Values]],
    left: Sequence[Collection[int]],
) -> list[tuple[int, int]]:
    """Return the operators that are left, and whose operands are known: graph and place."""
    return [
        (at, node)
        for at, model in enumerate(models)
        for node in sorted(left[at])
        if all(
            tensor == ABSENT
            or model.graph.values[tensor].values is not None
            or tensor in tensors[at]
            for tensor in model.graph.nodes[node].inputs
        )
    ]


def _posed_alone(model: PosedModel, place: int, tensors: Mapping[int, Values]) -> PosedModel:
    graph = model.graph
    read = tuple(tensors[at] for at in graph.given_to(graph.nodes[place]))
    return PosedModel(graph.alone(place), read, model.rows)


def _keep(
    node: GraphNode,
    place: int,
    answer: ModelAnswer,
    tensors: dict[int, Values],
    failures: dict[int, RunFailure],
) -> None:
    if answer.failure is not None:
        failures[place] = answer.failure
        return
    tensors.update(zip(node.outputs, answer.outputs, strict=True))


def part_of(
    model: PosedModel,
    places: Collection[int],
    trace: GraphTrace,
    outputs: Collection[int] | None = None,
) -> PosedModel | None:
    """Return some operators of a graph, given what the others answered one by one.

    Args:
        model: the graph, and what it is given.
        places: places of the operators that are kept.
        trace: what all operators answer one by one.
        outputs: tensors that the part answers; by default those that the whole graph answers, and
            those that only operators read that are left out.

    Returns:
        None where a tensor that the part would be given is not known, or it would answer nothing.

    """
    graph = model.graph
    nodes = [graph.nodes[at] for at in sorted(places)]
    made = {tensor for node in nodes for tensor in node.outputs}
    read = [tensor for node in nodes for tensor in node.inputs if tensor != ABSENT]
    known = [at for at in dict.fromkeys(read) if graph.values[at].values is None]
    given = [at for at in known if at not in made]
    kept = _kept_outputs(graph, nodes, outputs)
    if not kept or any(at not in trace.tensors for at in given):
        return None
    part = OperatorGraph(graph.values, tuple(nodes), tuple(given), tuple(kept))
    return PosedModel(part, tuple(trace.tensors[at] for at in given), model.rows)


def _kept_outputs(
    graph: OperatorGraph, nodes: Sequence[GraphNode], outputs: Collection[int] | None
) -> list[int]:
    """Return what some operators of a graph answer; see `part_of`."""
    made = [tensor for node in nodes for tensor in node.outputs]
    read = {tensor for node in nodes for tensor in node.inputs}
    kept = [at for at in graph.outputs if at in made or at in read.intersection(graph.inputs)]
    if outputs is None:
        ends = (node.outputs[0] for node in nodes if node.outputs[0] not in read)
        return [*kept, *(at for at in ends if at not in kept)]
    others = (at for at in made if at in outputs and at not in kept)
    return [*(at for at in kept if at in outputs), *others]


def compacted(model: PosedModel) -> PosedModel:
    """Return a graph without the tensors that nothing of it reads, writes, takes or answers."""
    graph = model.graph
    used = sorted(
        {at for node in graph.nodes for at in (*node.inputs, *node.outputs) if at != ABSENT}
        | {*graph.inputs, *graph.outputs}
    )
    places = {at: number for number, at in enumerate(used)}
    small = OperatorGraph(
        tuple(graph.values[at] for at in used),
        tuple(node.moved(places) for node in graph.nodes),
        tuple(places[at] for at in graph.inputs),
        tuple(places[at] for at in graph.outputs),
    )
    return replace(model, graph=small)


def with_rows(model: PosedModel, rows: Sequence[int]) -> PosedModel:
    """Return a graph with some rows of what it is given."""
    return PosedModel(
        model.graph, tuple(values[list(rows)] for values in model.operands), len(rows)
    )


def graphs_digest(models: Sequence[PosedModel]) -> str:
    """Return a digest of graphs and what they are given, by which a resumed run knows its own."""
    found = hashlib.sha256()
    for model in models:
        graph = model.graph
        plain = [
            (value.dtype, value.shape, value.quantization, value.variable) for value in graph.values
        ]
        nodes = [
            (node.operator, node.inputs, node.outputs, sorted(node.options.items()), node.version)
            for node in graph.nodes
        ]
        found.update(repr((plain, nodes, graph.inputs, graph.outputs)).encode())
        constants = (value.values for value in graph.values if value.values is not None)
        for values in (*constants, *model.operands):
            found.update(np.ascontiguousarray(values).tobytes())
    return found.hexdigest()
