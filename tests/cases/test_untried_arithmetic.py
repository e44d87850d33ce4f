"""What `conform --from` cannot try of a model is named with its share and the reason."""

from __future__ import annotations

import pytest

from conformed_runs import constructed_conformance
from edgeflare.conform.drafts.cells import chosen_cells
from edgeflare.conform.drafts.model_reading import read_operators
from edgeflare.conform.rounds.conformance import Conformance
from edgeflare.conform.rounds.model_figures import model_figures, with_tried
from edgeflare.conform.shown.conform_words import headline, tried_words
from public_cases import CASES

UNTRIED = {
    "weights_zero_point": (
        {"FULLY_CONNECTED": "weights with the zero point 50"},
        "less than 1 % of the arithmetic of compressed.tflite can be tried (2 of 4 operators)",
    ),
    "int4_weights": (
        dict.fromkeys(("CONV_2D", "FULLY_CONNECTED"), "int4"),
        "less than 1 % of the arithmetic of compressed.tflite can be tried (2 of 5 operators)",
    ),
    "lstm_state": (
        {"UNIDIRECTIONAL_SEQUENCE_LSTM": "it keeps a state from one inference to the next"},
        "less than 1 % of the arithmetic of compressed.tflite can be tried (3 of 4 operators)",
    ),
    "composite_op": (
        {"STABLEHLO_COMPOSITE": "the operator is not known"},
        "more than 99 % of the arithmetic of compressed.tflite can be tried (4 of 5 operators)",
    ),
}


@pytest.mark.parametrize("case", UNTRIED)
def test_what_cannot_be_tried_is_named_with_the_reason(case: str) -> None:
    content = (CASES / case / "compressed.tflite").read_bytes()
    reading, cells = read_operators(content), chosen_cells()
    figures = model_figures("compressed.tflite", content, reading, cells)
    reasons, said = UNTRIED[case]
    assert tried_words(figures, "can be") == said
    for one in figures["untried"]:
        assert reasons[one["operator"]] in one["why"]
    assert {one["operator"] for one in figures["untried"]} == reasons.keys()
    nothing = with_tried(figures, reading, cells, Conformance())
    assert nothing["arithmetic_tried"] == nothing["operators_tried"] == 0
    assert sum(one["arithmetic"] for one in nothing["untried"]) == figures["arithmetic"]
    assert "nothing that computes in compressed.tflite was tried" in headline(
        constructed_conformance([], model=nothing)
    )
