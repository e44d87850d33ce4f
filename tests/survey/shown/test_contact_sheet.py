"""The contact sheet: what is on the page, and how a browser shows it."""

from __future__ import annotations

from base64 import b64decode
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest
from selenium.webdriver.common.by import By

from edgeflare.conditions.condition import Condition, condition
from edgeflare.conditions.condition_choice import ChosenCondition
from edgeflare.conditions.condition_draw import changed_input
from edgeflare.conditions.condition_registry import own_conditions
from edgeflare.core.domain import Domain
from edgeflare.core.input import Input
from edgeflare.domains.array.array_domain import ArrayDomain
from edgeflare.domains.audio.audio_domain import AudioDomain
from edgeflare.domains.audio.wav_file import decode_wav
from edgeflare.domains.frames.frames_domain import FramesDomain
from edgeflare.domains.image.image_domain import ImageDomain
from edgeflare.survey.shown.contact_sheet import MOST_PARTS, write_contact_sheet
from parsed_pages import Parsed
from stored_runs import chirp

RATE = 8_000
READABLE = 4.5
"""The contrast of text that WCAG asks for, level AA."""


@condition("dark", domain="image", summary="less light <b>&amp; colour</b>")
def dark(image: Input, severity: float, rng: np.random.Generator) -> Input:
    noise = rng.integers(0, 9, image.shape)
    return np.clip(image / severity + noise, 0, 255).astype(np.uint8)


def images() -> list[Input]:
    rng = np.random.default_rng(0)
    return [rng.integers(20, 250, (24, 20, 3)).astype(np.uint8) for _ in range(2)]


def sounds() -> list[Input]:
    return [chirp(RATE, 0.2, loudness=0.2)]


def arrays() -> list[Input]:
    rng = np.random.default_rng(0)
    return [rng.normal(size=(60, 2)).astype(np.float32)]


def clips() -> list[Input]:
    rng = np.random.default_rng(0)
    return [rng.integers(0, 255, (7, 12, 12, 3)).astype(np.uint8)]


def named(domain: str, *names: str) -> list[Condition]:
    return [one for one in own_conditions(domain) if one.name in names]


SEVERITIES = (1, 3, 5)
CASES: dict[str, tuple[Domain, list[Input], list[Condition]]] = {
    "image": (ImageDomain(), images(), [dark]),
    "audio": (AudioDomain(RATE), sounds(), named("audio", "quiet", "white-noise")),
    "array": (ArrayDomain(), arrays(), named("array", "drift", "spikes")),
    "values": (ArrayDomain(), [arrays()[0][:5, 0]], named("array", "offset")),
    "frames": (FramesDomain(), clips(), named("frames", "flicker")),
}


def written(path: Path, name: str) -> Path:
    """Write the contact sheet of a case."""
    domain, inputs, conditions = CASES[name]
    chosen = [ChosenCondition(one.name, one, SEVERITIES) for one in conditions]
    write_contact_sheet(path, domain, inputs, chosen, 7)
    return path


@pytest.fixture(scope="module", params=CASES)
def sheet(request: Any, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Path]:
    path = tmp_path_factory.mktemp("sheets") / f"{request.param}.html"
    return request.param, written(path, request.param)


def test_there_is_a_cell_for_each_condition_and_severity_and_the_unchanged_input(
    sheet: tuple[str, Path],
) -> None:
    _, inputs, conditions = CASES[sheet[0]]
    page = Parsed(sheet[1].read_text(encoding="utf-8"))
    assert page.open == []
    rows = len(inputs) * len(conditions)
    assert len(page.all("td")) >= rows * (1 + len(SEVERITIES))
    columns = ["condition", "unchanged", "severity 1", "severity 3", "severity 5"]
    heads = [place for place, text in enumerate(page.texts) if text == columns[0]]
    assert [page.texts[head : head + 5] for head in heads] == [columns] * len(inputs)
    for one in conditions:
        assert page.texts.count(one.summary) == len(inputs)


def test_it_is_one_file_without_scripts(sheet: tuple[str, Path]) -> None:
    page = Parsed(sheet[1].read_text(encoding="utf-8"))
    assert page.all("script") == []
    sources = [one["src"] or "" for tag in ("img", "audio") for one in page.all(tag)]
    assert all(source.startswith("data:") for source in sources)
    (policy,) = (one for one in page.all("meta") if one.get("http-equiv"))
    assert "default-src 'none'" in str(policy["content"])


