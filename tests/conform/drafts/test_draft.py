"""Drafts: as graphs, fed by one another, and without what they repeat."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from drafting import binary, check_sound, few_cells, fresh, relu, relu_chain
from edgeflare.conform.drafts.baselines.memo_drawing import blocks, reduced
from edgeflare.conform.drafts.cell_pairs import allowed_pairs, example_pair
from edgeflare.conform.drafts.coverage import node_buckets
from edgeflare.conform.drafts.draft import (
    FRESH,
    Draft,
    DraftNode,
    NodeGraphs,
    drafted,
    fits,
    node_fed,
    rederived,
)
from edgeflare.conform.drafts.model_reading import read_operators
from edgeflare.conform.operator_graph import GraphValue, OperatorGraph, Quantization, Values
from edgeflare.conform.specification.activation_tensors import operand_values
from kernel_rows import kernel_answers

MODEL = Path(__file__).parents[3] / "examples" / "face_detection" / "compressed.tflite"


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
    pairs = allowed_pairs(few_cells())[:60]
    # A dimension of 0 may crash a kernel, which would be no fault of the graphs.
    drafts = [
        draft
        for draft in (Draft(example_pair(*pair) or ()) for pair in pairs)
        if all(value.size for value in drafted(draft).graph.values)
    ]
    models = [drafted(draft) for draft in drafts]
    first, second = ([model.alone[at] for model in models] for at in range(2))
    given = [[_values(input_, graph, rng) for input_ in graph.inputs] for graph in first]
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
    whole = kernel_answers([model.graph for model in models], fresh, tmp_path)
    assert len(whole) >= 40
    for answers, halves in zip(whole, in_turn, strict=True):
        assert answers[-1].tobytes() == halves[-1].tobytes()


def _values(at: int, graph: OperatorGraph, rng: np.random.Generator) -> Values:
    return operand_values(graph.values[at], "uniform", rng)


def test_what_follows_a_changed_node_follows_it_in_turn() -> None:
    chain, graphs = relu_chain([(2, 3)] * 4), NodeGraphs()
    same = rederived(chain.nodes, graphs)
    assert same is not None
    assert all(one is other for one, other in zip(same.nodes, chain.nodes, strict=True))
    draft = rederived((relu((4, 5, 6)), *chain.nodes[1:]), graphs)
    assert draft is not None
    check_sound(draft)
    assert [node.configuration["shape"] for node in draft.nodes] == [(4, 5, 6)] * 4
    # A source for each operand is put in, and what cannot read its source gives no draft.
    alone = relu((2,))
    assert rederived((replace(alone, sources=()),), graphs) == Draft((alone,))
    int8 = fresh(("RELU", "int8"), np.random.default_rng(0))
    quantized = DraftNode("RELU", "int8", int8, 0, (0,))
    assert rederived((relu((2, 3)), quantized), graphs) is None


def test_a_result_grows_no_larger_than_what_is_behind_it() -> None:
    wide = GraphValue("float32", (1, 64))
    tall = GraphValue("float32", (256, 1))
    fed = node_fed(binary("ADD", FRESH, FRESH), {0: wide, 1: tall}, NodeGraphs())
    assert fed is None or NodeGraphs().result(fed).size <= 4096


@pytest.mark.parametrize("operator", ["ADD", "CONCATENATION"])
@pytest.mark.parametrize("type_", ["float32", "int8"])
def test_all_operands_of_a_merging_operator_can_be_fed(operator: str, type_: str) -> None:
    graphs, rng = NodeGraphs(), np.random.default_rng(0)
    quantization = Quantization((0.25,), 3) if type_ == "int8" else None
    value = GraphValue(type_, (2, 3, 4), quantization)
    found = 0
    for _ in range(20):
        configuration = fresh((operator, type_), rng)
        node = DraftNode(operator, type_, configuration, 0, (FRESH, FRESH))
        fed = node_fed(node, {0: value, 1: value}, graphs)
        if fed is not None:
            found += 1
            assert all(fits(value, operand) for operand in graphs.operands(fed)[:2])
    assert found >= 10


@settings(max_examples=20)
@given(seed=st.integers(0, 2**32 - 1), cell=st.sampled_from(few_cells()))
def test_a_fed_node_is_sound(seed: int, cell: tuple[str, str]) -> None:
    graphs, rng = NodeGraphs(), np.random.default_rng(seed)
    one, other = (fresh(cell, rng) for _ in range(2))
    maker = DraftNode(*cell, one, 0, ())
    maker = replace(maker, sources=(FRESH,) * len(graphs.operands(maker)))
    reader = DraftNode(*cell, other, 1, (0,))
    draft = rederived((maker, reader), graphs)
    if draft is not None:
        check_sound(draft)
        assert draft.nodes[1].sources[0] == 0


def test_blocks_end_where_a_single_tensor_leads_on() -> None:
    chain = relu_chain([(2, 3)] * 3)
    assert blocks(chain) == [range(1), range(1, 2), range(2, 3)]
    branched = Draft((relu((2, 3)), relu((2, 3), 0), relu((2, 3), 0), relu((2, 3), 2)))
    assert blocks(branched) == [range(1), range(1, 3), range(3, 4)]


def test_repeated_layers_of_a_block_go() -> None:
    branch = [relu((2, 3)), *[relu((2, 3), at) for at in range(4)]]
    draft = Draft((*branch, binary("ADD", 0, 4)))
    assert blocks(draft) == [range(1), range(1, 6)]
    short = reduced(draft, NodeGraphs())
    check_sound(short)
    assert [node.operator for node in short.nodes] == ["RELU", "RELU", "ADD"]
    assert short.nodes[-1].sources == (0, 1)
    # The first is fed by nothing and the second by a RELU, which are two kinds of edges.
    short = reduced(relu_chain([(2, 3)] * 6), NodeGraphs())
    assert [node.sources for node in short.nodes] == [(FRESH,), (0,)]


def test_layers_of_other_shapes_or_buckets_stay() -> None:
    transposed = DraftNode("TRANSPOSE", "float32", {"shape": (2, 3), "perm": (1, 0)}, 0, (0,))
    again = DraftNode("TRANSPOSE", "float32", {"shape": (3, 2), "perm": (1, 0)}, 0, (1,))
    reshaped = Draft((relu((2, 3)), transposed, again, binary("ADD", 0, 2)))
    for draft in (reshaped, Draft((relu((2, 3)), relu((2, 3, 4))))):
        assert reduced(draft, NodeGraphs()) == draft


def test_what_a_model_covers_is_covered_without_what_it_repeats() -> None:
    reading = read_operators(MODEL.read_bytes())
    short = reduced(reading.draft, NodeGraphs(reading.given))
    drafted(short, reading.given)
    assert len(short.nodes) < len(reading.draft.nodes)
    assert {node.cell for node in short.nodes} == {node.cell for node in reading.draft.nodes}
    kept, whole = (
        {bucket for node in draft.nodes for bucket in node_buckets(node)}
        for draft in (short, reading.draft)
    )
    assert len(kept) >= 0.9 * len(whole)
