"""Each form of answers: what is wrong in it, in words, and as the block of a card."""

from __future__ import annotations

from base64 import b64decode
from importlib.metadata import EntryPoint
from itertools import groupby
from pathlib import Path
from typing import Any

import cv2
import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from documents import finding
from edgeflare.errors import UserError
from edgeflare.pages.answers.answer_form import SIDE, AnsweredInput, AnswerForm
from edgeflare.pages.answers.answer_forms import (
    PACKAGE_FORMS,
    PackageAnswers,
    PageBlocks,
    recorded,
    words_of,
)
from edgeflare.pages.answers.boxes import SHOWN, DetectionView, ObjectTable, drawn_box
from edgeflare.pages.answers.classes import ClassesView, ClassTable
from edgeflare.pages.answers.masks import OPACITY, SMALLEST, MaskGroup, SegmentationView, colour
from edgeflare.pages.answers.scores import ScoreLine, ThresholdView
from edgeflare.pages.answers.texts import WORDS, TextTable, TranscriptView
from edgeflare.pages.answers.values import RegressionView
from edgeflare.pages.html_page import page_environment
from edgeflare.pages.page import Facts, Sentences
from edgeflare.record.json_types import JsonValue, plain_json
from edgeflare.report.html.card import answer_pictures
from structured_views import FACE, MASKS, OBJECTS, TEXTS, structured_finding

SIDES = ("below", "above")
TRIGGER = AnsweredInput("trigger", ("original", "device"), None, 0, 0, 1_000)


def threshold(scores: dict[str, float | None], at: float) -> ThresholdView:
    decisions = {arm: None if one is None else int(one >= at) for arm, one in scores.items()}
    return ThresholdView("", SIDES, at, scores, decisions)


def test_each_head_has_a_block() -> None:
    heads = (
        ClassesView("kind", ("cat", "dog"), {"original": (0.9, 0.1)}, {"original": 0}),
        ThresholdView("alive", SIDES, 0.5, {"original": 0.4}, {"original": 0}),
        ClassesView("size", (), {"original": (0.2, 0.8)}, {"original": 1}),
    )
    first, alive, size = (view.block(TRIGGER) for view in heads)
    assert isinstance(first, ClassTable)
    assert isinstance(alive, ScoreLine)
    assert isinstance(size, ClassTable)
    assert (first.head, alive.head, size.head) == ("kind", "alive", "size")
    assert [row.name for row in size.rows] == ["1", "0"]


def test_a_head_without_answers_has_none() -> None:
    assert ClassesView("", (), {}, {}).block(TRIGGER) is None


def test_arms_stand_in_their_order() -> None:
    given = {"device": (0.5, 0.5), "original": (0.9, 0.1), "twin": ()}
    block = ClassesView("", (), given, {}).block(TRIGGER)
    assert block is not None
    assert block.arms == ("original", "device")


@pytest.mark.parametrize(
    ("original", "device", "sides"),
    [
        (0.2, 0.8, ("below", "above")),
        (0.6, 0.4, ("above", "below")),
        (0.5, 7.0, ("above", "above")),
    ],
)
def test_scores_stand_on_their_side_of_the_threshold(
    original: float, device: float, sides: tuple[str, str]
) -> None:
    line = threshold({"device": device, "original": original}, 0.5).block(TRIGGER)
    assert [row.arm for row in line.rows] == ["original", "device"]
    assert tuple(row.side for row in line.rows) == sides
    for row, score in zip(line.rows, (original, device), strict=True):
        assert row.place is not None
        assert 0 < row.place < 100
        assert np.sign(row.place - line.place) == np.sign(score - 0.5)
    places = [line.place, *(row.place for row in line.rows if row.place is not None)]
    assert min(places) + max(places) == pytest.approx(100)  # as far from either end
    assert line.threshold == "0.5"


def test_scores_that_are_all_the_threshold_lie_in_the_middle() -> None:
    line = threshold({"original": 3.0}, 3.0).block(TRIGGER)
    assert (line.place, line.rows[0].place) == (50, 50)


def test_an_arm_that_failed_has_no_place() -> None:
    failed = threshold({"original": 0.2, "device": None}, 0.5).block(TRIGGER).rows[1]
    assert (failed.score, failed.side, failed.place) == ("–", "no answer", None)


