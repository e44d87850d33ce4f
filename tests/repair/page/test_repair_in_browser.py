"""The page of a repair in a real browser: wide and narrow, light and dark, without a request."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from selenium.webdriver.common.by import By

from edgeflare.repair.page.repair_page import render_repair
from edgeflare.repair.repair_file import read_repair
from edgeflare.run.run_directory import RunDirectory
from repaired_example import repair_by_shifts, repaired_example

__all__ = ["repaired_example"]

pytestmark = [pytest.mark.browser, pytest.mark.slow]

READABLE = 4.5
"""The contrast of text that WCAG asks for, level AA."""


@pytest.fixture(scope="module")
def pages(repaired_example: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The page of a repair by fitting, and that of one by shifts."""
    folder = tmp_path_factory.mktemp("pages")
    directory = RunDirectory(repaired_example)
    documents = {"fitting": read_repair(directory), "shifts": repair_by_shifts()}
    for name, document in documents.items():
        text = render_repair(document, directory)
        (folder / f"{name}.html").write_text(text, encoding="utf-8")
    return {name: folder / f"{name}.html" for name in documents}


@pytest.mark.parametrize("name", ["fitting", "shifts"])
@pytest.mark.parametrize(("width", "dark"), [(1280, False), (360, True)], ids=["light", "dark"])
def test_it_is_readable_and_asks_for_nothing(
    browser: Any, pages: dict[str, Path], name: str, width: int, dark: bool
) -> None:
    page = pages[name]
    browser.open(page, width=width, dark=dark)
    browser.run("scrollTo({top: document.body.scrollHeight, behavior: 'instant'})")
    assert browser.logged("browser") == []
    assert browser.requested() == {page.as_uri()}
    assert browser.run("return document.documentElement.scrollWidth <= innerWidth")
    assert {kind: one for kind, one in browser.contrasts().items() if one < READABLE} == {}


def test_each_input_is_drawn_and_the_figure_is_seen(browser: Any, pages: dict[str, Path]) -> None:
    browser.open(pages["fitting"])
    drawn = browser.drawn_images()
    assert len(drawn) == len(browser.driver.find_elements(By.CSS_SELECTOR, ".card"))
    assert all(opaque == 1.0 and colours > 5 for _, opaque, colours in drawn)
    figure = browser.driver.find_element(By.CSS_SELECTOR, ".front svg")
    assert figure.size["width"] > 400
    assert figure.size["height"] > 200
    labels = {one.text for one in figure.find_elements(By.TAG_NAME, "text")}
    assert {"weights-only", "rounding+weights-only", "before"} <= labels


def test_wide_tables_are_scrolled_by_keys(browser: Any, pages: dict[str, Path]) -> None:
    browser.open(pages["fitting"], width=360)
    table = browser.driver.find_element(By.CSS_SELECTOR, "#candidates div.wide")
    browser.run("arguments[0].focus()", table)
    assert browser.driver.switch_to.active_element == table
    assert browser.run("return arguments[0].scrollWidth > arguments[0].clientWidth", table)
