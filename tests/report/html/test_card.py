"""An entry as a card: who decided what and how surely, in the form of each kind of task."""

from __future__ import annotations

from base64 import b64decode
from itertools import groupby
from typing import Any

import cv2
import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from documents import Document, finding, run_document
from edgeflare.core.answer_view import (
    ClassesView,
    DetectionView,
    RegressionView,
    SegmentationView,
    ThresholdView,
    TranscriptView,
)
from edgeflare.domains.image.image_domain import ImageDomain
from edgeflare.report.html.answer_blocks import (
    CardRow,
    ClassTable,
    answer_blocks,
    class_table,
    distance_block,
    score_line,
)
from edgeflare.report.html.answered_input import AnsweredInput
from edgeflare.report.html.card import Card, make_card
from edgeflare.report.html.drawn_box import drawn_box
from edgeflare.report.html.mask_group import (
    OPACITY,
    SMALLEST,
    MaskGroup,
    colour,
    mask_group,
    mask_pictures,
)
from edgeflare.report.html.object_table import OBJECTS as MOST
from edgeflare.report.html.object_table import ObjectTable, object_table
from edgeflare.report.html.page_allowance import PageAllowance
from edgeflare.report.html.pictures import SIDE, Picture
from edgeflare.report.html.text_table import WORDS, TextTable, text_table
from edgeflare.run.run_directory import RunDirectory
from structured_views import MASKS, OBJECTS, TEXTS, structured_finding


def entry_of(directory: RunDirectory, **changes: Any) -> Document:
    image = directory.store_input("findings", 3, np.zeros((4, 4, 1), np.uint8), ImageDomain()).path
    return {
        "seed_id": 3, "seed_label": 1, "kind": "deviation", "cause": "mixed", "strength": 0.2,
        "labels": {"original": 0, "twin": 1, "device": 2},
        "probabilities": {
            "original": [0.5, 0.1, 0.2, 0.1, 0.06, 0.03997, 0.00003],
            "twin": [0.2, 0.5, 0.1, 0.1, 0.05, 0.05, 0.0],
            "device": [0.1, 0.2, 0.6, 0.02, 0.03, 0.05, 0.0],
        },
        "operators": [], "image": image, "seed_image": image, "refined": None,
        "distortion": {"linf": 0.0},
        **changes,
    }  # fmt: skip


@pytest.fixture
def directory(tmp_path: Any) -> RunDirectory:
    return RunDirectory(tmp_path)


def card(directory: RunDirectory, find: str = "any", **changes: Any) -> Card:
    document = run_document(classes=["ant", "bee", "cat"], find=find)
    entry = finding(**entry_of(directory, **changes))
    return make_card(document, entry, directory, PageAllowance(10_000))


def table(made: Card) -> ClassTable:
    (block,) = made.answers
    assert isinstance(block, ClassTable)
    return block


def rows(made: Card) -> tuple[CardRow, ...]:
    return table(made).rows


def test_it_names_the_decisions(directory: RunDirectory) -> None:
    made = card(directory)
    assert made.title == "ant → cat"
    assert made.words == "original: ant; twin: bee; device: cat"
    assert made.truth == "Labelled bee."
    assert made.labels == {0: "ant", 1: "bee", 2: "cat"}
    assert made.sort == "mixed"


def test_a_search_for_kernels_compares_the_twin(directory: RunDirectory) -> None:
    made = card(directory, "kernel", labels={"twin": 1, "device": 0}, seed_label=None)
    assert made.title == "bee → ant"
    assert made.words == "twin: bee; device: ant"
    assert made.truth is None
    assert card(directory, seed_target="two objects").truth == "Target: two objects."


def test_the_rows_are_the_first_five_of_each_arm(directory: RunDirectory) -> None:
    made = card(directory)
    assert table(made).arms == ("original", "twin", "device")
    assert [row.name for row in rows(made)] == ["cat", "ant", "bee", "3", "4", "5"]
    for row in rows(made)[:3]:
        assert sum(cell.top for cell in row.cells) == 1
    assert [cell.percent for cell in rows(made)[1].cells] == pytest.approx([50, 20, 10])
    assert [cell.top for cell in rows(made)[1].cells] == [True, False, False]


