"""What an operator keeps from one invocation to the next: as much as from one step to the next.

An LSTM or RNN of one direction that is invoked twice without a reset has to answer what it answers
to both sequences joined. That is the same operator of a longer sequence, which is held to exact
arithmetic by itself.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import numpy as np

from edgeflare.conform.execution.kernel_arm import ModelAnswer, PosedModel
from edgeflare.conform.operator_graph import OperatorGraph, Option

_SEQUENCES: Final = {
    "LSTM": "UNIDIRECTIONAL_SEQUENCE_LSTM",
    "RNN": "UNIDIRECTIONAL_SEQUENCE_RNN",
    "UNIDIRECTIONAL_SEQUENCE_LSTM": "UNIDIRECTIONAL_SEQUENCE_LSTM",
    "UNIDIRECTIONAL_SEQUENCE_RNN": "UNIDIRECTIONAL_SEQUENCE_RNN",
}
"""The operator that goes over a sequence as each operator goes on from its state."""

KEEPING: Final = frozenset(_SEQUENCES)
"""Operators whose states are tried."""

_VERSIONS: Final = {("LSTM", 3): 2, ("LSTM", 4): 3}
"""Versions of the operator of a sequence, where they differ."""


def joined(model: PosedModel) -> PosedModel | None:
    """Return the model of one operator with its rows as one sequence; None for any other model."""
    graph = model.graph
    if len(graph.nodes) != 1 or graph.nodes[0].operator not in KEEPING:
        return None
    if len(graph.inputs) != 1 or graph.outputs != graph.nodes[0].outputs:
        return None
    (node,), (given,) = graph.nodes, model.operands
    options: dict[str, Option] = dict(node.options)
    stepwise = node.operator in ("LSTM", "RNN")
    if stepwise:
        options.pop("kernelType", None)
        options["timeMajor"] = True
        if node.operator == "LSTM":
            options["diagonalRecurrentTensors"] = False
    major = bool(options["timeMajor"])
    values = list(graph.values)
    for at in (*graph.inputs, *node.outputs):
        shape = values[at].shape
        if stepwise:
            shape = (model.rows, *shape)
        elif major:
            shape = (model.rows * shape[0], *shape[1:])
        else:
            shape = (shape[0], model.rows * shape[1], *shape[2:])
        values[at] = replace(values[at], shape=shape)
    whole = given if stepwise else np.concatenate(given, axis=0 if major else 1)
    version = _VERSIONS.get((node.operator, node.version), node.version)
    sequence = replace(node, operator=_SEQUENCES[node.operator], options=options, version=version)
    long = OperatorGraph(tuple(values), (sequence,), graph.inputs, node.outputs)
    return PosedModel(long, (whole[np.newaxis],), 1)


def joined_answer(model: PosedModel, answer: ModelAnswer) -> ModelAnswer:
    """Return what a model answers to its rows as one answer of the joined model."""
    (node,) = model.graph.nodes
    if answer.failure is not None or node.operator in ("LSTM", "RNN"):
        return replace(answer, outputs=tuple(rows[np.newaxis] for rows in answer.outputs))
    axis = 0 if node.options["timeMajor"] else 1
    outputs = (np.concatenate(rows, axis=axis)[np.newaxis] for rows in answer.outputs)
    return replace(answer, outputs=tuple(outputs))
