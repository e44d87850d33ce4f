"""Tests of edgeflare.repair.precision.residual: the block to blame that each repair names."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from edgeflare.repair.precision.residual import residual
from fault_injection import Planted, broken
from fitted_networks import judged
from tampering import edited


@pytest.mark.slow
def test_the_block_with_a_fault_is_blamed() -> None:
    network = judged("example").network
    healthy = residual(network)
    assert healthy is not None
    block = healthy["blocks"][1]
    tensor = network.graph.operators[block["operators"][0]].outputs[0]
    fault = Planted("scale off", network.graph.tensors[tensor].name, 2.0)
    found = residual(network.with_content(broken(network.content, fault)))
    assert found is not None
    assert found["blamed"] == block["name"]
    assert found["scores"][block["name"]] > 2 * healthy["scores"][block["name"]]
    assert found["scores"].keys() == {one["name"] for one in found["blocks"]}


def test_a_model_without_blocks_in_integers_has_none() -> None:
    network = judged("example").network
    assert residual(replace(network, content=network.original, rows=network.original_rows)) is None


def test_a_model_with_another_stride_than_its_original_has_none() -> None:
    """Its operators put out fewer values than those that they would be compared with."""

    def widened(model: Any) -> None:
        model.subgraphs[0].operators[3].builtinOptions.strideW = 99

    network = judged("example").network
    few = replace(network, rows=network.rows[:2], original_rows=network.original_rows[:2])
    assert residual(few.with_content(edited(network.content, widened))) is None