def regression(distance: float | None, **values: tuple[float, ...] | None) -> RegressionView:
    names = tuple(f"value {n}" for n in (3, 9)[: len(values["original"] or ())])
    compared = ("original", "device")
    return RegressionView(
        "mask", "relative distance", distance, 0.1, compared, 2, names, dict(values)
    )


def test_values_of_the_compared_arms_stand_beside_each_other() -> None:
    block = regression(0.3, original=(1, 2), twin=(9, 9), device=(1, 4)).block(TRIGGER)
    assert block.words == "relative distance 0.3, 3 times the tolerance 0.1, which is the mark"
    assert block.length == 100
    assert block.tolerance == pytest.approx(33.3)
    assert block.plot is not None
    assert block.plot.names == ("original", "device")
    assert [(row.name, row.first, row.second) for row in block.plot.rows] == [("value 9", "2", "4")]
    assert block.plot.panels[0].words.endswith("largest change 2 at value 9")
    assert block.of == ""


def test_a_distance_within_the_tolerance_ends_before_it() -> None:
    block = regression(0.05, original=(1,), device=(1.05,)).block(TRIGGER)
    assert block.length is not None
    assert block.length < block.tolerance == 100
    assert block.of == "The 1 of 2 values that differ most."
    assert regression(0.0, original=(1,), device=(1,)).block(TRIGGER).length == 0


def test_an_arm_that_failed_leaves_the_values_of_the_other() -> None:
    block = regression(None, original=(1, 2), device=None).block(TRIGGER)
    assert block.words == "the relative distance is not known"
    assert block.length is None
    assert block.plot is not None
    assert block.plot.names == ("original",)


WORDS_OF_A_TEXT = st.lists(st.sampled_from(["one", "two", "three", "four"]), max_size=8).map(tuple)


def texts(compared: tuple[str, str] = ("original", "device"), **words: object) -> TextTable:
    view = msgspec.convert({**TEXTS, "words": words or TEXTS["words"]}, TranscriptView)
    return view.block(AnsweredInput("trigger", compared, None, 0, 0, 1_000))


def marked(made: TextTable, arm: str, mark: str) -> list[str]:
    (row,) = (row for row in made.rows if row.arm == arm)
    return [word.text for word in row.words or () if word.mark == mark]


def test_words_that_only_one_compared_arm_has_are_marked() -> None:
    made = texts()
    assert [row.arm for row in made.rows] == ["original", "twin", "device"]
    assert marked(made, "original", "del") == ["two"]
    assert marked(made, "device", "ins") == ["four", "five"]
    assert marked(made, "twin", "") == ["one", "two", "three"]
    assert made.words.startswith("edit distance 2; struck out: words that device does not have")


def test_a_search_for_kernels_marks_the_twin() -> None:
    made = texts(("twin", "device"))
    assert marked(made, "twin", "del") == ["two"]
    assert marked(made, "original", "del") == []


def test_nothing_is_marked_where_texts_agree_or_an_arm_failed() -> None:
    for device in (("one",), None):
        made = texts(original=("one",), device=device)
        assert made.words == ""
        assert marked(made, "original", "") == ["one"]
    assert made.rows[1].words is None


def test_long_texts_are_cut_off_and_what_is_left_out_is_counted() -> None:
    made = texts(original=("a",) * (WORDS + 7), device=("a",))
    assert [row.more for row in made.rows] == [7, 0]
    assert len(made.rows[0].words or ()) == WORDS


@given(WORDS_OF_A_TEXT, WORDS_OF_A_TEXT)
def test_each_row_is_its_text_and_what_is_not_marked_is_common(
    first: tuple[str, ...], second: tuple[str, ...]
) -> None:
    made = texts(original=first, device=second)
    words = [tuple(word.text for word in row.words or ()) for row in made.rows]
    assert words == [first, second]
    assert marked(made, "original", "") == marked(made, "device", "")
    assert bool(made.words) == (first != second)


def objects(**boxes: Any) -> ObjectTable:
    view = msgspec.convert({**OBJECTS, "boxes": boxes or OBJECTS["boxes"]}, DetectionView)
    return view.block(TRIGGER)


