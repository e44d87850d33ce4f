"""How much arithmetic the operators of a `.tflite` file take."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from math import prod
from typing import Any, Final

from edgeflare.conform.operators.operator_catalogue import MOVEMENT_OPERATORS
from edgeflare.models.model_structure import operator_name
from edgeflare.models.tflite_graph import Graph


def operator_arithmetic(graph: Graph) -> tuple[int, ...]:
    """Return how many multiply-accumulates each operator of a graph of a file takes.

    Sums of products are counted by their products, pools by the values of their windows, reductions
    by the values that they read, recurrent operators by their weights at each step, and all others
    that compute by the values that they write. Moving values is no arithmetic, and neither is
    preparing constants. An operator that runs other graphs of the file, such as WHILE, has none of
    its own: they have theirs.
    """
    return tuple(
        0 if operator.index in graph.preparing else _of_operator(graph, operator.index)
        for operator in graph.operators
    )


def _of_operator(graph: Graph, place: int) -> int:
    subgraph = graph.model.subgraphs[graph.number]
    raw = subgraph.operators[place]
    name = operator_name(graph.model.operatorCodes[raw.opcodeIndex])
    if name in _MOVES or any(called_graphs(raw)):
        return 0
    read, made = (_shapes(subgraph, of) for of in (raw.inputs, raw.outputs))
    try:
        return _of_shapes(name, raw.builtinOptions, read, made)
    except (AttributeError, IndexError):  # shapes that are known once the model runs
        return sum(map(prod, made))


def _of_shapes(name: str, options: Any, read: _Shapes, made: _Shapes) -> int:
    """Return the arithmetic of an operator that runs no other graph and does not only move."""
    results = sum(map(prod, made))
    if name in _SUMS:
        return _SUMS[name](read, made[0])
    if name == "BATCH_MATMUL":
        return results * read[0][-2 if options.adjX else -1]
    if name in _POOLS:
        return results * int(options.filterHeight) * int(options.filterWidth)
    if name in _REDUCTIONS:
        return max(results, prod(read[0]))
    if name in _RECURRENT:
        weights = sum(prod(shape) for shape in read[1:] if len(shape) == _MATRIX)
        return max(results, prod(read[0][:-1]) * weights)
    return results


def called_graphs(raw: Any) -> Iterator[int]:
    """Yield the places of the graphs of the file that an operator runs.

    Args:
        raw: the operator, as the schema's object.

    """
    for options in (raw.builtinOptions, raw.builtinOptions2):
        for key, value in vars(options).items() if options is not None else ():
            if "subgraph" in key.lower():
                yield int(value)


def _shapes(subgraph: Any, tensors: Any) -> _Shapes:
    """Return the shapes of some tensors; that of an absent one, or of a state, is empty."""
    found = [
        None if at < 0 else subgraph.tensors[at] for at in ([] if tensors is None else tensors)
    ]
    return [
        ()
        if tensor is None or tensor.isVariable or tensor.shape is None
        else tuple(1 if size < 0 else int(size) for size in tensor.shape)
        for tensor in found
    ]


_Shapes = list[tuple[int, ...]]

_MOVES: Final = frozenset(
    {
        *(specification.operator for specification in MOVEMENT_OPERATORS),
        *("ASSIGN_VARIABLE", "CALL_ONCE", "DENSIFY", "READ_VARIABLE", "SPARSE_TO_DENSE"),
        *("VAR_HANDLE",),
    }
)
"""Operators that move values and compute none."""

_REDUCTIONS: Final = frozenset(
    {
        *("ARG_MAX", "ARG_MIN", "MEAN", "REDUCE_ALL", "REDUCE_ANY", "REDUCE_MAX", "REDUCE_MIN"),
        *("REDUCE_PROD", "SUM"),
    }
)
"""Operators that take each value that they read once."""

_RECURRENT: Final = frozenset(
    {
        *("BIDIRECTIONAL_SEQUENCE_LSTM", "BIDIRECTIONAL_SEQUENCE_RNN", "LSTM", "RNN", "SVDF"),
        *("UNIDIRECTIONAL_SEQUENCE_LSTM", "UNIDIRECTIONAL_SEQUENCE_RNN"),
    }
)
"""Operators that take each of their weights once at each step."""

_MATRIX: Final = 2
"""Dimensions of a recurrent operator's weights; its biases have one."""

_POOLS: Final = frozenset({"AVERAGE_POOL_2D", "L2_POOL_2D", "MAX_POOL_2D"})

_SUMS: Final[Mapping[str, Callable[[_Shapes, tuple[int, ...]], int]]] = {
    # Of the results or, where these are scattered to, of the inputs: how many products each has.
    "CONV_2D": lambda read, made: prod(made) * prod(read[1][1:]),
    "DEPTHWISE_CONV_2D": lambda read, made: prod(made) * prod(read[1][:-1]),
    "FULLY_CONNECTED": lambda read, made: prod(made) * read[1][-1],
    "CONV_3D": lambda read, made: prod(made) * prod(read[1][:-1]),
    "TRANSPOSE_CONV": lambda read, _: prod(read[2]) * prod(read[1][:-1]),
    "CONV_3D_TRANSPOSE": lambda read, _: prod(read[2]) * prod(read[1][:-1]),
}
