"""The names that every report uses."""

from __future__ import annotations

import pytest

from documents import finding
from edgeflare.report.entry_names import class_name, number, sort


@pytest.mark.parametrize(
    ("kind", "cause", "name"),
    [
        ("deviation", "kernel", "kernel"),
        ("deviation", None, "deviation"),
        ("crash", "kernel", "crash"),
        ("invalid-output", None, "invalid-output"),
    ],
)
def test_a_failure_is_sorted_by_its_kind(kind: str, cause: str | None, name: str) -> None:
    assert sort(finding(kind=kind, cause=cause)) == name


def test_a_class_without_a_name_is_a_number() -> None:
    assert [class_name(["ant"], label) for label in (0, 1, None)] == ["ant", "1", "–"]


def test_figures_are_rounded_to_be_read() -> None:
    assert [number(value) for value in (None, 1234.56, 0.04)] == ["–", "1,234.6", "0.0"]
    assert number(0.12345, 3) == "0.123"
