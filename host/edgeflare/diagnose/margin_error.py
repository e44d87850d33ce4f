"""How much of the margin's error each layer is to blame for.

The margin is the score of the label that the original gives less that of the label that the
compressed model gives. A layer's share of its error is the difference between what the original
would have made of two outputs of that layer, with what is wrong there and without, all else in the
middle being as the compressed model has it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from edgeflare.diagnose.original_layers import OriginalLayers, Real
from edgeflare.models.graph_parts import crossing_tensors
from edgeflare.models.tflite_graph import Graph

_NORMALIZING = frozenset({"SOFTMAX", "LOGISTIC", "LOG_SOFTMAX"})
"""Last layers that keep the order of the scores; what they are given tells more."""


@dataclass(frozen=True, slots=True)
class MarginError:
    """What compression took from the margin, and the layers that are asked about.

    Attributes:
        size: the original's margin less the compressed model's, in real values of the scores (what
            a last softmax is given).
        shares: by position of the compressed model's operator, how much of that its layer is to
            blame for. They are of either sign; of the whole differences of all layers they add up
            to about 1.

    """

    size: float
    shares: Mapping[int, float]


def scores_of(graph: Graph) -> int:
    """Return the tensor that has a classifier's scores: what it puts out, before a softmax."""
    output = graph.outputs[0]
    maker = graph.made_by.get(output)
    if maker is not None and graph.operators[maker].name in _NORMALIZING:
        return graph.fed(graph.operators[maker])[0]
    return output


def margin_error(
    original: OriginalLayers,
    pairs: Mapping[int, int],
    middle: Mapping[int, Real],
    seen: Mapping[int, Real],
    asked: Mapping[int, tuple[Real, Real]],
) -> MarginError | None:
    """Say how much of the margin's error some layers are to blame for.

    Args:
        original: runs the original's layers.
        pairs: by position of the compressed model's operator that of the original's.
        middle: what the compressed model's layers put out, by the original's tensor.
        seen: what the original's tensors hold on the same input, that input included.
        asked: by position of the compressed model's operator what it would have put out without
            what is wrong there, and with it.

    Returns:
        None where the scores of either model are not seen, or do not differ.

    Raises:
        ProbeRefused, ProbeFailed: the original's layers do not run by themselves.

    """
    graph = original.graph
    scores = scores_of(graph)
    if scores not in middle or scores not in seen or scores not in graph.made_by:
        return None
    wanted, got = seen[scores].ravel(), middle[scores].ravel()
    right, wrong = _labels(wanted, got)
    if wanted.size < 2:
        return None
    size = float((wanted[right] - wanted[wrong]) - (got[right] - got[wrong]))
    if not size:
        return None
    last = graph.made_by[scores]
    behind = [mine for mine in asked if pairs[mine] < last]
    ends = {mine: asked[mine] for mine in asked if pairs[mine] == last}
    if behind:
        state = {**seen, **middle}
        made = [
            original.ends(
                [pairs[mine] for mine in behind],
                scores,
                _given(graph, scores, [(pairs[mine], asked[mine][side]) for mine in behind], state),
            )
            for side in (0, 1)
        ]
        ends |= dict(zip(behind, zip(*made, strict=True), strict=True))
    shares = {}
    for mine, (without, with_it) in ends.items():
        moved = (without - with_it).ravel()
        shares[mine] = float(moved[right] - moved[wrong]) / size
    return MarginError(size, shares)


def _labels(wanted: Real, got: Real) -> tuple[int, int]:
    """Return the original's label and the compressed model's, or what is second to one label."""
    right, wrong = int(wanted.argmax()), int(got.argmax())
    if right == wrong and got.size > 1:
        others = got.copy()
        others[right] = -np.inf
        wrong = int(others.argmax())
    return right, wrong


def _given(
    graph: Graph, scores: int, replaced: Sequence[tuple[int, Real]], state: Mapping[int, Real]
) -> list[Real]:
    """Return what ends of the network are given, each with another output of one operator."""
    given = []
    for operator, values in replaced:
        made = graph.operators[operator].outputs[0]
        given += [
            values if tensor == made else state[tensor]
            for tensor in crossing_tensors(graph, operator, scores)
        ]
    return given
