"""The table of entries: each in a row, as a reader of CSV gets it back."""

from __future__ import annotations

import csv
import io
from copy import deepcopy
from typing import Any

import pytest

from documents import REFINED, REPLAY, Document, run_document
from edgeflare.report.csv_table import COLUMNS, csv_table
from edgeflare.run.run_document import from_json


@pytest.fixture
def document(run: Any) -> Document:
    copy: Document = deepcopy(run.document)
    copy["classes"] = ["ant", 'bee, "big"', "c\nat"]
    return copy


def read(document: Document) -> list[dict[str, str]]:
    reader = csv.DictReader(io.StringIO(csv_table(from_json(document)), newline=""), strict=True)
    rows = list(reader)
    assert reader.fieldnames == list(COLUMNS)
    return rows


def test_every_entry_has_a_row_and_every_figure_is_exact(document: Document) -> None:
    rows = read(document)
    entries = [*document["deviating_seeds"], *document["findings"]]
    assert [int(row["seed_id"]) for row in rows] == [entry["seed_id"] for entry in entries]
    lists = ["deviating seed"] * len(document["deviating_seeds"])
    assert [row["list"] for row in rows] == lists + ["finding"] * len(document["findings"])
    for row, entry in zip(rows, entries, strict=True):
        assert float(row["strength"]) == entry["strength"]
        assert int(row["queries"]) == entry["queries"]
        for name, distance in entry["distortion"].items():
            assert float(row[name]) == distance
        for arm, label in entry["labels"].items():
            assert int(row[arm]) == label
            assert row[f"{arm}_class"] == document["classes"][label]
            assert float(row[f"{arm}_probability"]) == entry["probabilities"][arm][label]
        assert row["operators"].split() == entry["operators"]
        assert row["sha256"] == entry["sha256"]


def test_what_is_unknown_stays_empty(document: Document) -> None:
    entry = document["findings"][0]
    entry |= {"kind": "crash", "strength": None, "seed_label": None}
    entry["labels"]["device"], entry["probabilities"]["device"] = None, []
    (row,) = read({**document, "findings": [entry], "deviating_seeds": []})
    assert row["kind"] == "crash"
    assert [row[name] for name in ("strength", "seed_label", "device", "device_class")] == [""] * 4
    assert row["refined"] == "False"


def test_refinement_has_its_columns(document: Document) -> None:
    entry = document["findings"][0]
    distance = {"l2": 4321.5, "linf": 200.0, "mean_abs": 9.0, "changed": 36}
    entry["refined"] = {**REFINED, "strength_before": 0.001, "distortion_before": distance}
    (row,) = read({**document, "findings": [entry], "deviating_seeds": []})
    assert (row["refined"], row["strength_before"], row["l2_before"]) == ("True", "0.001", "4321.5")


def test_gradients_have_columns_where_there_are_any(document: Document) -> None:
    first, second, *_ = document["findings"]
    first |= {"host_gradients": 8, "translated_evaluations": 20}
    text = csv_table(from_json({**document, "findings": [first, second]}))
    rows = [row for row in csv.DictReader(io.StringIO(text)) if row["list"] == "finding"]
    asked = {row["seed_id"]: (row["host_gradients"], row["translated_evaluations"]) for row in rows}
    assert asked == {str(first["seed_id"]): ("8", "20"), str(second["seed_id"]): ("", "")}


def test_entries_that_do_not_count_are_named_so(document: Document) -> None:
    first, second, *rest = document["findings"]
    nothing: Document = {
        "labels": {},
        "probabilities": {},
        "tied": {},
        "cause": None,
        "strength": None,
    }
    rows = read(
        {**document, "findings": rest, "flaky": [first], "unverified": [{**second, **nothing}]}
    )
    assert [row["list"] for row in rows][-2:] == ["flaky", "unverified"]
    assert rows[-1]["original"] == ""


def test_nothing_found_leaves_the_header(document: Document) -> None:
    assert read({**document, "findings": [], "deviating_seeds": []}) == []


def test_what_a_replay_mended_has_its_rows(document: Document) -> None:
    *rest, entry = document["findings"]
    document |= {"findings": rest, "replay": {**REPLAY, "mended": [entry]}}
    rows = read(document)
    assert [row["seed_id"] for row in rows if row["list"] == "mended"] == [str(entry["seed_id"])]


def test_targets_have_a_column_where_there_are_any() -> None:
    run = run_document(findings=[{"seed_target": "0.5, 2"}, {}])
    rows = list(csv.DictReader(io.StringIO(csv_table(run))))
    assert sorted(row["seed_target"] for row in rows) == ["", "0.5, 2"]
