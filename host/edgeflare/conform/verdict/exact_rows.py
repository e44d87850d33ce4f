"""The exact answers to all rows that a model is given."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from edgeflare.conform.operator_graph import OperatorGraph, Values
from edgeflare.conform.specification.activation_tensors import Operand
from edgeflare.conform.specification.exact_answer import ExactAnswer
from edgeflare.conform.specification.operator_specification import OperatorSpecification

_LARGEST = 1e15
"""A float32 beyond it may overflow where it is squared and summed."""

_TINIEST = float(np.finfo(np.float32).tiny)


def exact_rows(
    specification: OperatorSpecification,
    graph: OperatorGraph,
    operands: Sequence[Values],
    rows: int,
) -> tuple[ExactAnswer, ...]:
    """Return the exact answers of a model of one operator.

    Args:
        specification: the operator's declaration.
        graph: graph of the operator alone.
        operands: one array for each of the graph's inputs, (rows, *shape) in its dtype.
        rows: how many there are. All are alike where the model is given nothing.

    Returns:
        One for each result, whose values and slack are (rows, *shape).

    """
    answers = [
        one_exact(specification, graph, [several[row] for several in operands])
        for row in range(rows if operands else 1)
    ]
    if not operands:
        answers *= rows
    return tuple(_stacked(several) for several in zip(*answers, strict=True))


def one_exact(
    specification: OperatorSpecification, graph: OperatorGraph, operands: Sequence[Values]
) -> tuple[ExactAnswer, ...]:
    """Return the exact answers to one row: operands and answers are (*shape)."""
    (node,) = graph.nodes
    with np.errstate(all="ignore"):
        return specification.exact(node.options, row_operands(graph, operands), graph.results(node))


def row_operands(graph: OperatorGraph, operands: Sequence[Values]) -> tuple[Operand | None, ...]:
    """Return what the one operator of a graph reads, constants included.

    Args:
        graph: graph of one operator.
        operands: one array for each of its inputs, (*shape) in its dtype.

    """
    (node,) = graph.nodes
    given: Mapping[int, Values] = dict(zip(graph.inputs, operands, strict=True))
    read: list[Operand | None] = []
    for at, value in zip(node.inputs, graph.operands(node), strict=True):
        raw = None if value is None else given.get(at, value.values)
        read.append(None if value is None or raw is None else Operand(value, raw))
    return tuple(read)


def _stacked(answers: Sequence[ExactAnswer]) -> ExactAnswer:
    values = np.stack([answer.values for answer in answers])
    slack = [np.broadcast_to(answer.slack, answer.values.shape) for answer in answers]
    return ExactAnswer(answers[0].kind, values, np.stack(slack))


def usual_rows(graph: OperatorGraph, operands: Sequence[Values], rows: int) -> NDArray[np.bool_]:
    """Return the rows without NaN, infinities, denormals and numbers near them, (rows).

    No row of a model is usual in which a tensor has no values.

    Args:
        graph: the model.
        operands: one array for each of its inputs, (rows, *shape) in its dtype.
        rows: how many there are.

    """
    usual = np.full(rows, all(value.size for value in graph.values))
    for operand in operands:
        if operand.dtype.kind == "f":
            size = np.abs(operand.reshape(rows, -1))
            usual &= np.all((size == 0) | ((size >= _TINIEST) & (size <= _LARGEST)), axis=1)
    return usual
