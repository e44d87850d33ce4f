"""Pages of sounds, arrays, texts, objects and masks: one file, and nothing read as markup."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from documents import as_json, run_document
from edgeflare.domains.array_domain import ArrayDomain
from edgeflare.domains.audio.audio_domain import AudioDomain
from edgeflare.domains.frames_domain import FramesDomain
from edgeflare.pages import page_allowance
from edgeflare.pages.answers.classes import ClassesView
from edgeflare.pages.answers.masks import MaskGroup
from edgeflare.pages.answers.scores import ThresholdView
from edgeflare.pages.answers.texts import TextTable
from edgeflare.pages.answers.values import RegressionView
from edgeflare.pages.page_allowance import PageAllowance
from edgeflare.report.html import card
from edgeflare.report.html import run_html as page_module
from edgeflare.report.html.card import EntryCard, make_card
from edgeflare.report.html.pictures import Picture
from edgeflare.report.html.run_html import run_html
from edgeflare.report.html.sounds import SoundFigure
from edgeflare.run.run_directory import RunDirectory
from edgeflare.run.run_document import RunDocument, from_json
from stored_runs import chirp, noisy, stored_run
from structured_pages import default_answers, structured_page
from structured_views import KINDS, View, structured_finding

pytestmark = pytest.mark.slow

RATE = 8_000


@pytest.fixture(autouse=True)
def _without_charts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave out what `test_charts.py` is about, and takes longer than all else of a page."""
    monkeypatch.setattr(page_module, "charts_of", lambda _: ())


@pytest.fixture(scope="module")
def sounds(tmp_path_factory: pytest.TempPathFactory) -> tuple[RunDocument, RunDirectory]:
    seeds = [chirp(RATE, loudness=0.1 * n) for n in (1, 2, 3)]
    found = [(seed, noisy(seed, 60)) for seed in seeds]
    folder = tmp_path_factory.mktemp("sounds")
    return stored_run(folder, AudioDomain(RATE), found, [chirp(RATE)])


@pytest.fixture(scope="module")
def series(tmp_path_factory: pytest.TempPathFactory) -> tuple[RunDocument, RunDirectory]:
    rng = np.random.default_rng(0)
    shapes = [(50, 3), (30,), (1,)]
    found = [tuple(rng.normal(size=(2, *shape)).astype(np.float32)) for shape in shapes]
    folder = tmp_path_factory.mktemp("arrays")
    return stored_run(folder, ArrayDomain(), found, [np.zeros(4, np.float32)])


def test_the_frames_of_a_clip_are_named(tmp_path: Path) -> None:
    seed, trigger = np.random.default_rng(0).integers(0, 256, (2, 3, 4, 4, 1), np.uint8)
    page = run_html(*stored_run(tmp_path, FramesDomain(), [(seed, trigger)]), {})
    named = re.findall(r'<p class="part quiet">([^<]*)</p>', page)
    assert named == ["Frame 0", "Frame 1", "Frame 2"]


def names_no_image(page: str) -> None:
    body = re.sub(r"<style>.*?</style>|<script>.*?</script>", "", page, flags=re.DOTALL)
    text = re.sub(r"<[^>]*>", " ", body)
    for word in ("image", "pixel", "gray level"):
        assert word not in text, word


def test_a_page_of_sounds_has_images_and_players_and_asks_for_nothing(
    sounds: tuple[RunDocument, RunDirectory],
) -> None:
    page = run_html(*sounds, {})
    assert page.count("<audio ") == 3 * 3 + 1
    assert page.count('class="wave smooth"') == page.count('class="spectrogram smooth"') == 10
    assert re.search(r"default-src 'none'; img-src data:; media-src data:;", page)
    sources = re.findall(r'\bsrc="([^"]*)"', page)
    assert sources
    assert all(source.startswith("data:") for source in sources)
    assert "Not in this page" not in page
    assert "can be listened to here" not in page
    assert "samples" in page
    names_no_image(page)


