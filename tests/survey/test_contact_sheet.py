"""The contact sheet: what is on the page, and how a browser shows it."""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest
from selenium.webdriver.common.by import By

from edgeflare.conditions.condition import Condition, changed_input, condition
from edgeflare.conditions.condition_choice import ChosenCondition
from edgeflare.conditions.condition_registry import own_conditions
from edgeflare.core.domain import Domain
from edgeflare.core.input_space import Input
from edgeflare.domains.array_domain import ArrayDomain
from edgeflare.domains.audio.audio_domain import AudioDomain
from edgeflare.domains.audio.wav_file import decode_wav
from edgeflare.domains.frames_domain import FramesDomain
from edgeflare.domains.image.image_domain import ImageDomain
from edgeflare.survey.presentation.condition_preview import MOST_PARTS, write_contact_sheet
from parsed_pages import Parsed
from stored_runs import chirp

RATE = 8_000
READABLE = 4.5
"""The contrast of text that WCAG asks for, level AA."""

SEVERITIES = (1, 3, 5)


@condition("dark", domain="image", summary="less light <b>&amp; colour</b>")
def dark(image: Input, severity: float, rng: np.random.Generator) -> Input:
    noise = rng.integers(0, 9, image.shape)
    return np.clip(image / severity + noise, 0, 255).astype(np.uint8)


def drawn(*shape: int) -> Input:
    return np.random.default_rng(0).integers(20, 250, shape).astype(np.uint8)


def named(domain: str, *names: str) -> list[Condition]:
    return [one for one in own_conditions(domain) if one.name in names]


SERIES = np.random.default_rng(0).normal(size=(60, 2)).astype(np.float32)
CASES: dict[str, tuple[Domain, list[Input], list[Condition]]] = {
    "image": (ImageDomain(), list(drawn(2, 24, 20, 3)), [dark]),
    "audio": (
        AudioDomain(RATE),
        [chirp(RATE, 0.2, loudness=0.2)],
        named("audio", "quiet", "white-noise"),
    ),
    "array": (ArrayDomain(), [SERIES], named("array", "drift", "spikes")),
    "values": (ArrayDomain(), [SERIES[:5, 0]], named("array", "offset")),
    "frames": (FramesDomain(), [drawn(7, 12, 12, 3)], named("frames", "flicker")),
}


def written(path: Path, name: str, chosen: list[ChosenCondition] | None = None) -> Parsed:
    """Write the contact sheet of a case, and take it apart."""
    domain, inputs, conditions = CASES[name]
    whole = [ChosenCondition(one.name, one, SEVERITIES) for one in conditions]
    write_contact_sheet(path, domain, inputs, chosen or whole, 7)
    return Parsed(path.read_text(encoding="utf-8"))


def surveyed(name: str) -> Iterator[Input]:
    """What a survey of a case asks about, in the order of the sheet."""
    domain, inputs, conditions = CASES[name]
    for one in inputs:
        for made in conditions:
            yield one
            yield from (changed_input(made, one, at, 7, domain.space) for at in SEVERITIES)


def decoded(address: str | None) -> Input:
    data = np.frombuffer(b64decode(str(address).partition(",")[2]), np.uint8)
    image = cv2.imdecode(data, cv2.IMREAD_UNCHANGED)
    assert image is not None
    return np.asarray(image[..., ::-1])


@pytest.fixture(scope="module", params=CASES)
def sheet(request: Any, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Path]:
    path = tmp_path_factory.mktemp("sheets") / f"{request.param}.html"
    written(path, request.param)
    return request.param, path


def test_there_is_a_cell_for_each_condition_and_severity_in_one_file_without_scripts(
    sheet: tuple[str, Path],
) -> None:
    _, inputs, conditions = CASES[sheet[0]]
    page = Parsed(sheet[1].read_text(encoding="utf-8"))
    assert page.open == []
    assert len(page.all("td")) >= len(inputs) * len(conditions) * (1 + len(SEVERITIES))
    columns = ["condition", "unchanged", "severity 1", "severity 3", "severity 5"]
    heads = [place for place, text in enumerate(page.texts) if text == columns[0]]
    assert [page.texts[head : head + 5] for head in heads] == [columns] * len(inputs)
    for one in conditions:
        assert page.texts.count(one.summary) == len(inputs)
    assert page.all("script") == []
    sources = [one["src"] or "" for tag in ("img", "audio") for one in page.all(tag)]
    assert all(source.startswith("data:") for source in sources)
    (policy,) = (one for one in page.all("meta") if one.get("http-equiv"))
    assert "default-src 'none'" in str(policy["content"])


def test_pictures_and_sounds_are_what_the_survey_asks_about(tmp_path: Path) -> None:
    page = written(tmp_path / "images.html", "image")
    for shown, image in zip(page.all("img"), surveyed("image"), strict=True):
        assert np.array_equal(decoded(shown["src"]), image)
    page = written(tmp_path / "sounds.html", "audio")
    for player, wave in zip(page.all("audio"), surveyed("audio"), strict=True):
        heard = decode_wav(b64decode(str(player["src"]).partition(",")[2]))
        assert heard is not None
        assert heard.sample_rate == RATE
        assert np.array_equal(heard.wave, wave)


def test_of_a_clip_some_frames_are_shown(tmp_path: Path) -> None:
    shown = written(tmp_path / "sheet.html", "frames").all("img")
    assert len(shown) == MOST_PARTS * (1 + len(SEVERITIES))
    (clip,) = CASES["frames"][1]
    for place, one in zip((0, 3, 6), shown[:MOST_PARTS], strict=True):
        assert np.array_equal(decoded(one["src"]), clip[place])


def test_each_condition_has_the_name_and_the_severities_that_the_survey_gives_it(
    tmp_path: Path,
) -> None:
    chosen = [ChosenCondition("dark", dark, (1, 3)), ChosenCondition("dusk", dark, (5,))]
    page = written(tmp_path / "sheet.html", "image", chosen)
    domain, (one, _), _ = CASES["image"]
    said = [str(shot["alt"]) for shot in page.all("img")]
    assert said[:5] == [
        "unchanged of input 1", "dark 1 of input 1", "dark 3 of input 1",
        "unchanged of input 1", "dusk 5 of input 1",
    ]  # fmt: skip
    shown = decoded(page.all("img")[4]["src"])
    assert np.array_equal(shown, changed_input(dark, one, 5, 7, domain.space))
    rows = page.page.split("<tr>")[2:4]
    cells = [[("<img" in cell) for cell in row.split("<td>")[1:]] for row in rows]
    assert cells == [[True, True, True, False], [True, False, False, True]]
    assert "".join(rows).count("not surveyed") == 3


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
    written(tmp_path / "sheet.html", "audio")
    browser.open(tmp_path / "sheet.html", width=800)
    players = browser.driver.find_elements(By.TAG_NAME, "audio")
    assert len(players) == 2 * (1 + len(SEVERITIES))
    assert browser.play(players[0]) is True
    table = browser.driver.find_element(By.CSS_SELECTOR, "div.wide")
    browser.run("arguments[0].focus()", table)
    assert browser.driver.switch_to.active_element == table
    assert browser.run("return arguments[0].scrollWidth > arguments[0].clientWidth", table)