def test_what_is_all_but_impossible_is_left_out_unless_it_was_decided(
    directory: RunDirectory,
) -> None:
    sure = {"original": [1.0, 0.0, 0.0], "device": [0.0002, 0.0002, 0.0001]}
    made = card(directory, labels={"original": 0, "device": 2}, probabilities=sure)
    assert [row.name for row in rows(made)] == ["ant", "cat"]


def test_an_arm_that_failed_has_no_column(directory: RunDirectory) -> None:
    given = {"original": [0.6, 0.4], "twin": [0.5, 0.5], "device": []}
    labels = {"original": 0, "twin": 0, "device": None}
    made = card(directory, kind="crash", cause="kernel", labels=labels, probabilities=given)
    assert table(made).arms == ("original", "twin")
    assert made.title == "ant → crash"
    assert made.sort == "crash"
    assert made.labels == {0: "ant"}


def test_repeated_operators_are_counted_in_order(directory: RunDirectory) -> None:
    made = card(directory, operators=["blur", "blur", "noise", "blur"])
    assert made.operators == ("blur ×2", "noise", "blur")


def test_an_entry_that_was_not_verified_has_nothing_but_its_pictures(
    directory: RunDirectory,
) -> None:
    made = card(directory, labels={}, probabilities={}, cause=None, strength=None)
    assert (made.title, made.words, made.answers, made.labels) == ("deviation", "", (), {})
    (group,) = made.shots
    assert len(group.shots) == 1


SIDES = ("below", "above")
TRIGGER = AnsweredInput("trigger", ("original", "device"), None, 1_000)


def threshold(scores: dict[str, float | None], at: float) -> ThresholdView:
    decisions = {arm: None if one is None else int(one >= at) for arm, one in scores.items()}
    return ThresholdView("", SIDES, at, scores, decisions)


def test_each_head_has_a_block() -> None:
    heads = (
        ClassesView("kind", ("cat", "dog"), {"original": (0.9, 0.1)}, {"original": 0}),
        ThresholdView("alive", SIDES, 0.5, {"original": 0.4}, {"original": 0}),
        ClassesView("size", (), {"original": (0.2, 0.8)}, {"original": 1}),
    )
    blocks = answer_blocks(heads, TRIGGER)
    assert [(one.kind, one.head) for one in blocks] == [
        ("classes", "kind"),
        ("scores", "alive"),
        ("classes", "size"),
    ]
    assert isinstance(blocks[2], ClassTable)
    assert [row.name for row in blocks[2].rows] == ["1", "0"]


def test_a_head_without_answers_has_none() -> None:
    assert answer_blocks([ClassesView("", (), {}, {})], TRIGGER) == ()


def test_arms_stand_in_their_order() -> None:
    given = {"device": (0.5, 0.5), "original": (0.9, 0.1), "twin": ()}
    assert class_table(ClassesView("", (), given, {})).arms == ("original", "device")


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
    line = score_line(threshold({"device": device, "original": original}, 0.5))
    assert [row.arm for row in line.rows] == ["original", "device"]
    assert tuple(row.side for row in line.rows) == sides
    for row, score in zip(line.rows, (original, device), strict=True):
        assert row.place is not None
        assert 0 < row.place < 100
        assert np.sign(row.place - line.place) == np.sign(score - 0.5)
    assert line.threshold == "0.5"


def test_scores_that_are_all_the_threshold_lie_in_the_middle() -> None:
    line = score_line(threshold({"original": 3.0}, 3.0))
    assert (line.place, line.rows[0].place) == (50, 50)


def test_an_arm_that_failed_has_no_place() -> None:
    failed = score_line(threshold({"original": 0.2, "device": None}, 0.5)).rows[1]
    assert (failed.score, failed.side, failed.place) == ("–", "no answer", None)


def regression(distance: float | None, **values: tuple[float, ...] | None) -> RegressionView:
    names = tuple(f"value {n}" for n in (3, 9)[: len(values["original"] or ())])
    compared = ("original", "device")
    return RegressionView(
        "mask", "relative distance", distance, 0.1, compared, 2, names, dict(values)
    )