def test_the_first_findings_have_players_and_the_others_name_their_files(
    sounds: tuple[RunDocument, RunDirectory], monkeypatch: pytest.MonkeyPatch
) -> None:
    document, directory = sounds
    finding = 3 * (2 * RATE // 2 + 44)
    monkeypatch.setattr(PageAllowance.__init__, "__defaults__", (2 * finding,))
    page = run_html(document, directory, {})
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
    return entry.file


def test_a_page_of_arrays_has_plots(series: tuple[RunDocument, RunDirectory]) -> None:
    page = run_html(*series, {})
    assert page.count('<svg class="curves"') == 3
    assert page.count('<svg class="bars"') == 3
    assert "media-src" not in page
    assert "<figcaption>seed</figcaption>" in page
    names_no_image(page)


def test_names_of_inputs_and_heads_are_never_read_as_markup(
    sounds: tuple[RunDocument, RunDirectory], monkeypatch: pytest.MonkeyPatch
) -> None:
    evil = EVIL
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
    page = run_html(*sounds, {})
    assert page.count("<script>") == 1
    assert page.count("&lt;script&gt;alert(1)&lt;/script&gt;") >= 5
    text = " ".join(re.sub(r"<[^>]*>", " ", page).split())
    for told in ("scores; the line is the threshold, 0.5", "above", "4 times the tolerance 0.5"):
        assert told in text


EVIL = "<script>alert(1)</script>"
NAMES = {"detection": ["face", EVIL], "segmentation": [EVIL, EVIL]}


def evil(view: Mapping[str, Any]) -> View:
    """A view whose names, and whose words, would act if they were read as markup."""
    made = {**view, "head": EVIL}
    if view["form"] == "transcript":
        words = {arm: [EVIL, *said] for arm, said in view["words"].items()}
        return {**made, "separator": '"><img src=x>', "words": words}
    made["classes"] = NAMES[view["form"]]
    if view["form"] == "detection":
        box = {**view["boxes"]["device"][0], "label": 1, "difference": f'"{EVIL}'}
        made["boxes"] = {**view["boxes"], "device": [box]}
    return made


def cards(folder: Path, task: str, **fields: Any) -> list[EntryCard]:
    document, directory = structured_page(folder, task, **fields)
    return [
        make_card(document, entry, directory, PageAllowance(24_000))
        for entry in (document.findings[0], document.deviating_seeds[0])
    ]


@pytest.mark.parametrize("task", KINDS)
def test_a_page_says_all_in_itself_and_names_and_words_are_never_read_as_markup(
    task: str, tmp_path: Path
) -> None:
    page = run_html(*structured_page(tmp_path / "plain", task), {})
    sources = re.findall(r'\b(?:src|href)="([^"]*)"', page)
    assert all(source.startswith(("data:", "#")) for source in sources)
    ids = re.findall(r'\bid="([^"]*)"', page)
    assert len(ids) == len(set(ids))
    assert {one[1:] for one in sources if one.startswith("#")} <= set(ids)
    words = KINDS[task].replace("-", " ").replace("iou", "IoU")
    assert f'<dt>kinds</dt><dd class="quiet">2 {words}</dd>' in page
    assert page.count(f'<span class="chip kind">{words}</span>') == 3
    trigger, seed = map(evil, default_answers(task))
    page = run_html(*structured_page(tmp_path / "evil", task, (trigger, seed)), {})
    assert page.count("<script>") == 1
    assert "<img src=x>" not in page
    assert page.count("&lt;script&gt;alert(1)&lt;/script&gt;") >= 4


def said(shot: SoundFigure) -> str:
    (block,) = shot.texts
    assert isinstance(block, TextTable)
    return block.words


def test_texts_stand_below_the_players_of_their_sounds(tmp_path: Path) -> None:
    found, itself = cards(tmp_path, "transcript")
    shots = {shot.what: shot for shot in found.shots[0].shots if isinstance(shot, SoundFigure)}
    assert shots["difference"].texts == ()
    assert said(shots["seed"]) == ""
    assert said(shots["trigger"]).startswith("edit distance 2")
    assert found.answers == found.seed_answers == ()
    assert found.edits == 2
    (alone,) = itself.shots[0].shots
    assert isinstance(alone, SoundFigure)
    assert said(alone).startswith("edit distance 2")


def test_marks_do_not_rely_on_colour_and_an_arm_that_failed_has_no_answer(tmp_path: Path) -> None:
    page = run_html(*structured_page(tmp_path / "whole", "transcript"), {})
    assert "<td>one <del>two</del> three</td>" in page
    assert "<td>one <ins>four</ins> three <ins>five</ins></td>" in page
    trigger, seed = default_answers("transcript")
    trigger = {**trigger, "words": {**trigger["words"], "device": None}}
    page = run_html(*structured_page(tmp_path / "failed", "transcript", (trigger, seed)), {})
    assert '<tr><th scope="row">device</th><td>no answer</td></tr>' in page


def test_texts_of_inputs_without_a_player_are_blocks_of_their_own(tmp_path: Path) -> None:
    answers = default_answers("transcript")
    document, directory = structured_page(tmp_path, "detection", answers)
    card = make_card(document, document.findings[0], directory, PageAllowance(24_000))
    (on_trigger,), (on_seed,) = card.answers, card.seed_answers
    assert isinstance(on_trigger, TextTable)
    assert isinstance(on_seed, TextTable)
    assert (on_trigger.what, on_seed.what) == ("trigger", "seed")
    assert on_trigger.words
    assert not on_seed.words


def test_boxes_lie_upon_seed_and_trigger(tmp_path: Path) -> None:
    found, itself = cards(tmp_path, "detection")
    boxes = {
        shot.what: len(shot.boxes) for shot in found.shots[0].shots if isinstance(shot, Picture)
    }
    assert boxes == {"seed": 6, "trigger": 4, "difference": 0}
    (alone,) = itself.shots[0].shots
    assert isinstance(alone, Picture)
    assert len(alone.boxes) == 4


def test_masks_lie_upon_the_picture_of_their_input(tmp_path: Path) -> None:
    found, itself = cards(tmp_path, "segmentation")
    shots = {shot.what: shot for shot in found.shots[0].shots if isinstance(shot, Picture)}
    for (block,), what in ((found.answers, "trigger"), (found.seed_answers, "seed")):
        assert isinstance(block, MaskGroup)
        assert (block.what, block.picture) == (what, shots[what].uri)
    (alone,) = itself.answers
    assert isinstance(alone, MaskGroup)
    assert alone.what == "seed"
    assert itself.seed_answers == ()


def test_findings_are_chosen_by_kind_where_there_are_several(tmp_path: Path) -> None:
    document, directory = structured_page(tmp_path, "transcript")
    page = run_html(document, directory, {})
    assert 'name="class"' not in page
    assert 'name="kind"' not in page
    assert page.count('data-classes="" data-kind="word-substituted"') == 3
    plain = as_json(document)
    plain["findings"][0]["kind"] = "word-deleted"
    page = run_html(from_json(plain), directory, {})
    assert '<label>Kind\n<select name="kind">' in page
    assert 'name="class"' not in page
    assert '<option value="word-deleted">word deleted (1)</option>' in page
    assert '<option value="word-substituted">' in page


def test_pictures_below_masks_share_the_allowance_of_the_page_also_where_inputs_are_gone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    counted: list[int] = []

    def count(pictures: int) -> int:
        counted.append(pictures)
        return 24_000

    monkeypatch.setattr(page_module, "allowance", count)
    for task in KINDS:
        document, directory = structured_page(tmp_path / task, task)
        for entry in document.findings:
            (tmp_path / task / entry.file).unlink()
        assert "its file is gone" in run_html(document, directory, {})
    assert counted == [9, 9, 9 + 3 * 2 * (2 + 3)]


def test_a_run_without_structure_has_none_of_it(tmp_path: Path) -> None:
    _, directory = structured_page(tmp_path, "detection")
    page = run_html(run_document(findings=[{}], pair={"domain": "image"}), directory, {})
    body = re.sub(r"<style>.*?</style>|<script>.*?</script>", "", page, flags=re.DOTALL)
    for part in ("Kinds:", "<ins>", 'class="boxes', "masks", "chip kind"):
        assert part not in body
    assert structured_finding("detection")["kind"] not in body
