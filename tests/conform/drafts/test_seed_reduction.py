"""Algorithm 1: models without what they repeat."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from drafting import check_sound, relu, relu_chain
from edgeflare.conform.drafts.cells import drawn_configuration
from edgeflare.conform.drafts.coverage import node_buckets
from edgeflare.conform.drafts.draft import FRESH, Draft, DraftNode, drafted
from edgeflare.conform.drafts.feeding import node_fed
from edgeflare.conform.drafts.model_reading import read_operators
from edgeflare.conform.drafts.node_graphs import NodeGraphs
from edgeflare.conform.drafts.seed_reduction import blocks, reduced
from edgeflare.conform.graphs.operator_graph import GraphValue

MODEL = Path(__file__).parents[3] / "examples" / "face_detection" / "compressed.tflite"


def test_blocks_end_where_a_single_tensor_leads_on() -> None:
    chain = relu_chain([(2, 3)] * 3)
    assert blocks(chain) == [range(1), range(1, 2), range(2, 3)]
    branched = Draft((relu((2, 3)), relu((2, 3), 0), relu((2, 3), 0), relu((2, 3), 2)))
    assert blocks(branched) == [range(1), range(1, 3), range(3, 4)]


def test_repeated_layers_of_a_block_go() -> None:
    branch = [relu((2, 3)), *[relu((2, 3), at) for at in range(4)]]
    draft = Draft((*branch, _sum_of(0, 4)))
    assert blocks(draft) == [range(1), range(1, 6)]
    short = reduced(draft, NodeGraphs())
    check_sound(short)
    assert [node.operator for node in short.nodes] == ["RELU", "RELU", "ADD"]
    assert short.nodes[-1].sources == (0, 1)


def test_layers_that_change_the_shape_stay() -> None:
    transposed = DraftNode("TRANSPOSE", "float32", {"shape": (2, 3), "perm": (1, 0)}, 0, (0,))
    again = DraftNode("TRANSPOSE", "float32", {"shape": (3, 2), "perm": (1, 0)}, 0, (1,))
    draft = Draft((relu((2, 3)), transposed, again, _sum_of(0, 2)))
    assert reduced(draft, NodeGraphs()) == draft


def test_a_chain_of_one_layer_is_that_layer() -> None:
    short = reduced(relu_chain([(2, 3)] * 6), NodeGraphs())
    # The first is fed by nothing and the second by a RELU, which are two kinds of edges.
    assert len(short.nodes) == 2
    check_sound(short)


def test_layers_of_other_buckets_stay() -> None:
    draft = Draft(
        (
            DraftNode("RELU", "float32", {"shape": (2, 3)}, 0, (FRESH,)),
            DraftNode("RELU", "float32", {"shape": (2, 3, 4)}, 0, (FRESH,)),
        )
    )
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


def _sum_of(first: int, second: int) -> DraftNode:
    """Return an ADD of the results of two nodes, (2, 3) in float."""
    value, rng = GraphValue("float32", (2, 3)), np.random.default_rng(0)
    while True:
        drawn = drawn_configuration(("ADD", "float32"), rng)
        assert drawn is not None
        node = DraftNode("ADD", "float32", drawn, 0, (first, second))
        fed = node_fed(node, {0: value, 1: value}, NodeGraphs())
        if fed is not None:
            return fed
