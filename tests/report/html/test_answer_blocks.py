"""What the arms answered, in the form of each kind of task."""

from __future__ import annotations

import numpy as np
import pytest

from edgeflare.core.answer_view import ClassesView, RegressionView, ThresholdView
from edgeflare.report.html.answer_blocks import (
    ClassTable,
    answer_blocks,
    class_table,
    distance_block,
    score_line,
)
from edgeflare.report.html.answered_input import AnsweredInput

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


def test_values_that_are_left_out_are_counted() -> None:
    block = distance_block(regression(0.05, original=(1,), device=(1.05,)))
    assert block.of == "The 1 of 2 values that differ most."


def test_no_distance_can_be_shown() -> None:
    assert distance_block(regression(0.0, original=(1,), device=(1,))).length == 0


def test_an_arm_that_failed_leaves_the_values_of_the_other() -> None:
    block = distance_block(regression(None, original=(1, 2), device=None))
    assert block.words == "the relative distance is not known"
    assert block.length is None
    assert block.plot is not None
    assert block.plot.names == ("original",)
