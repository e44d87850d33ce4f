"""Pages of sounds and of arrays in a real browser: sounds play, and what is drawn can be seen."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

from edgeflare.domains.array.array_domain import ArrayDomain
from edgeflare.domains.audio.audio_domain import AudioDomain
from edgeflare.report.html.page import render_page
from stored_runs import chirp, noisy, stored_run

pytestmark = pytest.mark.browser

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
    path.write_text(render_page(*stored_run(folder, domain, found), {}), encoding="utf-8")
    return path


@pytest.mark.parametrize("which", [0, 1, 2], ids=["seed", "trigger", "difference"])
def test_a_sound_plays_from_the_page_alone(browser: Any, sounds: Path, which: int) -> None:
    browser.open(sounds)
    audio = browser.driver.find_elements(By.TAG_NAME, "audio")[which]
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


@pytest.mark.parametrize("width", [1280, 360])
@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
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
