"""Operators that a device computes rightly by themselves, and wrongly one after the other.

An accelerator fuses neighbours, or lets a tensor share the memory of another one. Then each
operator by itself is right, and the fault begins where two of them are joined.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice, takewhile
from typing import Final

from edgeflare.diagnose.arm_probe import ProbedArm, State
from edgeflare.diagnose.layers.layer_figures import ErrorSums
from edgeflare.errors import UserError
from edgeflare.models.graph_parts import extract
from edgeflare.models.model_probe import ProbeFailed
from edgeflare.models.tflite_graph import Graph

_LONGEST: Final = 4
"""Operators from one to the one that reads it, both included, with what runs between them."""

_MOST_PARTS: Final = 120
"""Parts that are tried: a network of as many layers has about as many neighbours."""

WHOLE_DB: Final = 10.0
"""SQNR in decibels of a whole model's output below which roundings that add up are no reason."""

_JOINED_DB: Final = 20.0
"""SQNR in decibels of a few operators, one after the other, below which roundings are no reason."""


def wrong_together(
    graph: Graph,
    twin: ProbedArm,
    device: ProbedArm,
    state: State,
    stopped: Callable[[], bool],
) -> tuple[int, ...]:
    """Return two operators, one fed by the other, that are wrong together; none where none are.

    Args:
        graph: graph of the model.
        twin: the model on the host.
        device: the model on the device.
        state: the tensors of the twin on an input.
        stopped: whether to come to an end.

    """
    parts = islice(_neighbours(graph), _MOST_PARTS)
    for first, last in takewhile(lambda _: not stopped(), parts):
        try:
            part = extract(graph, first, last)
            if any(tensor not in state for tensor in part.inputs):
                continue
            wanted = twin.run_part(part, state, keep=False)
            got = device.run_part(part, state, keep=False)
        except (ProbeFailed, UserError):
            continue
        if far_apart(graph, wanted, got, _JOINED_DB):
            return first, last
    return ()


def far_apart(graph: Graph, wanted: State, got: State, least_db: float) -> bool:
    """Whether a tensor that both have has less signal to noise, or is not finite in one alone."""
    for tensor in wanted.keys() & got.keys():
        known, sums = graph.tensors[tensor], ErrorSums()
        sums.add(known.real(wanted[tensor]), known.real(got[tensor]))
        figures = sums.figures()
        if figures is not None and (
            figures.not_finite or (figures.sqnr_db is not None and figures.sqnr_db < least_db)
        ):
            return True
    return False


def _neighbours(graph: Graph) -> Iterator[tuple[int, int]]:
    """Yield positions of operators of which the second reads the first, the nearest first."""
    layers = [one.index for one in graph.layers]
    place = {index: at for at, index in enumerate(layers)}
    pairs = {
        (place[maker], place[one.index])
        for one in graph.layers
        for tensor in graph.fed(one)
        if (maker := graph.made_by.get(tensor)) in place
    }
    for first, last in sorted(pairs, key=lambda one: (one[1] - one[0], one)):
        if last - first < _LONGEST:
            yield layers[first], layers[last]
