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


def test_each_head_has_a_block() -> None:
    heads = (
        ClassesView("kind", ("cat", "dog"), {"original": (0.9, 0.1)}, {"original": 0}),
        ThresholdView("alive", 0.5, {"original": 0.4}),
        ClassesView("size", (), {"original": (0.2, 0.8)}, {"original": 1}),
    )
    blocks = answer_blocks(heads)
    assert [(one.kind, one.head) for one in blocks] == [
        ("classes", "kind"),
        ("scores", "alive"),
        ("classes", "size"),
    ]
    assert isinstance(blocks[2], ClassTable)
    assert [row.name for row in blocks[2].rows] == ["1", "0"]


def test_a_head_without_answers_has_none() -> None:
    assert answer_blocks([ClassesView("", (), {}, {})]) == ()


def test_arms_stand_in_their_order() -> None:
    given = {"device": (0.5, 0.5), "original": (0.9, 0.1), "twin": ()}
    assert class_table(ClassesView("", (), given, {})).arms == ("original", "device")


@pytest.mark.parametrize(
    ("original", "device", "sides"),
    [
        (0.2, 0.8, ("below", "above")),
        (0.6, 0.4, ("above", "below")),
        (0.5, 7.0, ("equal", "above")),
    ],
)
def test_scores_stand_on_their_side_of_the_threshold(
    original: float, device: float, sides: tuple[str, str]
) -> None:
    line = score_line(ThresholdView("", 0.5, {"device": device, "original": original}))
    assert [row.arm for row in line.rows] == ["original", "device"]
    assert tuple(row.side for row in line.rows) == sides
    for row, score in zip(line.rows, (original, device), strict=True):
        assert row.place is not None
        assert 0 < row.place < 100
        assert np.sign(row.place - line.place) == np.sign(score - 0.5)
    assert line.threshold == "0.5"


def test_scores_that_are_all_the_threshold_lie_in_the_middle() -> None:
    line = score_line(ThresholdView("", 3.0, {"original": 3.0}))
    assert (line.place, line.rows[0].place) == (50, 50)


def test_an_arm_that_failed_has_no_place() -> None:
    failed = score_line(ThresholdView("", 0.5, {"original": 0.2, "device": None})).rows[1]
    assert (failed.score, failed.side, failed.place) == ("–", "no answer", None)


def regression(distance: float | None, tolerance: float = 0.1, **values: object) -> RegressionView:
    given = {arm: None if one is None else np.array(one, np.float32) for arm, one in values.items()}
    return RegressionView(
        "mask", given, ("x", "y"), ("original", "device"), distance, tolerance, "relative distance"
    )


def test_values_of_the_compared_arms_stand_beside_each_other() -> None:
    block = distance_block(regression(0.3, original=[1, 2], twin=[9, 9], device=[1, 4]))
    assert block.words == "relative distance 0.3, tolerance 0.1: 3 times"
    assert block.length == 100
    assert block.tolerance == pytest.approx(33.3)
    assert block.plot is not None
    assert block.plot.names == ("original", "device")
    assert [(row.name, row.first, row.second) for row in block.plot.rows] == [("y", "2", "4")]


def test_a_distance_within_the_tolerance_ends_before_it() -> None:
    block = distance_block(regression(0.05, original=[1], device=[1.05]))
    assert block.length is not None
    assert block.length < block.tolerance == 100


@pytest.mark.parametrize("tolerance", [0.0, 0.5])
def test_no_distance_and_no_tolerance_can_be_shown(tolerance: float) -> None:
    block = distance_block(regression(0.0, tolerance, original=[1], device=[1]))
    assert block.length == 0


def test_an_arm_that_failed_leaves_the_values_of_the_other() -> None:
    block = distance_block(regression(None, original=[1, 2], device=None))
    assert block.words == "relative distance: not known, tolerance 0.1"
    assert block.length is None
    assert block.plot is not None
    assert block.plot.names == ("original",)


def test_outputs_of_two_shapes_are_not_drawn() -> None:
    assert distance_block(regression(1.0, original=[1, 2], device=[1])).plot is None


def test_a_mask_of_many_values_is_a_curve() -> None:
    mask = np.linspace(0, 1, 257)
    block = distance_block(regression(1.0, original=mask, device=mask + 0.1))
    assert block.plot is not None
    assert not block.plot.panels[0].bars
