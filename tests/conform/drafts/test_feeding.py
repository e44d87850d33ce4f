"""Nodes that are made to fit what feeds them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from drafting import check_sound, few_cells, relu, relu_chain
from edgeflare.conform.drafts.cells import drawn_configuration
from edgeflare.conform.drafts.draft import FRESH, Draft, DraftNode
from edgeflare.conform.drafts.feeding import node_fed, rederived
from edgeflare.conform.drafts.node_graphs import NodeGraphs, fits
from edgeflare.conform.graphs.operator_graph import GraphValue, Quantization
from edgeflare.conform.specification.settings import Configuration


def test_what_follows_a_changed_node_follows_it_in_turn() -> None:
    chain = relu_chain([(2, 3)] * 4)
    changed = (relu((4, 5, 6)), *chain.nodes[1:])
    draft = rederived(changed, NodeGraphs())
    assert draft is not None
    check_sound(draft)
    assert [node.configuration["shape"] for node in draft.nodes] == [(4, 5, 6)] * 4


def test_what_fits_stays_as_it_is() -> None:
    chain = relu_chain([(2, 3)] * 4)
    draft = rederived(chain.nodes, NodeGraphs())
    assert draft is not None
    assert all(one is other for one, other in zip(draft.nodes, chain.nodes, strict=True))


def test_a_node_that_cannot_read_its_source_gives_none() -> None:
    summed = DraftNode("RELU", "int8", drawn("RELU", "int8"), 0, (0,))
    assert rederived((relu((2, 3)), summed), NodeGraphs()) is None


def test_a_result_grows_no_larger_than_what_is_behind_it() -> None:
    wide = GraphValue("float32", (1, 64))
    tall = GraphValue("float32", (256, 1))
    add = DraftNode("ADD", "float32", drawn("ADD", "float32"), 0, (FRESH, FRESH))
    fed = node_fed(add, {0: wide, 1: tall}, NodeGraphs())
    assert fed is None or NodeGraphs().result(fed).size <= 4096


@pytest.mark.parametrize("operator", ["ADD", "CONCATENATION"])
@pytest.mark.parametrize("type_", ["float32", "int8"])
def test_all_operands_of_a_merging_operator_can_be_fed(operator: str, type_: str) -> None:
    graphs, rng = NodeGraphs(), np.random.default_rng(0)
    quantization = Quantization((0.25,), 3) if type_ == "int8" else None
    value = GraphValue(type_, (2, 3, 4), quantization)
    found = 0
    for _ in range(20):
        configuration = drawn_configuration((operator, type_), rng)
        assert configuration is not None
        node = DraftNode(operator, type_, configuration, 0, (FRESH, FRESH))
        fed = node_fed(node, {0: value, 1: value}, graphs)
        if fed is not None:
            found += 1
            assert all(fits(value, one) for one in graphs.operands(fed)[:2])
    assert found >= 10


@settings(max_examples=20)
@given(seed=st.integers(0, 2**32 - 1), cell=st.sampled_from(few_cells()))
def test_a_fed_node_is_sound(seed: int, cell: tuple[str, str]) -> None:
    graphs, rng = NodeGraphs(), np.random.default_rng(seed)
    one, other = (drawn_configuration(cell, rng) for _ in range(2))
    assert one is not None
    assert other is not None
    maker = DraftNode(*cell, one, 0, ())
    maker = replace(maker, sources=(FRESH,) * len(graphs.operands(maker)))
    reader = DraftNode(*cell, other, 1, (0,))
    draft = rederived((maker, reader), graphs)
    if draft is not None:
        check_sound(draft)
        assert draft.nodes[1].sources[0] == 0


def test_the_draft_of_fed_nodes_has_a_source_for_each_operand() -> None:
    draft = Draft((relu((2,)),))
    assert rederived((replace(draft.nodes[0], sources=()),), NodeGraphs()) == draft


def drawn(operator: str, type_: str) -> Configuration:
    configuration = drawn_configuration((operator, type_), np.random.default_rng(0))
    assert configuration is not None
    return configuration
