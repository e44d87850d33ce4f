"""What is written as JSON is read again, whatever numbers it holds."""

from __future__ import annotations

from math import inf, isnan, nan
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgeflare.run.json_file import MOST, Schema, json_bytes, parse_json

ANY = Schema(None, lambda document: document)
NUMBERS = st.floats() | st.integers(-MOST, MOST)


def read(document: Any) -> Any:
    return parse_json(json_bytes(document), Path("document.json"), ANY)


@given(st.lists(st.dictionaries(st.text(st.characters(codec="ascii")), NUMBERS)))
def test_numbers_come_back_within_what_json_keeps(rows: list[dict[str, float]]) -> None:
    for row, again in zip(rows, read({"rows": rows})["rows"], strict=True):
        for key, value in row.items():
            wanted = None if isnan(value) else min(max(value, -MOST), MOST)
            assert again[key] == wanted


@pytest.mark.parametrize(
    ("value", "kept"), [(nan, None), (inf, MOST), (-inf, -MOST), (1e300, MOST), (0.5, 0.5)]
)
def test_what_is_not_finite_stays_json(value: float, kept: float | None) -> None:
    assert read({"a": [{"b": (value, "1e+99")}]}) == {"a": [{"b": [kept, "1e+99"]}]}
