"""Drafts as graphs: whole, and each operator of it alone."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from drafting import few_covered, relu, relu_chain
from edgeflare.conform.drafts.draft import FRESH, Draft, drafted
from edgeflare.conform.drafts.pair_drawing import PairDrawing
from edgeflare.conform.graphs.operator_graph import OperatorGraph, Values
from edgeflare.conform.specification.operand_values import operand_values
from kernel_rows import kernel_answers


def test_what_no_operator_reads_is_answered() -> None:
    model = drafted(Draft((relu((2, 3)), relu((2, 3), 0), relu((2, 3), 0))))
    assert (len(model.graph.inputs), len(model.graph.outputs)) == (1, 2)
    assert [len(one.outputs) for one in model.alone] == [1, 1, 1]


def test_an_operator_cannot_read_a_tensor_of_another_shape() -> None:
    with pytest.raises(ValueError, match="cannot be read"):
        drafted(Draft((relu((2, 3)), relu((4,), 0))))
    assert len(drafted(relu_chain([(2, 3), (4,)])).graph.inputs) == 2


@pytest.mark.slow
def test_the_whole_answers_as_its_operators_do_one_after_the_other(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    # A dimension of 0 may crash a kernel, which would be no fault of the graphs.
    drafts = [
        draft
        for draft in PairDrawing(few_covered(), rng, 2).ask(60)
        if all(value.size for value in drafted(draft).graph.values)
    ]
    models = [drafted(draft) for draft in drafts]
    first, second = ([one.alone[at] for one in models] for at in range(2))
    given = [[_values(one, graph, rng) for one in graph.inputs] for graph in first]
    made = kernel_answers(first, given, tmp_path)
    read = [
        [
            answer[0] if source != FRESH else _values(one, graph, rng)
            for one, source in zip(graph.inputs, draft.nodes[1].sources, strict=True)
        ]
        for draft, graph, answer in zip(drafts, second, made, strict=True)
    ]
    in_turn = kernel_answers(second, read, tmp_path)
    fresh = [
        [*one, *(v for v, s in zip(other, draft.nodes[1].sources, strict=True) if s == FRESH)]
        for draft, one, other in zip(drafts, given, read, strict=True)
    ]
    whole = kernel_answers([one.graph for one in models], fresh, tmp_path)
    assert len(whole) >= 40
    for answers, halves in zip(whole, in_turn, strict=True):
        assert answers[-1].tobytes() == halves[-1].tobytes()


def _values(at: int, graph: OperatorGraph, rng: np.random.Generator) -> Values:
    return operand_values(graph.values[at], "uniform", rng)
