"""Pages of texts, objects and masks: marked, drawn upon the inputs, and never read as markup."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from documents import as_json, run_document
from edgeflare.report.html import page as page_module
from edgeflare.report.html.card import Card, make_card
from edgeflare.report.html.mask_group import MaskGroup
from edgeflare.report.html.page import render_page
from edgeflare.report.html.page_allowance import PageAllowance
from edgeflare.report.html.pictures import Picture
from edgeflare.report.html.sounds import SoundFigure
from edgeflare.report.html.text_table import TextTable
from edgeflare.run.run_document import from_json
from structured_pages import default_answers, structured_page
from structured_views import KINDS, View, structured_finding

pytestmark = pytest.mark.slow

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


def cards(folder: Path, task: str, **fields: Any) -> list[Card]:
    document, directory = structured_page(folder, task, **fields)
    return [
        make_card(document, entry, directory, PageAllowance(24_000))
        for entry in (document.findings[0], document.deviating_seeds[0])
    ]


@pytest.mark.parametrize("task", KINDS)
def test_a_page_says_all_in_itself_and_asks_for_nothing(task: str, tmp_path: Path) -> None:
    page = render_page(*structured_page(tmp_path, task), {})
    sources = re.findall(r'\b(?:src|href)="([^"]*)"', page)
    assert all(source.startswith(("data:", "#")) for source in sources)
    ids = re.findall(r'\bid="([^"]*)"', page)
    assert len(ids) == len(set(ids))
    assert {one[1:] for one in sources if one.startswith("#")} <= set(ids)
    words = KINDS[task].replace("-", " ")
    assert f"<strong>Kinds:</strong> 2 {words}." in page
    assert page.count(f'<span class="chip kind">{words}</span>') == 3


@pytest.mark.parametrize("task", KINDS)
def test_names_and_words_are_never_read_as_markup(task: str, tmp_path: Path) -> None:
    trigger, seed = map(evil, default_answers(task))
    page = render_page(*structured_page(tmp_path, task, (trigger, seed)), {})
    assert page.count("<script>") == 1
    assert "<img src=x>" not in page
    assert page.count("&lt;script&gt;alert(1)&lt;/script&gt;") >= 4


def test_texts_stand_below_the_players_of_their_sounds(tmp_path: Path) -> None:
    found, itself = cards(tmp_path, "transcript")
    shots = {shot.what: shot for shot in found.shots[0].shots if isinstance(shot, SoundFigure)}
    assert [len(shots[what].texts) for what in ("seed", "trigger", "difference")] == [1, 1, 0]
    assert shots["seed"].texts[0].words == ""
    assert shots["trigger"].texts[0].words.startswith("edit distance 2")
    assert found.answers == found.seed_answers == ()
    assert found.edits == 2
    (alone,) = itself.shots[0].shots
    assert isinstance(alone, SoundFigure)
    assert alone.texts[0].words.startswith("edit distance 2")


def test_marks_do_not_rely_on_colour(tmp_path: Path) -> None:
    page = render_page(*structured_page(tmp_path, "transcript"), {})
    assert "<td>one <del>two</del> three</td>" in page
    assert "<td>one <ins>four</ins> three <ins>five</ins></td>" in page


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


@pytest.mark.parametrize("task", KINDS)
def test_findings_are_chosen_by_kind_where_there_are_several(task: str, tmp_path: Path) -> None:
    document, directory = structured_page(tmp_path, task)
    page = render_page(document, directory, {})
    assert 'name="class"' not in page
    assert 'name="kind"' not in page
    assert page.count(f'data-classes="" data-kind="{KINDS[task]}"') == 3
    plain = as_json(document)
    plain["findings"][0]["kind"] = "word-deleted"
    page = render_page(from_json(plain), directory, {})
    assert '<label>Kind\n<select name="kind">' in page
    assert 'name="class"' not in page
    assert '<option value="word-deleted">word deleted (1)</option>' in page
    assert f'<option value="{KINDS[task]}">' in page


def test_pictures_below_masks_share_the_pages_allowance(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    counted: list[int] = []

    def count(pictures: int) -> int:
        counted.append(pictures)
        return 24_000

    monkeypatch.setattr(page_module, "allowance", count)
    for task in KINDS:
        render_page(*structured_page(tmp_path / task, task), {})
    assert counted == [9, 9, 9 + 3 * 2 * (2 + 3)]


def test_an_arm_that_failed_is_shown_as_one_without_an_answer(tmp_path: Path) -> None:
    trigger, seed = default_answers("transcript")
    trigger = {**trigger, "words": {**trigger["words"], "device": None}}
    page = render_page(*structured_page(tmp_path, "transcript", (trigger, seed)), {})
    assert '<tr><th scope="row">device</th><td>no answer</td></tr>' in page


def test_inputs_that_are_gone_leave_the_answers(tmp_path: Path) -> None:
    for task in KINDS:
        document, directory = structured_page(tmp_path / task, task)
        for entry in document.findings:
            (tmp_path / task / entry.image).unlink()
        assert "its file is gone" in render_page(document, directory, {})


def test_a_run_without_structure_has_none_of_it(tmp_path: Path) -> None:
    _, directory = structured_page(tmp_path, "detection")
    page = render_page(run_document(findings=[{}], pair={"domain": "image"}), directory, {})
    body = re.sub(r"<style>.*?</style>|<script>.*?</script>", "", page, flags=re.DOTALL)
    for part in ("Kinds:", "<ins>", 'class="boxes', "masks", "chip kind"):
        assert part not in body
    assert structured_finding("detection")["kind"] not in body
