"""Which tensor of a model holds its scores."""

from __future__ import annotations

from edgeflare.models.tflite_graph import Graph

_NORMALIZING = frozenset({"SOFTMAX", "LOGISTIC", "LOG_SOFTMAX"})
"""Last layers that keep the order of the scores. Their inputs are compared, which saturate less."""

_KEEPING = frozenset({"RESHAPE", "SQUEEZE", "EXPAND_DIMS", "QUANTIZE", "DEQUANTIZE"})
"""Operators behind these that keep their values."""


def scores_of(graph: Graph) -> int:
    """Return the tensor that holds a classifier's scores: its output, before a softmax."""
    output = graph.outputs[0]
    maker = graph.made_by.get(output)
    if maker is not None and graph.operators[maker].name in _NORMALIZING:
        return graph.fed(graph.operators[maker])[0]
    return output


def path_to_scores(graph: Graph, output: int) -> tuple[int, ...]:
    """Return the tensors from an output back to what it is the softmax or the like of.

    That is the last of them; the output alone where it is no softmax.
    """
    path = [output]
    while (maker := graph.made_by.get(path[-1])) is not None:
        operator = graph.operators[maker]
        if operator.name not in _NORMALIZING | _KEEPING or not graph.fed(operator):
            break
        path.append(graph.fed(operator)[0])
        if operator.name in _NORMALIZING:
            return tuple(path)
    return (output,)