def test_the_pictures_are_what_the_survey_asks_about(tmp_path: Path) -> None:
    path = written(tmp_path / "sheet.html", "image")
    domain, inputs, _ = CASES["image"]
    shown = [
        decoded(str(one["src"])) for one in Parsed(path.read_text(encoding="utf-8")).all("img")
    ]
    expected = [
        image
        for one in inputs
        for image in (
            one,
            *(changed_input(dark, one, at, 7, domain.space) for at in SEVERITIES),
        )
    ]
    assert len(shown) == len(expected)
    for one, other in zip(shown, expected, strict=True):
        assert np.array_equal(one, other)


def test_each_condition_has_the_name_and_the_severities_that_the_survey_gives_it(
    tmp_path: Path,
) -> None:
    path = tmp_path / "sheet.html"
    domain, (one, _), _ = CASES["image"]
    chosen = [ChosenCondition("dark", dark, (1, 3)), ChosenCondition("dusk", dark, (5,))]
    write_contact_sheet(path, domain, [one], chosen, 7)
    page = Parsed(path.read_text(encoding="utf-8"))
    said = [str(shot["alt"]) for shot in page.all("img")]
    assert said == [
        "unchanged of input 1", "dark 1 of input 1", "dark 3 of input 1",
        "unchanged of input 1", "dusk 5 of input 1",
    ]  # fmt: skip
    shown = decoded(str(page.all("img")[4]["src"]))
    assert np.array_equal(shown, changed_input(dark, one, 5, 7, domain.space))
    rows = path.read_text(encoding="utf-8").split("<tr>")[2:]
    drawn = [[("<img" in cell) for cell in row.split("<td>")[1:]] for row in rows]
    assert drawn == [[True, True, True, False], [True, False, False, True]]
    assert path.read_text(encoding="utf-8").count("not surveyed") == 3


def test_the_sounds_are_what_the_survey_asks_about(tmp_path: Path) -> None:
    path = written(tmp_path / "sheet.html", "audio")
    domain, (one,), conditions = CASES["audio"]
    players = Parsed(path.read_text(encoding="utf-8")).all("audio")
    expected = [
        wave
        for made in conditions
        for wave in (one, *(changed_input(made, one, at, 7, domain.space) for at in SEVERITIES))
    ]
    for player, wave in zip(players, expected, strict=True):
        heard = decode_wav(b64decode(str(player["src"]).partition(",")[2]))
        assert heard is not None
        assert heard.sample_rate == RATE
        assert np.array_equal(heard.wave, wave)


def decoded(address: str) -> Input:
    data = np.frombuffer(b64decode(address.partition(",")[2]), np.uint8)
    image = cv2.imdecode(data, cv2.IMREAD_UNCHANGED)
    assert image is not None
    return np.asarray(image[..., ::-1])


def test_of_a_clip_some_frames_are_shown(tmp_path: Path) -> None:
    path = written(tmp_path / "sheet.html", "frames")
    shown = Parsed(path.read_text(encoding="utf-8")).all("img")
    assert len(shown) == MOST_PARTS * (1 + len(SEVERITIES))
    (clip,) = CASES["frames"][1]
    for place, one in zip((0, 3, 6), shown[:MOST_PARTS], strict=True):
        assert np.array_equal(decoded(str(one["src"])), clip[place])


@pytest.mark.browser
@pytest.mark.parametrize(
    ("width", "dark_page"), [(1280, False), (360, True)], ids=["light", "dark"]
)
def test_it_is_readable_and_asks_for_nothing(
    browser: Any, sheet: tuple[str, Path], width: int, dark_page: bool
) -> None:
    name, path = sheet
    browser.open(path, width=width, dark=dark_page)
    drawn = browser.drawn_images()
    assert bool(drawn) == (name not in {"array", "values"})
    assert all(opaque > 0.0 for _, opaque, _ in drawn)
    assert browser.logged("browser") == []
    assert browser.requested() == {path.as_uri()}
    assert browser.run("return document.documentElement.scrollWidth <= innerWidth")
    assert {kind: one for kind, one in browser.contrasts().items() if one < READABLE} == {}


@pytest.mark.browser
def test_its_sounds_play_and_its_table_is_scrolled_by_keys(browser: Any, tmp_path: Path) -> None:
    path = written(tmp_path / "sheet.html", "audio")
    browser.open(path, width=800)
    players = browser.driver.find_elements(By.TAG_NAME, "audio")
    assert len(players) == 2 * (1 + len(SEVERITIES))
    assert browser.play(players[0]) is True
    table = browser.driver.find_element(By.CSS_SELECTOR, "div.wide")
    browser.run("arguments[0].focus()", table)
    assert browser.driver.switch_to.active_element == table
    assert browser.run("return arguments[0].scrollWidth > arguments[0].clientWidth", table)