def test_those_that_differ_come_first_and_are_numbered_in_table_and_picture() -> None:
    made = objects()
    assert made.arms == ("original", "twin", "device")
    assert [(row.number, row.scores, row.kind) for row in made.rows] == [
        ("1", ("0.51", "–", "(0.31)"), "object vanished"),
        ("", ("0.93", "0.92", "0.81"), ""),
    ]
    assert [box.number for box in made.boxes] == ["1", "", "", ""]
    assert made.boxes[0].title == "original: face 0.51, object vanished"


def test_boxes_lie_in_percent_of_the_picture() -> None:
    box = objects().boxes[1]
    assert (box.x, box.y, box.width, box.height) == ("10.00%", "20.00%", "40.00%", "40.00%")


def test_an_arm_without_objects_answered_and_one_that_failed_did_not() -> None:
    made = objects(original=[], twin=None, device=OBJECTS["boxes"]["device"])
    assert made.arms == ("original", "device")
    assert [row.scores for row in made.rows] == [("–", "0.81")]


def test_many_objects_are_cut_off_and_counted() -> None:
    same = [{**FACE, "score": 0.9, "object": n} for n in range(SHOWN + 5)]
    other = {**same[0], "object": SHOWN + 5, "difference": "object-appeared"}
    made = objects(original=same, device=[*same[:3], other])
    assert made.more == 6
    assert [row.kind for row in made.rows if row.number] == ["object appeared"]
    drawn = page_environment().get_template(made.template).module.block  # type: ignore[attr-defined]
    assert "6 more objects are not shown." in drawn(made, "a")
    assert "1 more object is not shown." in drawn(msgspec.structs.replace(made, more=1), "a")


@given(st.lists(st.floats(-1e15, 1e15), min_size=4, max_size=4))
def test_any_box_can_be_drawn(box: list[float]) -> None:
    drawn = drawn_box(box, "device", "", "")
    for length in (drawn.x, drawn.y, drawn.width, drawn.height):
        assert -100 <= float(length.rstrip("%")) <= 300
        assert len(length) < 9
    assert float(drawn.width.rstrip("%")) >= 0 <= float(drawn.height.rstrip("%"))


def group(
    picture: tuple[str, int, int] | None = None, most: int = 24_000, **fields: Any
) -> MaskGroup:
    view = msgspec.convert({**MASKS, **fields}, SegmentationView)
    uri, width, height = picture or (None, 0, 0)
    return view.block(AnsweredInput("trigger", ("original", "device"), uri, width, height, most))


def runs(mask: NDArray[np.int64]) -> str:
    pairs = ((label, len(list(same))) for label, same in groupby(mask.ravel().tolist()))
    return " ".join(str(number) for pair in pairs for number in pair)


def pixels(uri: str) -> NDArray[np.uint8]:
    data = np.frombuffer(b64decode(uri.partition(",")[2]), np.uint8)
    image = cv2.imdecode(data, cv2.IMREAD_UNCHANGED)
    assert image is not None
    return np.asarray(image, np.uint8)[:, :, [2, 1, 0, 3]]


def test_each_arm_has_a_mask_and_the_difference_one_of_its_own() -> None:
    made = group()
    assert [panel.name for panel in made.panels] == ["original", "twin", "device", "difference"]
    original, _, device, difference = (pixels(panel.uri) for panel in made.panels)
    assert original[:2].max() == 0
    assert np.all(original[2:] == (*colour(1), OPACITY))
    assert np.all(device[:3, :, 3] == 0)
    assert (difference[..., 3] > 0).tolist() == [[False] * 4, [False] * 4, [True] * 4, [False] * 4]
    assert made.panels[3].words == "25.00% of the pixels"
    assert made.panels[2].words == "background 75.0%, person 25.0%"
    assert [name for name, _ in made.legend] == ["person"]


def test_it_has_the_size_of_the_picture_or_of_the_mask() -> None:
    made = group(("data:,", 64, 48))
    assert (made.picture, made.width, made.height) == ("data:,", 64, 48)
    assert (group().picture, group().width, group().height) == (None, 4, 4)


def test_an_arm_that_failed_has_no_mask() -> None:
    masks = {"original": MASKS["masks"]["original"], "device": None}
    made = group(masks=masks, mean_iou=None, region=None)
    assert [panel.name for panel in made.panels] == ["original"]
    assert made.words == "the mean IoU is not known"


