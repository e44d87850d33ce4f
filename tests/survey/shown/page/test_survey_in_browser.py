"""The page of a survey in a real browser: wide and narrow, light and dark, without a request."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from selenium.webdriver.common.by import By

from constructed_surveys import constructed_document, constructed_facts, drawn_sample
from edgeflare.run.load_document import load_document
from edgeflare.run.run_directory import RunDirectory
from edgeflare.survey.record.survey_file import read_survey
from edgeflare.survey.shown.page.survey_page import render_survey
from surveyed_runs import surveyed_run

pytestmark = [pytest.mark.browser, pytest.mark.slow]

READABLE = 4.5
"""The contrast of text that WCAG asks for, level AA."""


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = surveyed_run(tmp_path_factory.mktemp("survey") / "run")
    text = render_survey(read_survey(directory), directory, load_document(directory))
    file = directory.path / "survey.html"
    file.write_text(text, encoding="utf-8")
    return file


@pytest.fixture(scope="module")
def sampled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page of a survey whose rates have intervals."""
    facts = constructed_facts()
    document = constructed_document(facts, drawn_sample(facts, 0.3))
    file = tmp_path_factory.mktemp("sampled") / "survey.html"
    file.write_text(render_survey(document, RunDirectory(file.parent), None), encoding="utf-8")
    return file


@pytest.mark.parametrize(("width", "dark"), [(1280, False), (360, True)], ids=["light", "dark"])
def test_it_is_readable_and_asks_for_nothing(
    browser: Any, page: Path, width: int, dark: bool
) -> None:
    browser.open(page, width=width, dark=dark)
    browser.run("scrollTo({top: document.body.scrollHeight, behavior: 'instant'})")
    assert browser.logged("browser") == []
    assert browser.requested() == {page.as_uri()}
    assert browser.run("return document.documentElement.scrollWidth <= innerWidth")
    assert {kind: one for kind, one in browser.contrasts().items() if one < READABLE} == {}


def test_inputs_and_charts_are_drawn(browser: Any, page: Path) -> None:
    browser.open(page)
    drawn = browser.drawn_images()
    assert len(drawn) == 3 * 3 + 1
    assert all(opaque == 1.0 and colours > 5 for _, opaque, colours in drawn)
    charts = browser.driver.find_elements(By.CSS_SELECTOR, ".chart svg")
    assert len(charts) == 2
    for chart in charts:
        assert chart.size["width"] > 300
        assert "device" in {one.text for one in chart.find_elements(By.TAG_NAME, "text")}


def test_higher_rates_are_shaded_more(browser: Any, page: Path) -> None:
    browser.open(page)
    shaded = browser.run(
        "return [...document.querySelectorAll('td.heat')].map((cell) =>"
        " [parseFloat(cell.innerText), getComputedStyle(cell).backgroundColor])"
    )
    by_rate = [float(colour.rpartition("/")[2].rstrip(") ")) for _, colour in sorted(shaded)]
    assert by_rate == sorted(by_rate)
    assert by_rate[-1] > by_rate[0]


def test_a_legend_lies_over_no_line(browser: Any, page: Path) -> None:
    """Its texts stand above the highest mark and its limits, in all charts."""
    browser.open(page)
    places = browser.run(
        "return [...document.querySelectorAll('.chart svg')].map((svg) => {"
        " const names = /^(device|twin|original|by .*)$/;"
        " const texts = [...svg.querySelectorAll('text')]"
        ".filter((one) => names.test(one.textContent.trim()));"
        " const grid = [...svg.querySelectorAll('text')]"
        ".filter((one) => /%$/.test(one.textContent.trim()));"
        " const edge = (some, side) => some.map((one) => one.getBoundingClientRect()[side]);"
        " return [Math.max(...edge(texts, 'bottom')), Math.min(...edge(grid, 'top')), texts.length]"
        "})"
    )
    assert [count for _, _, count in places] == [3, 3]
    for bottom, highest_label, _ in places:
        assert bottom < highest_label


def test_the_unchanged_inputs_stand_under_no_severity(browser: Any, page: Path) -> None:
    browser.open(page)
    found = browser.run(
        "const row = [...document.querySelectorAll('#heat tr')];"
        "return row.map((one) => [one.children[0].innerText,"
        " one.getBoundingClientRect().top, one.querySelectorAll('td.heat').length])"
    )
    names = [name for name, _, _ in sorted(found, key=lambda one: one[1])]
    assert names == ["unchanged inputs", "condition", "fog", "dark"]
    assert [count for _, _, count in found] == [1, 0, 3, 3]


def test_tables_fit_into_a_small_screen(browser: Any, sampled: Path) -> None:
    """With intervals, failures, accuracy of each arm and harm, and differences between groups."""
    browser.open(sampled, width=1200)
    wide = browser.run(
        "return [...document.querySelectorAll('div.wide')].map((one) =>"
        " [one.ariaLabel, one.scrollWidth - one.clientWidth])"
    )
    assert len(wide) == 8
    assert [name for name, beyond in wide if beyond > 0] == []


def test_wide_tables_are_scrolled_by_keys(browser: Any, page: Path) -> None:
    browser.open(page, width=360)
    table = browser.driver.find_element(By.CSS_SELECTOR, "#heat div.wide")
    browser.run("arguments[0].focus()", table)
    assert browser.driver.switch_to.active_element == table
    assert browser.run("return arguments[0].scrollWidth > arguments[0].clientWidth", table)
