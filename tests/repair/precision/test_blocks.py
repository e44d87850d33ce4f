"""Tests of edgeflare.repair.precision.blocks."""

from __future__ import annotations

from dataclasses import replace

import pytest

from edgeflare.errors import UserError
from edgeflare.repair.precision.blocks import blocks_of, operators_of
from fitted_networks import judged


def test_operators_that_carry_numbers_belong_to_the_block_behind_which_they_are() -> None:
    network = judged("example").network
    blocks = blocks_of(network)
    assert [one.name for one in blocks] == [
        "CONV_2D (operator 0)",
        "CONV_2D (operator 2)",
        "FULLY_CONNECTED (operator 8)",
        "FULLY_CONNECTED (operator 9)",
    ]
    assert [one.operators for one in blocks] == [(0, 1), (2, 3, 7), (8,), (9, 10)]


def test_a_sum_belongs_to_the_last_block_that_it_reads() -> None:
    network = judged("resnet").network
    graph = network.graph
    blocks = blocks_of(network)
    every = operators_of(blocks)
    assert len(set(every)) == len(every)
    sums = [one for one in graph.layers if one.name == "ADD"]
    assert sums
    for one in sums:
        (block,) = (block for block in blocks if one.index in block.operators)
        makers = {graph.made_by[tensor] for tensor in graph.fed(one)}
        assert max(makers) in block.operators
        assert len(makers.intersection(block.operators)) == 1


def test_a_model_that_computes_in_float_has_no_blocks() -> None:
    network = judged("example").network
    with pytest.raises(UserError, match="no operator with weights that computes on int8 numbers"):
        blocks_of(replace(network, content=network.original))
