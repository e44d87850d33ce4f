"""Rows of text that spreadsheets read, whatever they take for the separator of cells."""

from __future__ import annotations

import csv
import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgeflare.pages.csv_rows import csv_text

FORMULA = tuple("=+-@\uff1d\uff0b\uff0d\uff20")


@pytest.mark.parametrize("separator", [",", ";", "\t"])
@given(text=st.text("=-\uff0b;,\t\n\"'a "))
def test_no_cell_is_a_formula(separator: str, text: str) -> None:
    written = csv_text(("name", "file"), [{"name": "a", "file": text}])
    for row in csv.reader(io.StringIO(written, newline=""), delimiter=separator):
        assert not [cell for cell in row if cell.startswith(FORMULA)]


def test_what_begins_a_cell_is_guarded() -> None:
    written = [csv_text(("file",), [{"file": text}]) for text in ("\t=1", "=1", "a;=1", "a;1")]
    assert [one.split("\r\n")[1] for one in written] == ["'\t'=1", "'=1", "a;'=1", "a;1"]


@given(text=st.text(st.characters(exclude_categories=["C", "Z"])))
def test_other_texts_are_kept(text: str) -> None:
    written = csv_text(("file",), [{"file": f"a{text.replace(';', ',')}"}])
    (row,) = csv.DictReader(io.StringIO(written, newline=""))
    assert row["file"] == f"a{text.replace(';', ',')}"
