"""Pages of sounds and of arrays: one file, in words that fit, with the answers of any task."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

from edgeflare.core.answer_view import ClassesView, RegressionView, ThresholdView
from edgeflare.domains.array.array_domain import ArrayDomain
from edgeflare.domains.audio.audio_domain import AudioDomain
from edgeflare.report.html import card, page_allowance
from edgeflare.report.html.page import render_page
from edgeflare.report.html.page_allowance import PageAllowance
from edgeflare.run.run_directory import RunDirectory
from edgeflare.run.run_document import RunDocument
from stored_runs import chirp, noisy, stored_run

pytestmark = pytest.mark.slow

RATE = 8_000


@pytest.fixture(scope="module")
def sounds(tmp_path_factory: pytest.TempPathFactory) -> tuple[RunDocument, RunDirectory]:
    seeds = [chirp(RATE, loudness=0.1 * n) for n in (1, 2, 3)]
    found = [(seed, noisy(seed, 60)) for seed in seeds]
    folder = tmp_path_factory.mktemp("sounds")
    return stored_run(folder, AudioDomain(RATE), found, [chirp(RATE)])


@pytest.fixture(scope="module")
def arrays(tmp_path_factory: pytest.TempPathFactory) -> tuple[RunDocument, RunDirectory]:
    rng = np.random.default_rng(0)
    shapes = [(50, 3), (30,), (1,)]
    found = [tuple(rng.normal(size=(2, *shape)).astype(np.float32)) for shape in shapes]
    folder = tmp_path_factory.mktemp("arrays")
    return stored_run(folder, ArrayDomain(), found, [np.zeros(4, np.float32)])


def test_a_page_of_sounds_has_images_and_players_and_asks_for_nothing(
    sounds: tuple[RunDocument, RunDirectory],
) -> None:
    page = render_page(*sounds, {})
    assert page.count("<audio ") == 3 * 3 + 1
    assert page.count('class="wave smooth"') == page.count('class="spectrogram smooth"') == 10
    assert re.search(r"default-src 'none'; img-src data:; media-src data:;", page)
    sources = re.findall(r'\bsrc="([^"]*)"', page)
    assert sources
    assert all(source.startswith("data:") for source in sources)
    assert "Not in this page" not in page
    assert "can be listened to here" not in page


def test_images_are_named_where_inputs_are_images_only(
    sounds: tuple[RunDocument, RunDirectory], arrays: tuple[RunDocument, RunDirectory]
) -> None:
    for document, directory in (sounds, arrays):
        page = render_page(document, directory, {})
        body = re.sub(r"<style>.*?</style>|<script>.*?</script>", "", page, flags=re.DOTALL)
        text = re.sub(r"<[^>]*>", " ", body)
        for word in ("image", "pixel", "gray level"):
            assert word not in text, word
    assert "samples" in render_page(*sounds, {})


def test_the_first_findings_have_players_and_the_others_name_their_files(
    sounds: tuple[RunDocument, RunDirectory], monkeypatch: pytest.MonkeyPatch
) -> None:
    document, directory = sounds
    finding = 3 * (2 * RATE // 2 + 44)
    monkeypatch.setattr(PageAllowance.__init__, "__defaults__", (2 * finding,))
    page = render_page(document, directory, {})
    heard = dict.fromkeys(re.findall(r'id="((?:finding|deviating)-\d+)"', page), False)
    for article in re.findall(r"<article.*?</article>", page, flags=re.DOTALL):
        (name,) = re.findall(r'<article class="card" id="([^"]*)"', article)
        heard[name] = "<audio" in article
        if not heard[name]:
            assert f"listen to <code>{_files(document, name)}</code>" in article
    assert heard == {"deviating-3": False, "finding-0": True, "finding-1": True, "finding-2": False}
    assert "2 of 4 entries can be listened to here" in page
    assert f"{page_allowance.PLAYERS // 1_000_000} MB of sound" in page


def _files(document: RunDocument, card_id: str) -> str:
    (entry,) = (one for one in document.deviations if str(one.seed_id) == card_id.split("-")[1])
    return entry.image


def test_a_page_of_arrays_has_plots(arrays: tuple[RunDocument, RunDirectory]) -> None:
    page = render_page(*arrays, {})
    assert page.count('<svg class="curves"') == 3
    assert page.count('<svg class="bars"') == 3
    assert "media-src" not in page
    assert "<figcaption>seed</figcaption>" in page


def test_names_of_inputs_and_heads_are_never_read_as_markup(
    sounds: tuple[RunDocument, RunDirectory], monkeypatch: pytest.MonkeyPatch
) -> None:
    evil = "<script>alert(1)</script>"
    views: Any = (
        ClassesView(evil, (evil, "b"), {"device": (0.5, 0.5)}, {"device": 0}),
        ThresholdView(
            evil, (evil, "above"), 0.5, {"original": 0.25, "device": 0.75},
            {"original": 0, "device": 1},
        ),
        RegressionView(
            evil, evil, 2.0, 0.5, ("original", "device"), 2, (evil, "y"),
            {"original": (1.0, 2.0), "device": (-1.0, -2.0)},
        ),
    )  # fmt: skip
    monkeypatch.setattr(card, "answer_views", lambda *_: views)
    page = render_page(*sounds, {})
    assert page.count("<script>") == 1
    assert page.count("&lt;script&gt;alert(1)&lt;/script&gt;") >= 5
    text = " ".join(re.sub(r"<[^>]*>", " ", page).split())
    for told in (
        "scores; the line is the threshold, 0.5",
        "above",
        "4 times the tolerance 0.5",
    ):
        assert told in text
