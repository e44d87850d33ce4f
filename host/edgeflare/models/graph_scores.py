"""Which tensor of a classifier holds its scores."""

from __future__ import annotations

from edgeflare.models.tflite_graph import Graph

_NORMALIZING = frozenset({"SOFTMAX", "LOGISTIC", "LOG_SOFTMAX"})
"""Last layers that keep the order of the scores. Their inputs are compared, which saturate less."""


def scores_of(graph: Graph) -> int:
    """Return the tensor that holds a classifier's scores: its output, before a softmax."""
    output = graph.outputs[0]
    maker = graph.made_by.get(output)
    if maker is not None and graph.operators[maker].name in _NORMALIZING:
        return graph.fed(graph.operators[maker])[0]
    return output
