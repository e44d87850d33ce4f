"""Pages of sounds, arrays, texts, boxes and masks in a browser: heard, drawn and marked."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import Select

from edgeflare.domains.array_domain import ArrayDomain
from edgeflare.domains.audio.audio_domain import AudioDomain
from edgeflare.report.html.run_html import run_html
from edgeflare.run.load_document import load_document
from edgeflare.run.run_directory import RunDirectory
from forked_commands import forked_edgeflare
from stored_runs import chirp, noisy, stored_run
from structured_pages import structured_page
from structured_views import KINDS

pytestmark = [pytest.mark.browser, pytest.mark.slow]

RATE = 8_000
SECONDS = 0.5


@pytest.fixture(scope="module")
def sounds(tmp_path_factory: pytest.TempPathFactory) -> Path:
    seeds = [chirp(RATE, SECONDS, loudness=0.2 * n) for n in (1, 2)]
    found = [(seed, noisy(seed, 60)) for seed in seeds]
    return _page(tmp_path_factory.mktemp("sounds"), AudioDomain(RATE), found)


@pytest.fixture(scope="module")
def arrays(tmp_path_factory: pytest.TempPathFactory) -> Path:
    rng = np.random.default_rng(0)
    shapes = [(200, 3), (100,), (1,), (30, 40)]
    found = [tuple(rng.normal(size=(2, *shape)).astype(np.float32)) for shape in shapes]
    return _page(tmp_path_factory.mktemp("arrays"), ArrayDomain(), found)


def _page(folder: Path, domain: Any, found: Any) -> Path:
    path = folder / "report.html"
    path.write_text(run_html(*stored_run(folder, domain, found), {}), encoding="utf-8")
    return path


def test_sounds_play_from_the_page_alone(browser: Any, sounds: Path) -> None:
    """Seed, trigger and difference."""
    browser.open(sounds)
    for audio in browser.driver.find_elements(By.TAG_NAME, "audio")[:3]:
        assert browser.run("return arguments[0].readyState", audio) == 0, "read before it is heard"
        assert browser.play(audio) is True
        duration, played = browser.run(
            "return [arguments[0].duration, arguments[0].currentTime]", audio
        )
        assert duration == pytest.approx(SECONDS, abs=0.01)
        assert played == pytest.approx(duration, abs=0.01)
    assert browser.logged("browser") == []


def test_waveforms_and_spectrograms_are_drawn(browser: Any, sounds: Path) -> None:
    browser.open(sounds)
    drawn = browser.drawn_images()
    waves = [one for one in drawn if one[0].startswith("wave")]
    spectra = [one for one in drawn if one[0].startswith("spectrogram")]
    assert len(waves) == len(spectra) == 6
    assert all(0.05 < marked < 1 for _, marked, _ in waves)
    assert all(marked == 1 and colours > 20 for _, marked, colours in spectra)


@pytest.mark.parametrize(("width", "dark"), [(1280, False), (360, True)], ids=["light", "dark"])
@pytest.mark.parametrize("kind", ["sounds", "arrays"])
def test_it_can_be_read_in_every_window(
    browser: Any, request: pytest.FixtureRequest, kind: str, dark: bool, width: int
) -> None:
    browser.open(request.getfixturevalue(kind), width=width, dark=dark)
    assert {name: ratio for name, ratio in browser.contrasts().items() if ratio < 4.5} == {}
    assert browser.run("return document.documentElement.scrollWidth <= innerWidth")
    assert browser.logged("browser") == []


def test_an_enlarged_finding_has_its_players(browser: Any, sounds: Path) -> None:
    browser.open(sounds)
    browser.run("document.querySelector('#gallery .enlarge').click()")
    lens = browser.driver.find_element(By.ID, "lens")
    assert len(lens.find_elements(By.TAG_NAME, "audio")) == 3
    assert browser.run("return document.querySelector('#lens .spectrogram').clientWidth") > 600
    title = browser.driver.find_element(By.ID, "lens-title").text
    browser.run("document.querySelector('#lens audio').focus()")
    ActionChains(browser.driver).send_keys(Keys.ARROW_RIGHT).perform()
    assert browser.driver.find_element(By.ID, "lens-title").text == title, "the key is the player's"
    browser.run("document.querySelector('#lens [data-close]').focus()")
    ActionChains(browser.driver).send_keys(Keys.ARROW_RIGHT).perform()
    assert browser.driver.find_element(By.ID, "lens-title").text != title


def test_plots_are_as_wide_as_their_card_and_stay_within_it(browser: Any, arrays: Path) -> None:
    browser.open(arrays)
    sizes = browser.run("""
        return [...document.querySelectorAll(".plot svg")].map((svg) => {
          const box = (one) => one.getBoundingClientRect();
          const [card, paths] = [box(svg.closest(".card")), [...svg.querySelectorAll("path")]];
          const inside = paths.every((p) => box(p).left >= card.left && box(p).right <= card.right);
          return [svg.className.baseVal, box(svg).width, paths.length, inside];
        })
    """)
    curves = [one for one in sizes if one[0] == "curves"]
    bars = [one for one in sizes if one[0] == "bars"]
    assert (len(curves), len(bars)) == (3 + 6, 2)
    assert all(width > 250 for _, width, *_ in curves)
    assert all(paths >= 3 and inside for *_, paths, inside in sizes)
    assert sorted(width > 250 for _, width, *_ in bars) == [False, True], "one bar is not a card"


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
        made[task].write_text(run_html(document, directory, {}), encoding="utf-8")
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
    upon_a_picture = "text.[object SVGAnimatedString]"  # white with a black edge
    contrasts.pop(upon_a_picture, None)
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


@pytest.fixture(scope="module")
def searched_sounds(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The run directory of a search of the example in sound, explained and reported."""
    run = tmp_path_factory.mktemp("spoken_words") / "run"
    pair = Path(__file__).parents[3] / "examples" / "spoken_words"
    for command in (
        ("search", pair, "--first", 3, "--max-queries", 100, "--shrink", 0,
         "--within", "none", "--fail-on", "none", "--out", run),
        ("explain", run),
        ("report", run, "--html"),
    ):  # fmt: skip
        subprocess.run([forked_edgeflare(), *map(str, command)], check=True)
    return run


