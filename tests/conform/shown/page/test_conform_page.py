"""Tests of edgeflare.conform.shown.page.conform_page: all of the run is shown, and as text."""

from __future__ import annotations

from typing import Any

import pytest

from conformed_runs import HALF_TRIED, constructed_conformance, finding_entry
from edgeflare.conform.shown.page.conform_page import render_conformance
from parsed_pages import Parsed, asks_for_nothing, well_formed

HOSTILE = "<script>alert('x')</script>\"><img src=http://localhost/x>\x1b[31m"


def rendered(document: dict[str, Any]) -> Parsed:
    """The page, once it is well formed and asks for nothing."""
    parsed = well_formed(render_conformance(document))
    asks_for_nothing(parsed)
    return parsed


def marks(page: Parsed) -> dict[str, str]:
    """The marks of the map's cells, by their titles."""
    cells = [one for one in page.all("td") if str(one.get("class", "")).startswith("cell ")]
    return {str(one["title"]): str(one["class"]).removeprefix("cell ") for one in cells}


def test_all_parts_are_in_it() -> None:
    page = rendered(constructed_conformance())
    assert "EdgeFlare kernel conformance on board" in page.text
    assert "1 fault in 1 operator, in 96 models of 2 operators and types" in page.text
    assert "It ended when all models that were asked for were drawn." in page.text
    assert "1. ADD uint8: wrong values" in page.text
    assert "When: size ≥ 8, sum_ratio_log2 ≥ 7" in page.text
    assert "worst error 255 steps" in page.text
    assert "wrong device, builtin" in page.text
    assert "failing models 50" in page.text
    assert "it took 31 runs on the device to find" in page.text
    assert "first_zero_point 255" in page.text
    assert "Didn't find op for builtin opcode" in page.text
    assert "runtime version 2.14.0" in page.text
    assert "models 96" in page.text


@pytest.mark.parametrize(
    ("changed", "mark"),
    [
        ({}, "fails"),
        ({"known": "a vendor's"}, "known"),
        ({"verdict": "shared", "counted": False}, "shared"),
        ({"verdict": "host", "counted": False}, "host"),
    ],
)
def test_the_map_marks_what_fails(changed: dict[str, Any], mark: str) -> None:
    page = rendered(constructed_conformance([finding_entry(**changed)]))
    assert marks(page) == {
        "50 device, 14 right": mark,
        "16 right": "right",
        "all 16 models were refused": "refused",
    }


def test_each_kind_of_finding_has_its_section() -> None:
    several = [
        finding_entry(),
        finding_entry(2, known="a vendor's"),
        finding_entry(3, verdict="shared", counted=False),
        finding_entry(4, verdict="undefined", counted=False, symptom="not finite", worst=None),
        finding_entry(5, verdict="host", counted=False),
    ]
    page = rendered(constructed_conformance(several))
    named = [one["id"] for one in page.all("section")]
    assert named == ["new", "known", "shared", "undefined", "host", "map", "refused", "ran"]
    assert "Known: a vendor's" in page.text
    assert "worst error not finite" in page.text


def test_a_run_without_anything_is_a_page_too() -> None:
    nothing = constructed_conformance([], cells=[], refused=[], stopped_by="interrupt")
    page = rendered(nothing)
    assert [one["id"] for one in page.all("section")] == ["map", "ran"]
    assert set(marks(page).values()) == {"untried"}


def test_the_model_that_was_named_is_told_of() -> None:
    page = rendered(constructed_conformance([], model=HALF_TRIED))
    assert "48 % of the arithmetic of kws.tflite was tried (3 of 4 operators)" in page.text
    assert "Mfcc × 2 (52 % of the arithmetic, the operator is not known)" in page.text


def test_hostile_names_stay_text() -> None:
    hostile = finding_entry(detail=HOSTILE, condition=[HOSTILE], known=HOSTILE)
    hostile["smallest"]["operators"][0]["settings"][HOSTILE] = HOSTILE
    document = constructed_conformance([hostile], warnings=[HOSTILE])
    document["device"]["name"] = HOSTILE
    document["refused"][0]["message"] = HOSTILE
    text = render_conformance(document)
    asks_for_nothing(well_formed(text))
    assert "<script" not in text
    assert "\x1b" not in text