def test_values_of_the_compared_arms_stand_beside_each_other() -> None:
    block = distance_block(regression(0.3, original=(1, 2), twin=(9, 9), device=(1, 4)))
    assert block.words == "relative distance 0.3, 3 times the tolerance 0.1, which is the mark"
    assert block.length == 100
    assert block.tolerance == pytest.approx(33.3)
    assert block.plot is not None
    assert block.plot.names == ("original", "device")
    assert [(row.name, row.first, row.second) for row in block.plot.rows] == [("value 9", "2", "4")]
    assert block.plot.panels[0].words.endswith("largest change 2 at value 9")
    assert block.of == ""


def test_a_distance_within_the_tolerance_ends_before_it() -> None:
    block = distance_block(regression(0.05, original=(1,), device=(1.05,)))
    assert block.length is not None
    assert block.length < block.tolerance == 100
    assert block.of == "The 1 of 2 values that differ most."
    assert distance_block(regression(0.0, original=(1,), device=(1,))).length == 0


def test_an_arm_that_failed_leaves_the_values_of_the_other() -> None:
    block = distance_block(regression(None, original=(1, 2), device=None))
    assert block.words == "the relative distance is not known"
    assert block.length is None
    assert block.plot is not None
    assert block.plot.names == ("original",)


WORDS_OF_A_TEXT = st.lists(st.sampled_from(["one", "two", "three", "four"]), max_size=8).map(tuple)


def texts(compared: tuple[str, str] = ("original", "device"), **words: object) -> TextTable:
    view = msgspec.convert({**TEXTS, "words": words or TEXTS["words"]}, TranscriptView)
    return text_table(view, AnsweredInput("trigger", compared, None, 1_000))


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
    return object_table(view, "trigger")


def test_those_that_differ_come_first_and_are_numbered_in_table_and_picture() -> None:
    made = objects()
    assert [(row.number, row.arm, row.score, row.kind) for row in made.rows] == [
        ("1", "original", "0.51", "object vanished"),
        ("", "original", "0.93", ""),
        ("", "twin", "0.92", ""),
        ("", "device", "0.81", ""),
    ]
    assert [box.number for box in made.boxes] == ["1", "", "", ""]
    assert made.boxes[0].title == "original: face 0.51, object vanished"


@pytest.mark.parametrize(
    ("there", "said"), [(0.31, "0.31 on the other arm"), (0.0, "none on the other arm")]
)
def test_a_vanished_object_is_told_with_the_score_that_is_left(there: float, said: str) -> None:
    vanished = {**OBJECTS["boxes"]["original"][1], "there": there}
    made = objects(original=[vanished])
    assert made.rows[0].kind == f"object vanished ({said})"
    assert made.boxes[0].title == f"original: face 0.51, object vanished ({said})"


def test_boxes_lie_in_percent_of_the_picture() -> None:
    box = objects().boxes[1]
    assert (box.x, box.y, box.width, box.height) == ("10.00%", "20.00%", "40.00%", "40.00%")


def test_an_arm_without_objects_answered_and_one_that_failed_did_not() -> None:
    made = objects(original=[], twin=None, device=OBJECTS["boxes"]["device"])
    assert made.arms == ("original", "device")
    assert {row.arm for row in made.rows} == {"device"}


def test_many_objects_are_cut_off_and_counted() -> None:
    same = OBJECTS["boxes"]["device"][0]
    other = {**same, "difference": "object-appeared"}
    made = objects(original=[same] * (MOST + 5), device=[same] * MOST + [other])
    assert made.more == 6
    assert [row.kind for row in made.rows if row.number] == ["object appeared"]


@given(st.lists(st.floats(-1e15, 1e15), min_size=4, max_size=4))
def test_any_box_can_be_drawn(box: list[float]) -> None:
    drawn = drawn_box(box, "device", "", "")
    for length in (drawn.x, drawn.y, drawn.width, drawn.height):
        assert -100 <= float(length.rstrip("%")) <= 300
        assert len(length) < 9
    assert float(drawn.width.rstrip("%")) >= 0 <= float(drawn.height.rstrip("%"))


def group(picture: Picture | None = None, most: int = 24_000, **fields: Any) -> MaskGroup:
    view = msgspec.convert({**MASKS, **fields}, SegmentationView)
    return mask_group(view, AnsweredInput("trigger", ("original", "device"), picture, most))


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
    made = group(Picture("trigger", "data:,", 64, 48))
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
    assert mask_pictures(entry) == 2 * (2 + 3)
    assert mask_pictures(finding(**structured_finding("detection"))) == 0
    assert mask_pictures(finding()) == 0
