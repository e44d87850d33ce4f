"""The page of a conformance run: all of it is shown, as text, and readable in a browser."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from conformed_runs import (
    HALF_TRIED,
    conformance_fields,
    constructed_conformance,
    finding_entry,
    finding_fields,
)
from edgeflare.conform.presentation.conform_page import conform_page
from edgeflare.conform.presentation.conform_words import alike_findings
from edgeflare.conform.record.conform_document import ConformDocument, FoundFault
from edgeflare.pages.html_page import html_page
from parsed_pages import Parsed, asks_for_nothing, well_formed

HOSTILE = "<script>alert('x')</script>\"><img src=http://localhost/x>\x1b[31m"


def rendered(document: ConformDocument) -> Parsed:
    """The page, once it is well formed and asks for nothing."""
    parsed = well_formed(html_page(conform_page(document)))
    asks_for_nothing(parsed)
    return parsed


def marks(page: Parsed) -> dict[str, str]:
    """The marks of the map's cells, by their titles."""
    cells = [one for one in page.all("td") if str(one.get("class", "")).startswith("cell ")]
    return {str(one["title"]): str(one["class"]).split()[1] for one in cells}


def test_all_parts_are_in_it() -> None:
    page = rendered(constructed_conformance())
    assert "EdgeFlare kernel conformance on board" in page.text
    assert "1 fault in 1 operator, in 96 models of 2 operators and types" in page.text
    assert "It ended when all models that were asked for were drawn." in page.text
    assert "1. ADD uint8: wrong values" in page.text
    assert "when size ≥ 8, sum_ratio_log2 ≥ 7" in page.text
    assert "worst 255 steps" in page.text
    assert "wrong device, builtin" in page.text
    assert "models 50" in page.text
    assert "it took 31 runs on the device to find" in page.text
    assert "first_zero_point 255" in page.text
    assert "Didn't find op for builtin opcode" in page.text
    assert "runtime version 2.14.0" in page.text
    assert "models 96" in page.text


