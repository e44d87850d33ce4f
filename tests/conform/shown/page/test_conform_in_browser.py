"""The page of a conformance run in a real browser: wide and narrow, without a request."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from conformed_runs import constructed_conformance, finding_entry
from edgeflare.conform.shown.page.conform_page import render_conformance

pytestmark = [pytest.mark.browser, pytest.mark.slow]

READABLE = 4.5
"""The contrast of text that WCAG asks for, level AA."""

TYPES = ("float32", "int8", "uint8", "int16x8", "dynamic", "int32", "int64", "bool", "float16")


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A page with all marks, long conditions, and more types than a telephone is wide."""
    several = [
        finding_entry(condition=["a_very_long_name_of_a_setting > another_very_long_name_of_one"]),
        finding_entry(2, operator="EXP", type="int8", known="a vendor's"),
        finding_entry(3, operator="MUL", type="int8", verdict="shared", counted=False),
        finding_entry(4, operator="DIV", type="int8", verdict="host", counted=False),
    ]
    document = constructed_conformance(several, warnings=["take care"])
    operators = ("ADD", "EXP", "MUL", "DIV", "SIGN", "RESIZE_NEAREST_NEIGHBOR")
    document["request"]["cells"] = [[one, type_] for one in operators for type_ in TYPES]
    for one in document["findings"]:
        shape = list(range(1000, 1030))
        one["smallest"]["operators"][0]["settings"] |= {"long" * 20: "x" * 200, "shape": shape}
    document["refused"][0]["message"] = "unbroken_message_" * 20
    document["cells"] += [
        {"operator": one, "type": "int8", "verdicts": {"right": 1234}, "rounding": None,
         "rounding_unit": ""}
        for one in ("MUL", "DIV")
    ]  # fmt: skip
    file = tmp_path_factory.mktemp("conform") / "conform.html"
    file.write_text(render_conformance(document), encoding="utf-8")
    return file


@pytest.mark.parametrize(
    ("width", "dark"),
    [(1280, False), (1280, True), (360, False), (360, True)],
    ids=["wide light", "wide dark", "narrow light", "narrow dark"],
)
def test_it_is_readable_and_asks_for_nothing(
    browser: Any, page: Path, width: int, dark: bool
) -> None:
    browser.open(page, width=width, dark=dark)
    browser.run("document.querySelectorAll('details').forEach((one) => one.open = true)")
    browser.run("scrollTo({top: document.body.scrollHeight, behavior: 'instant'})")
    assert browser.logged("browser") == []
    assert browser.requested() == {page.as_uri()}
    assert browser.run("return document.documentElement.scrollWidth <= innerWidth")
    assert {kind: one for kind, one in browser.contrasts().items() if one < READABLE} == {}


def test_the_map_can_be_moved_by_the_keyboard(browser: Any, page: Path) -> None:
    browser.open(page, width=360)
    script = """
    const map = document.querySelector("#map .wide");
    map.focus();
    return [document.activeElement === map, map.scrollWidth > map.clientWidth];
    """
    assert browser.run(script) == [True, True]
