"""Tests of edgeflare.repair.page.detail_parts: plain JSON values of any keys."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from edgeflare.repair.page.detail_parts import detail_parts
from edgeflare.repair.page.page_part import PagePart
from repaired_example import repair_by_shifts


def parts(details: dict[str, Any]) -> list[PagePart]:
    candidates = [{"name": "ranges", "details": {}}, {"name": "mixed", "details": details}]
    return list(detail_parts({"candidates": candidates, "classes": ["boot", "bag"]}))


def test_a_list_of_objects_is_a_table_and_the_rest_are_facts() -> None:
    path = [{"block": "conv_1", "score": 0.5}, {"block": "head", "micro_seconds": 12.25}]
    (part,) = parts({"precision": {"path": path, "direction": "forward", "steps_back": 2}})
    assert (part.title, part.facts) == (
        "Precision: mixed",
        (("direction", "forward"), ("steps back", "2")),
    )
    (table,) = part.tables
    assert table.title == "path"
    assert table.header == ["block", "score", "micro seconds"]
    assert table.rows == [["conv_1", "0.5", "–"], ["head", "–", "12.25"]]


def test_objects_by_name_are_a_table_too_and_classes_have_their_names() -> None:
    moved = {
        "pairs": [{"classes": [0, 1], "steps": 15}],
        "blocks": {"head": {"net": {"value": 0.25, "low": 0.125}}},
    }
    (part,) = parts({"precision": moved})
    pairs, blocks = part.tables
    assert pairs.rows == [["boot, bag", "15"]]
    assert blocks.rows == [["head", "value 0.25, low 0.125"]]


def test_shifts_are_shown_as_those_of_v1() -> None:
    document = repair_by_shifts()
    kept = {key: document[key] for key in ("repairers", "shifts", "inputs", "folds")}
    repairers, shifts, rest = parts({"shifts": kept})
    assert repairers.tables[0].rows[-1][0] == "shifts (the default)"
    assert shifts.tables[0].rows[0] == ("boot", "bag", "+15")
    assert ("folds", "5") in rest.facts


def test_without_details_there_is_no_part() -> None:
    assert parts({}) == []


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.floats(-9, 9) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=12,
)


@given(st.dictionaries(st.text(max_size=5), JSON, max_size=3))
def test_any_details_have_tables_whose_rows_fit_their_headers(details: dict[str, Any]) -> None:
    found = parts(details)
    assert len(found) == len(details)
    for part in found:
        for table in part.tables:
            assert table.rows
            for row in table.rows:
                assert len(row) == len(table.header)
                assert all(isinstance(cell, str) for cell in row)
