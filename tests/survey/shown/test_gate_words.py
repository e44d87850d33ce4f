"""What a survey says in words of one of its gates."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest

from constructed_surveys import constructed_document, gate_entry
from edgeflare.survey.shown.gate_words import gate_name, next_step
from edgeflare.survey.shown.survey_junit import survey_junit
from edgeflare.survey.shown.survey_summary import survey_summary
from edgeflare.survey.shown.survey_terminal import gate_lines

PART = {
    **gate_entry("rate<0.1 under weather at severity 3", "held", "it is", ["fog", "snow"]),
    "left_out": ["frost"],
}


def test_a_gate_names_what_is_surveyed_of_its_set() -> None:
    said = "rate<0.1 under weather at severity 3 (of weather only fog, snow)"
    assert gate_name(PART) == said
    assert gate_name({**PART, "left_out": []}) == PART["gate"]


@pytest.mark.parametrize(
    "shown",
    [
        lambda document: "\n".join(gate_lines(document)),
        survey_summary,
        lambda document: survey_junit(document).decode(),
    ],
    ids=["terminal", "summary", "junit"],
)
def test_every_report_says_that_only_a_part_is_surveyed(
    shown: Callable[[Mapping[str, Any]], str],
) -> None:
    assert "(of weather only fog, snow)" in shown(constructed_document(gates=[PART]))
    whole = constructed_document(gates=[{**PART, "left_out": []}])
    assert "only fog" not in shown(whole)


@pytest.mark.parametrize(
    ("ended", "said"),
    [
        ("device-queries", "--out RUN --resume and a larger --device-queries goes on"),
        ("time-limit", "--out RUN --resume and a longer --time-limit goes on"),
        ("precision", "--out RUN --resume and a smaller --precision goes on"),
        ("interrupt", "--out RUN --resume goes on"),
    ],
)
def test_an_undecided_gate_says_what_to_type(ended: str, said: str) -> None:
    gate = gate_entry("rate<0.1", "undecided", "it is open")
    document = constructed_document(gates=[gate], stopped_by=ended)
    assert next_step(document, gate).endswith(f"the same command with {said}")
    assert said in "".join(gate_lines(document))
    assert next_step(document, {**gate, "state": "not held"}) == ""