@pytest.mark.parametrize(
    ("changed", "mark"),
    [
        ({}, "fails"),
        ({"accepted": "a vendor's"}, "accepted"),
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


def test_findings_that_differ_by_one_operator_are_shown_together() -> None:
    def pair(number: int, second: str, wired: str, first: str = "SPLIT") -> FoundFault:
        name = f"{first} then {second}"
        return finding_entry(number, operator=name, condition=[], arrangement=[wired])

    several = [
        pair(1, "ADD", "ADD reads two results of one operator"),
        pair(2, "ADD", "the result of SPLIT is read and is an output"),
        pair(3, "SUB", "SUB reads two results of one operator"),
        pair(4, "ADD", "ADD reads two results of one operator", first="UNPACK"),
        pair(5, "MAXIMUM", "MAXIMUM reads two results of one operator"),
        finding_entry(6),
        finding_entry(7, operator="MUL"),
    ]
    groups = [[one.number for one in group] for group in alike_findings(several)]
    assert groups == [[1, 3, 5], [2], [4], [6], [7]]
    page = rendered(constructed_conformance(several))
    assert "alike 3 SPLIT then SUB uint8, 5 SPLIT then MAXIMUM uint8" in page.text
    assert "That of 3, SPLIT then SUB uint8" in page.text


def test_each_kind_of_finding_has_its_section() -> None:
    several = [
        finding_entry(),
        finding_entry(2, accepted="a vendor's"),
        finding_entry(3, verdict="shared", counted=False),
        finding_entry(4, verdict="undefined", counted=False, symptom="not-finite", worst=None),
        finding_entry(5, verdict="host", counted=False),
    ]
    page = rendered(constructed_conformance(several))
    named = [one["id"] for one in page.all("section")]
    assert named == [
        *("new", "accepted", "shared", "undefined", "host"),
        *("covered", "map", "refused", "ran"),
    ]
    assert "accepted a vendor's" in page.text
    assert "worst not finite" in page.text
    nothing = constructed_conformance(
        [], cells=[], refused=[], stopped_by="interrupt", model=HALF_TRIED
    )
    page = rendered(nothing)
    assert [one["id"] for one in page.all("section")] == ["covered", "map", "ran"]
    assert set(marks(page).values()) == {"untried"}
    assert "Mfcc × 2 (52 % of the arithmetic, the operator is not known)" in page.text


def test_hostile_names_stay_text() -> None:
    document = conformance_fields(warnings=[HOSTILE])
    hostile = finding_fields(detail=HOSTILE, condition=[HOSTILE], accepted=HOSTILE)
    hostile["smallest"]["operators"][0]["settings"][HOSTILE] = HOSTILE
    document["findings"] = [hostile]
    document["device"]["name"] = HOSTILE
    document["refused"][0]["message"] = HOSTILE
    text = html_page(conform_page(msgspec.convert(document, ConformDocument)))
    asks_for_nothing(well_formed(text))
    assert "<script" not in text
    assert "\x1b" not in text


READABLE = 4.5
"""The contrast of text that WCAG asks for, level AA."""

TYPES = ("float32", "int8", "uint8", "int16x8", "dynamic", "int32", "int64", "bool", "float16")


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A page with all marks, long conditions, and more types than a telephone is wide."""
    several = [
        finding_entry(condition=["a_very_long_name_of_a_setting > another_very_long_name_of_one"]),
        finding_entry(2, operator="EXP", type="int8", accepted="a vendor's"),
        finding_entry(3, operator="MUL", type="int8", verdict="shared", counted=False),
        finding_entry(4, operator="DIV", type="int8", verdict="host", counted=False),
    ]
    document = conformance_fields(several, warnings=["take care"])
    operators = ("ADD", "EXP", "MUL", "DIV", "SIGN", "RESIZE_NEAREST_NEIGHBOR")
    document["plan"]["cells"] = [[one, type_] for one in operators for type_ in TYPES]
    for one in document["findings"]:
        shape = list(range(1000, 1030))
        one["smallest"]["operators"][0]["settings"] |= {"long" * 20: "x" * 200, "shape": shape}
    document["refused"][0]["message"] = "unbroken_message_" * 20
    document["cells"] += [
        {"operator": one, "type": "int8", "verdicts": {"right": 1234}, "rounding": None,
         "rounding_unit": None}
        for one in ("MUL", "DIV")
    ]  # fmt: skip
    file = tmp_path_factory.mktemp("conform") / "conform.html"
    page = html_page(conform_page(msgspec.convert(document, ConformDocument)))
    file.write_text(page, encoding="utf-8")
    return file


@pytest.mark.parametrize(
    ("width", "dark"),
    [(1280, False), (1280, True), (360, False), (360, True)],
    ids=["wide light", "wide dark", "narrow light", "narrow dark"],
)
@pytest.mark.browser
@pytest.mark.slow
def test_it_is_readable_and_asks_for_nothing(
    browser: Any, page: Path, width: int, dark: bool
) -> None:
    browser.open(page, width=width, dark=dark)
    browser.run("document.querySelectorAll('details').forEach((one) => one.open = true)")
    browser.run("scrollTo(0, document.body.scrollHeight)")
    assert browser.logged("browser") == []
    assert browser.requested() == {page.as_uri()}
    assert browser.run("return document.documentElement.scrollWidth <= innerWidth")
    assert {kind: one for kind, one in browser.contrasts().items() if one < READABLE} == {}


@pytest.mark.browser
@pytest.mark.slow
def test_the_map_can_be_moved_by_the_keyboard(browser: Any, page: Path) -> None:
    browser.open(page, width=360)
    script = """
    const map = document.querySelector("#map .wide");
    map.focus();
    return [document.activeElement === map, map.scrollWidth > map.clientWidth];
    """
    assert browser.run(script) == [True, True]
