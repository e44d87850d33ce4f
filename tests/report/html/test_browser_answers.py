"""Texts, boxes and masks as a reader sees them: marked, drawn where they are, wide and narrow."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import Select

from edgeflare.report.html.page import render_page
from structured_pages import structured_page
from structured_views import KINDS

pytestmark = [pytest.mark.browser, pytest.mark.slow]

FRAMES = """
const [card] = arguments;
const figure = card.querySelectorAll(".shots.drawn figure")[1];
const picture = figure.querySelector("img").getBoundingClientRect();
return [...figure.querySelectorAll("g rect")].map((one) => {
  const box = one.getBoundingClientRect();
  return [(box.left - picture.left) / picture.width, (box.top - picture.top) / picture.height,
          (box.right - picture.left) / picture.width, (box.bottom - picture.top) / picture.height,
          parseFloat(getComputedStyle(one).strokeWidth), getComputedStyle(one).strokeDasharray];
});
"""

MASKS = """
const done = arguments[arguments.length - 1];
const painted = async (svg) => {
  const [image] = [...svg.querySelectorAll("image.mask")];
  const loaded = new Image();
  loaded.src = image.getAttribute("href");
  await loaded.decode();
  const below = svg.querySelector("use, image:not(.mask)");
  return [svg.getAttribute("aria-label"), getComputedStyle(image).imageRendering,
          below.getBoundingClientRect().width / svg.getBoundingClientRect().width];
};
Promise.all([...document.querySelectorAll("#gallery .card:first-child svg.upon")].map(painted))
  .then(done, (error) => done(String(error)));
"""

TRIGGER = "[aria-label*='on the trigger']"


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A page of each task; the findings of the detector are of two kinds."""
    made = {}
    for task in KINDS:
        folder = tmp_path_factory.mktemp(task)
        kinds = ("object-moved", "object-vanished") if task == "detection" else ()
        document, directory = structured_page(folder, task, kinds=kinds)
        made[task] = folder / "report.html"
        made[task].write_text(render_page(document, directory, {}), encoding="utf-8")
    return made


@pytest.mark.parametrize("task", KINDS)
@pytest.mark.parametrize("dark", [False, True])
def test_a_page_is_read_wide_and_narrow(
    browser: Any, pages: dict[str, Path], task: str, dark: bool
) -> None:
    for width in (1280, 390):
        browser.open(pages[task], width=width, dark=dark)
        assert browser.run("return document.documentElement.scrollWidth") <= width
        inside = (
            "return [...document.querySelectorAll('.card *')].every((one) => !one.checkVisibility()"
        )
        inside += " || one.closest('svg, .sr') || one.getBoundingClientRect().right <= innerWidth)"
        assert browser.run(inside)
    contrasts = browser.contrasts()
    contrasts.pop(
        "text.[object SVGAnimatedString]", None
    )  # white with a black edge, upon a picture
    assert min(contrasts.values()) >= 4.5, contrasts
    assert browser.logged("browser") == []


def test_words_that_differ_are_struck_out_or_underlined_below_the_player(
    browser: Any, pages: dict[str, Path]
) -> None:
    browser.open(pages["transcript"])
    card = browser.driver.find_element(By.CSS_SELECTOR, "#gallery .card")
    figure = card.find_elements(By.CSS_SELECTOR, "figure.sound")[1]
    assert figure.find_elements(By.TAG_NAME, "audio")
    lines = "return getComputedStyle(arguments[0]).textDecorationLine"
    for mark, line, words in (
        ("del", "line-through", ["two"]),
        ("ins", "underline", ["four", "five"]),
    ):
        marked = figure.find_elements(By.TAG_NAME, mark)
        assert [one.text for one in marked] == words
        assert {browser.run(lines, one) for one in marked} == {line}
    assert "one four three five" in figure.text


@pytest.mark.parametrize("width", [1280, 390])
def test_boxes_lie_where_the_objects_are(browser: Any, pages: dict[str, Path], width: int) -> None:
    browser.open(pages["detection"], width=width)
    card = browser.driver.find_element(By.CSS_SELECTOR, "#gallery .card")
    frames = browser.run(FRAMES, card)
    assert frames[0][:4] == pytest.approx([0.6, 0.6, 0.9, 0.9], abs=0.03)
    for frame in frames[1:]:
        assert frame[:4] == pytest.approx([0.1, 0.2, 0.5, 0.6], abs=0.03)
        assert frame[4] < frames[0][4]
    assert len({frame[5] for frame in frames}) == 3
    label = card.find_element(By.CSS_SELECTOR, "svg.boxes[aria-label*='in trigger']")
    assert "original: face 0.51, object vanished" in str(label.get_attribute("aria-label"))


def test_masks_cover_the_picture_and_are_not_smoothed(browser: Any, pages: dict[str, Path]) -> None:
    browser.open(pages["segmentation"])
    panels = browser.driver.execute_async_script(MASKS)
    assert len(panels) == 8
    for _, rendering, covered in panels:
        assert rendering == "pixelated"
        assert covered == pytest.approx(1, abs=0.02)
    assert "Device on the trigger: background 75.0%, person 25.0%" in {one[0] for one in panels}


def test_enlarged_findings_keep_boxes_and_masks(browser: Any, pages: dict[str, Path]) -> None:
    for task, part in (("detection", "svg.boxes"), ("segmentation", f"svg.upon{TRIGGER}")):
        browser.open(pages[task])
        browser.driver.find_element(By.CSS_SELECTOR, "#gallery .enlarge").send_keys(Keys.ENTER)
        shown = browser.driver.find_elements(By.CSS_SELECTOR, f"#lens {part}")
        assert shown
        assert all(one.size["width"] > 200 for one in shown)


def test_findings_are_chosen_by_kind(browser: Any, pages: dict[str, Path]) -> None:
    browser.open(pages["detection"])
    Select(browser.driver.find_element(By.NAME, "kind")).select_by_value("object-moved")
    cards = browser.driver.find_elements(By.CSS_SELECTOR, "#gallery .card")
    assert [one.get_attribute("data-seed") for one in cards if one.is_displayed()] == ["0"]


@pytest.mark.parametrize("task", KINDS)
def test_all_is_shown_without_scripts_and_in_print(
    browser: Any, pages: dict[str, Path], task: str
) -> None:
    part = {"transcript": "ins", "detection": ".over svg", "segmentation": "svg.upon"}[task]
    browser.command("Emulation.setScriptExecutionDisabled", value=True)
    try:
        browser.open(pages[task])
        browser.command("Emulation.setEmulatedMedia", media="print")
        shown = browser.driver.find_elements(By.CSS_SELECTOR, f"#gallery {part}")
        assert shown
        assert all(one.size["width"] > 0 and one.size["height"] > 0 for one in shown)
    finally:
        browser.command("Emulation.setEmulatedMedia", media="")
        browser.command("Emulation.setScriptExecutionDisabled", value=False)
