"""Which failing graphs are shrunk, and which a finding explains."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from edgeflare.conform.execution.kernel_arm import PosedModel
from edgeflare.conform.graphs.failing_graphs import FailingGraph, FailingGraphs
from edgeflare.conform.graphs.least_graph import LeastGraph
from edgeflare.conform.operator_graph import GraphNode, GraphValue, OperatorGraph
from edgeflare.conform.verdict.kernel_judgement import KernelJudgement

TENSOR = GraphValue("float32", (2, 3))
SUMMED = [("ADD", (0, 1), (2,)), ("SUM", (2,), (3,))]
"""A sum of two tensors, whose values are summed up."""

Nodes = Sequence[tuple[str, tuple[int, ...], tuple[int, ...]]]


def _graph(nodes: Nodes, outputs: tuple[int, ...]) -> OperatorGraph:
    made = {at for _, _, written in nodes for at in written}
    read = dict.fromkeys(at for _, several, _ in nodes for at in several)
    inputs = tuple(at for at in (*read, *outputs) if at not in made)
    values = (TENSOR,) * 12
    return OperatorGraph(
        values, tuple(GraphNode(*one) for one in nodes), tuple(dict.fromkeys(inputs)), outputs
    )


def _failing(
    nodes: Nodes, outputs: tuple[int, ...], wrong: tuple[int, ...], symptom: str = "wrong-values"
) -> FailingGraph:
    graph = _graph(nodes, outputs)
    operands = tuple(np.zeros((1, 2, 3), np.float32) for _ in graph.inputs)
    verdict = "crash" if symptom == "crash" else "device"
    said = KernelJudgement(verdict, symptom, counted=True)  # type: ignore[arg-type]
    return FailingGraph(PosedModel(graph, operands), said, "", wrong)


@pytest.mark.parametrize(
    ("nodes", "outputs", "reached"),
    [
        (SUMMED, (2, 3), {2, 3}),
        ([*SUMMED, ("NEG", (2,), (4,)), ("ABS", (5,), (6,))], (2, 3, 4, 6), {2, 3, 4}),
        ([("SUM", (0,), (1,)), ("ADD", (1, 2), (3,))], (1, 3), None),  # the other way round
        (SUMMED, (3,), None),  # what is summed up is no output
        ([("ADD", (0, 0), (2,)), ("SUM", (2,), (3,))], (2, 3), None),  # one tensor twice
        ([("ADD", (0, 1), (2,)), ("SUM", (0,), (3,))], (2, 3), None),  # not its result
    ],
)
def test_a_least_graph_is_recognized_by_how_it_hangs_together(
    nodes: Nodes, outputs: tuple[int, ...], reached: set[int] | None
) -> None:
    least = LeastGraph(_graph(SUMMED, (2, 3)), (2,))
    assert least.reached(_graph(nodes, outputs)) == reached


def test_an_operator_that_only_hands_on_stands_for_any() -> None:
    least = LeastGraph(_graph([("RESHAPE", (0,), (1,)), ("SLICE", (1,), (2,))], (1, 2)), (1,))
    conv = [("CONV_2D", (0, 5), (1,)), ("SLICE", (1,), (2,))]
    assert least.reached(_graph(conv, (1, 2))) == {1, 2}
    assert least.reached(_graph(conv, (2,))) is None
    written_over = [*conv[:1], ("SQUEEZE", (1,), (3,)), ("RESHAPE", (3,), (2,))]
    views = LeastGraph(_graph(written_over, (2,)), (2,))
    assert (
        views.reached(_graph([*conv[:1], ("NEG", (1,), (3,)), ("ABS", (3,), (2,))], (2,))) is None
    )


MANY = ("ABS", "COS", "EXP", "FLOOR", "LOG", "NEG", "RELU", "RSQRT", "SIN", "SQRT", "TANH")


def test_what_fails_as_no_other_does_is_shrunk_among_the_first() -> None:
    graphs = FailingGraphs()
    graphs.add(
        _failing([(first, (0,), (1,)), (second, (1,), (2,))], (1, 2), (0,))
        for second in ("SLICE", "PAD")
        for first in MANY
        for _ in range(4)
    )
    rare = _failing(SUMMED, (2, 3), (0,))
    graphs.add([rare])
    taken = graphs.take(counted=True)
    assert rare in taken[:4]
    names = [tuple(node.operator for node in one.model.graph.nodes) for one in taken]
    assert set(names[:2]) < {(first, second) for first in MANY for second in ("SLICE", "PAD")}
    assert len({second for _, second in names[:2]}) == 2


def test_what_a_finding_explains_is_set_aside_and_what_it_does_not_is_left() -> None:
    graphs = FailingGraphs()
    whole = [*SUMMED, ("NEG", (2,), (4,)), ("ABS", (5,), (6,))]
    explained = _failing(whole, (2, 3, 4, 6), (0, 2))
    besides = _failing(whole, (2, 3, 4, 6), (0, 3))
    crash = _failing(SUMMED, (2, 3), (), "crash")
    graphs.add([explained, besides, crash])
    least = LeastGraph(_graph(SUMMED, (2, 3)), (2,))
    assert graphs.explained(least, dear=False, invocation="") == [explained]
    assert graphs.take(counted=True) == [besides]
    assert graphs.take(counted=True) == [crash]  # each trial of it costs a process
    assert graphs.take(counted=True) == []


def test_a_crash_is_shrunk_behind_the_first_others_and_before_the_rest() -> None:
    graphs = FailingGraphs()
    for second in MANY:
        for first in MANY[:6]:
            nodes = [(first, (0,), (1,)), (second, (1,), (2,))]
            graphs.add([_failing(nodes, (1, 2), (0,))])
    graphs.add(
        [_failing([(each, (0,), (1,)), ("PAD", (1,), (2,))], (1, 2), (), "crash") for each in MANY]
    )
    taken = [graphs.take(counted=True) for _ in range(4)]
    crash = [any(one.said.symptom == "crash" for one in several) for several in taken]
    assert crash == [False, True, False, True]
    assert len(taken[1]) < len(taken[0])