@pytest.mark.parametrize("most", [300, 3_000])
def test_a_mask_is_shrunk_until_it_weighs_what_it_may(most: int) -> None:
    mask = np.random.default_rng(0).integers(0, 9, (128, 96))
    made = group(most=most, rows=128, columns=96, masks={"original": runs(mask)}, classes=[])
    data = b64decode(made.panels[0].uri.partition(",")[2])
    shrunk = pixels(made.panels[0].uri)
    assert len(data) <= most or max(shrunk.shape) == SMALLEST
    assert max(shrunk.shape) < 128
    known = {(0, 0, 0, 0), *((*colour(label), OPACITY) for label in range(1, 9))}
    assert {tuple(one) for one in shrunk.reshape(-1, 4).tolist()} <= known
    assert len(made.legend) == 8


def test_no_mask_is_larger_than_pictures_are() -> None:
    made = group(rows=1024, columns=512, masks={"original": f"1 {1024 * 512}"}, mean_iou=None)
    assert pixels(made.panels[0].uri).shape[:2] == (SIDE, SIDE // 2)


def test_classes_have_colours_of_their_own() -> None:
    assert len({colour(label) for label in range(1, 100)}) == 99


def test_the_pictures_of_masks_are_counted() -> None:
    entry = finding(**structured_finding("segmentation", seed_answers=[MASKS]))
    assert answer_pictures(entry) == 2 * (2 + 3)
    assert answer_pictures(finding(**structured_finding("detection"))) == 0
    assert answer_pictures(finding()) == 0


ANSWERED = AnsweredInput("trigger", ("original", "device"), None, 0, 0, 1_000)
VIEW: dict[str, JsonValue] = {
    "form": "lamp",
    "head": "",
    "light": {"original": 1.5, "device": -0.5},
}
KEPT = PackageAnswers("", {"original": "off", "device": "on"}, VIEW)


@pytest.fixture
def lamp(monkeypatch: pytest.MonkeyPatch) -> type[AnswerForm]:
    """Return the form of the package of night lights, which is installed for a test."""
    monkeypatch.syspath_prepend(str(Path(__file__).parents[2] / "tasks"))
    offered = {
        "broken": EntryPoint("broken", "no_such_module:Form", "edgeflare.answers"),
        "lamp": EntryPoint("lamp", "night_light:LampView", "edgeflare.answers"),
    }
    monkeypatch.setitem(vars(PACKAGE_FORMS), "_entries", offered)
    return PACKAGE_FORMS.find("lamp")


def test_a_view_is_kept_with_its_decisions_and_opened_as_it_was(lamp: type[AnswerForm]) -> None:
    view = msgspec.convert(VIEW, lamp)
    kept = recorded(view, ("original", "device"))
    assert kept == KEPT
    assert msgspec.convert(plain_json(kept), PackageAnswers).opened() == view
    block = kept.opened().block(ANSWERED)
    assert isinstance(block, PageBlocks)
    assert block.blocks == (
        Facts("light beyond dusk", (("original", "+1.500"), ("device", "-0.500"))),
    )
    assert words_of("night-light").decision == "Lamp"


def test_without_the_package_there_are_the_decisions() -> None:
    shown = KEPT.opened()
    assert shown is KEPT
    assert [shown.decision(arm) for arm in ("original", "twin", "device")] == ["off", "–", "on"]
    block = KEPT.block(ANSWERED)
    (words,) = block.blocks
    assert isinstance(words, Sentences)
    assert "'lamp'" in words.sentences[0]
    assert not [*KEPT.wrong("answers[0]")]
    assert words_of("night-light") == words_of("no-such-task")


def test_what_the_form_does_not_have_is_wrong(lamp: type[AnswerForm]) -> None:
    damaged = PackageAnswers("", {}, {**VIEW, "light": "dark"})
    assert [*damaged.wrong("answers[0]")] == [
        "answers[0].view: Expected `object`, got `str` - at `$.light`"
    ]
    assert damaged.opened() is damaged
    assert lamp is PACKAGE_FORMS.find("lamp")


def test_a_form_that_no_package_offers_is_refused() -> None:
    class Shown(AnswerForm, frozen=True, tag_field="form", tag="shown"):
        """Answers in a form that stands in no entry point."""

    with pytest.raises(
        UserError, match=r"Shown, which is no form of answers that a package offers"
    ):
        recorded(Shown(""), ())
