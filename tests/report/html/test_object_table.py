"""Objects of the arms, in a table and as boxes upon the picture."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgeflare.core.answer_view import DetectionView
from edgeflare.report.html.drawn_box import drawn_box
from edgeflare.report.html.object_table import OBJECTS as MOST
from edgeflare.report.html.object_table import ObjectTable, object_table
from structured_views import OBJECTS


def table(**boxes: Any) -> ObjectTable:
    view = msgspec.convert({**OBJECTS, "boxes": boxes or OBJECTS["boxes"]}, DetectionView)
    return object_table(view, "trigger")


def test_those_that_differ_come_first_and_are_numbered_in_table_and_picture() -> None:
    made = table()
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
    made = table(original=[vanished])
    assert made.rows[0].kind == f"object vanished ({said})"
    assert made.boxes[0].title == f"original: face 0.51, object vanished ({said})"


def test_boxes_lie_in_percent_of_the_picture() -> None:
    box = table().boxes[1]
    assert (box.x, box.y, box.width, box.height) == ("10.00%", "20.00%", "40.00%", "40.00%")


def test_an_arm_without_objects_answered_and_one_that_failed_did_not() -> None:
    made = table(original=[], twin=None, device=OBJECTS["boxes"]["device"])
    assert made.arms == ("original", "device")
    assert {row.arm for row in made.rows} == {"device"}


def test_many_objects_are_cut_off_and_counted() -> None:
    same = OBJECTS["boxes"]["device"][0]
    other = {**same, "difference": "object-appeared"}
    made = table(original=[same] * (MOST + 5), device=[same] * MOST + [other])
    assert made.more == 6
    assert [row.kind for row in made.rows if row.number] == ["object appeared"]


@given(st.lists(st.floats(-1e15, 1e15), min_size=4, max_size=4))
def test_any_box_can_be_drawn(box: list[float]) -> None:
    drawn = drawn_box(box, "device", "", "")
    for length in (drawn.x, drawn.y, drawn.width, drawn.height):
        assert -100 <= float(length.rstrip("%")) <= 300
        assert len(length) < 9
    assert float(drawn.width.rstrip("%")) >= 0 <= float(drawn.height.rstrip("%"))