def test_a_real_search_is_heard_seen_and_explained(browser: Any, searched_sounds: Path) -> None:
    found = load_document(RunDirectory(searched_sounds)).findings
    assert found
    browser.open(searched_sounds / "report.html")
    driver = browser.driver
    cards = driver.find_elements(By.CSS_SELECTOR, "#gallery .card")
    assert len(cards) == len(found)
    for card in cards:
        assert len(card.find_elements(By.TAG_NAME, "audio")) == 3
        explained = card.find_element(By.CSS_SELECTOR, ".explained").text
        assert explained.startswith("Verdict: ")
    drawn = browser.drawn_images()
    waves = [marked for name, marked, _ in drawn if name.startswith("wave")]
    spectra = [colours for name, _, colours in drawn if name.startswith("spectrogram")]
    assert len(waves) == len(spectra) == 3 * len(found)
    assert all(0.0 < marked < 1.0 for marked in waves)
    assert all(colours > 20 for colours in spectra[:2])
    audio = cards[0].find_elements(By.TAG_NAME, "audio")[1]
    assert browser.play(audio) is True
    assert browser.run("return arguments[0].duration", audio) == pytest.approx(1.0, abs=0.01)
    assert browser.logged("browser") == []


def test_its_words_are_those_of_sounds(browser: Any, searched_sounds: Path) -> None:
    browser.open(searched_sounds / "report.html")
    text = browser.driver.find_element(By.TAG_NAME, "body").text
    assert "SNR" in text
    for word in ("pixel", "gray", "image", "PSNR"):
        assert word not in text
