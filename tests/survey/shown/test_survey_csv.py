"""Tests of edgeflare.survey.shown.survey_csv."""

from __future__ import annotations

import csv
import io

import pytest

from constructed_surveys import (
    constructed_document,
    constructed_facts,
    drawn_sample,
    rare_entry,
    with_distances,
    with_targets,
    without_original,
)
from edgeflare.survey.shown.survey_csv import COLUMNS, survey_csv


def test_each_slice_is_a_row_with_its_figures() -> None:
    facts = constructed_facts()
    document = constructed_document(facts, drawn_sample(facts, 0.3))
    rows = list(csv.DictReader(io.StringIO(survey_csv(document))))
    assert len(rows) == 2 + 2 + 3 + 7 + 4 + 2
    assert tuple(rows[0]) == COLUMNS
    overall = document["overall"]
    assert rows[0]["table"] == "overall"
    assert float(rows[0]["deviation"]) == overall["deviation"]["estimate"]
    assert float(rows[0]["kernel_high"]) == overall["kernel"]["high"]
    assert int(rows[0]["failed_seen"]) == overall["failed"]["seen"]
    assert float(rows[0]["accuracy_drop_low"]) == overall["accuracy"]["drop"]["low"]
    assert float(rows[0]["compression"]) == overall["compression"]["share"]
    cells = [row for row in rows if row["table"] == "by_cell"]
    assert [(row["condition"], row["severity"]) for row in cells[:3]] == [
        ("unchanged", "0"), ("fog", "1"), ("fog", "3"),
    ]  # fmt: skip
    assert {float(row["confidence"]) for row in cells} == {document["by_cell"]["confidence"]}
    assert [row["class"] for row in rows if row["table"] == "by_class"] == document["classes"]


def test_what_is_null_stays_empty() -> None:
    facts = with_distances(without_original(constructed_facts()))
    first = next(csv.DictReader(io.StringIO(survey_csv(constructed_document(facts)))))
    empty = ("deviation", "deviation_low", "deviation_seen", "compression", "labelled")
    assert {first[name] for name in (*empty, "device_accuracy", "twin_distance")} == {""}
    assert float(first["device_distance"]) > 0


def test_how_far_arms_are_from_targets_is_beside_their_accuracy() -> None:
    facts = with_targets(constructed_facts())
    document = constructed_document(facts, drawn_sample(facts, 0.3))
    first = next(csv.DictReader(io.StringIO(survey_csv(document))))
    accuracy = document["overall"]["accuracy"]
    assert float(first["accuracy_drop"]) == accuracy["drop"]["estimate"]
    far = accuracy["distance"]
    for name in ("original", "twin"):
        assert float(first[f"{name}_truth_distance"]) == far[name]
    assert float(first["device_truth_distance_high"]) == far["device"]["high"]


@pytest.mark.parametrize("name", ["=cmd()", "+1"])
def test_no_name_is_a_formula(name: str) -> None:
    document = constructed_document(constructed_facts(conditions=(name,), groups=(name, "b")))
    rows = list(csv.reader(io.StringIO(survey_csv(document))))
    assert any(cell == f"'{name}" for row in rows for cell in row)
    assert not any(cell.startswith(("=", "+")) for row in rows for cell in row)


def test_rare_events_are_the_last_row() -> None:
    facts = constructed_facts()
    *slices, last = csv.DictReader(io.StringIO(survey_csv(constructed_document(rare=rare_entry()))))
    assert (last["table"], last["name"], last["confidence"]) == ("rare", "rare events", "0.95")
    assert [last[f"deviation{end}"] for end in ("", "_low", "_high")] == [
        "0.00015", "0.0001", "0.000225",
    ]  # fmt: skip
    assert (last["ceiling"], last["unseen_share"], last["asked"]) == ("0.0021", "0.9", "2011")
    assert {row["ceiling"] for row in slices} == {""}
    plain = constructed_document(without_original(facts), rare=rare_entry())
    *_, last = csv.DictReader(io.StringIO(survey_csv(plain)))
    assert (last["deviation"], last["kernel"]) == ("", "0.00015")
