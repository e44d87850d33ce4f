"""The line on what was folded."""

from __future__ import annotations

from edgeflare.report.folded_line import folded_line


def test_it_names_the_operators_and_what_was_proven() -> None:
    folded = {"operators": ["SHAPE", "PACK"], "equal_under": ["xnnpack", "builtin"], "inputs": 1}
    assert folded_line({"name": "pair", "folded_shapes": folded}) == (
        "shapes folded: SHAPE, PACK as constants; outputs equal to the file's own on 1 seed under"
        " the host's xnnpack, builtin kernels"
    )
    assert "on 16 seeds" in folded_line({"folded_shapes": {**folded, "inputs": 16}})


def test_a_pair_with_nothing_folded_has_none() -> None:
    assert folded_line({"name": "pair"}) == ""
