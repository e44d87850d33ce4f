"""How much of the margin's error each layer causes.

The margin is the score of the original's label less that of the compressed model's label. For the
share of a layer, the original runs twice from behind that layer: once with the layer's output as
the compressed model has it, once with the error of that layer taken out, and with all other
intermediate tensors as the compressed model has them. The difference of the two margins is what the
layer causes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from edgeflare.diagnose.original_layers import OriginalLayers, Real
from edgeflare.models.graph_parts import crossing_tensors
from edgeflare.models.graph_scores import scores_of
from edgeflare.models.tflite_graph import Graph


@dataclass(frozen=True, slots=True)
class MarginError:
    """By how much compression reduced the margin, and the shares of some layers in that.

    Attributes:
        size: the original's margin less the compressed model's, in real values of the scores (the
            inputs of a last softmax).
        shares: by position of the compressed model's operator, the share of `size` that its layer
            causes, of either sign. Over all layers and their whole differences, the shares add up
            to about 1.

    """

    size: float
    shares: Mapping[int, float]


def margin_error(
    original: OriginalLayers,
    pairs: Mapping[int, int],
    compressed_values: Mapping[int, Real],
    original_values: Mapping[int, Real],
    outputs: Mapping[int, tuple[Real, Real]],
) -> MarginError | None:
    """Return how much of the margin's error some layers cause.

    Args:
        original: runs the original's layers.
        pairs: position of the original's operator, by that of the compressed model's.
        compressed_values: outputs of the compressed model's layers, by the original's tensor.
        original_values: values of the original's tensors on the same input, input included.
        outputs: by position of the compressed model's operator, its output without the error of
            that layer, and with it.

    Returns:
        None where the scores of either model are not known, or do not differ.

    Raises:
        ProbeRefused, ProbeFailed: the original's layers do not run by themselves.

    """
    graph = original.graph
    scores = scores_of(graph)
    known = compressed_values.keys() & original_values.keys() & graph.made_by.keys()
    if scores not in known:
        return None
    wanted, got = original_values[scores].ravel(), compressed_values[scores].ravel()
    right, wrong = _labels(wanted, got)
    if wanted.size < 2:
        return None
    size = float((wanted[right] - wanted[wrong]) - (got[right] - got[wrong]))
    if not size:
        return None
    last = graph.made_by[scores]
    behind = [op for op in outputs if pairs[op] < last]
    ends = {op: outputs[op] for op in outputs if pairs[op] == last}
    if behind:
        state = {**original_values, **compressed_values}
        made = [
            original.tails(
                [pairs[op] for op in behind],
                scores,
                _given(graph, scores, [(pairs[op], outputs[op][which]) for op in behind], state),
            )
            for which in (0, 1)
        ]
        ends |= dict(zip(behind, zip(*made, strict=True), strict=True))
    shares = {}
    for op, (without, with_it) in ends.items():
        change = (without - with_it).ravel()
        shares[op] = float(change[right] - change[wrong]) / size
    return MarginError(size, shares)


def _labels(wanted: Real, got: Real) -> tuple[int, int]:
    """Return the labels of original and compressed model; the second class where they are equal."""
    right, wrong = int(wanted.argmax()), int(got.argmax())
    if right == wrong and got.size > 1:
        others = got.copy()
        others[right] = -np.inf
        wrong = int(others.argmax())
    return right, wrong


def _given(
    graph: Graph, scores: int, replaced: Sequence[tuple[int, Real]], state: Mapping[int, Real]
) -> list[Real]:
    """Return the inputs of the network's tails, each with the output of one operator replaced."""
    given = []
    for operator, values in replaced:
        made = graph.operators[operator].outputs[0]
        given += [
            values if tensor == made else state[tensor]
            for tensor in crossing_tensors(graph, operator, scores)
        ]
    return given
