"""What looks wrong in a device's answers to the items of a survey."""

from __future__ import annotations

from dataclasses import replace

import pytest

from edgeflare.run.survey_rows import NO_DECISION, DeviceRow, HostRow
from edgeflare.survey.survey_about import signs_in_answers, signs_of_chance

ITEMS = 20
HOST = [
    HostRow(
        *(item, 0, False, False, False),
        margin=1.0,
        original_decision=item % 3,
        twin_decision=item % 3,
        twin_distance=None,
        seconds=0.0,
        known=False,
        original_right=False,
        twin_right=False,
        original_truth_distance=None,
        twin_truth_distance=None,
    )
    for item in range(ITEMS)
]


def answered(item: int, decision: int, *, tied: bool = False) -> DeviceRow:
    return DeviceRow(
        *(item, False, False, False, False, False),
        tied=tied,
        kind=None,
        strength=None,
        device_decision=decision,
        device_distance=None,
        seconds=0.0,
        device_right=False,
        device_truth_distance=None,
    )


def failed(item: int) -> DeviceRow:
    return replace(answered(item, NO_DECISION), failed=True, kind="invalid-output")


def test_a_device_that_decides_always_the_same_is_told_by_its_twin() -> None:
    (line,) = signs_in_answers(HOST, [answered(item, 0) for item in range(ITEMS)])
    assert line.startswith("the device decides the same on all 20 items that it answered, and its")
    as_its_twin = [answered(item, item % 3) for item in range(ITEMS)]
    assert signs_in_answers(HOST, as_its_twin) == []
    assert signs_in_answers(HOST, [answered(item, 0) for item in range(0, ITEMS, 3)]) == []


def test_failures_are_no_decisions() -> None:
    assert signs_in_answers(HOST, [failed(item) for item in range(ITEMS)]) == []
    device = [failed(item) if item < 4 else answered(item, 0) for item in range(ITEMS)]
    (line,) = signs_in_answers(HOST, device)
    assert "on all 16 items that it answered" in line


@pytest.mark.parametrize(("ties", "said"), [(2, 0), (3, 1)])
def test_more_than_a_tenth_of_ties_is_said(ties: int, said: int) -> None:
    device = [answered(item, item % 3, tied=item < ties) for item in range(ITEMS)]
    assert len(signs_in_answers(HOST, device)) == said


@pytest.mark.parametrize(("right", "said"), [(6, 1), (12, 1), (19, 0)])
def test_an_original_that_is_at_chance_is_said(right: int, said: int) -> None:
    """Half of the labels are alike, and the interval of 12 of 20 begins below that."""
    rows = [replace(row, known=True, original_right=row.item < right) for row in HOST]
    labels = [0] * 10 + list(range(10))
    lines = signs_of_chance(rows, labels)
    assert len(lines) == said
    assert all("no better than one label for all of them (55.0%)" in line for line in lines)
    assert not signs_of_chance(HOST, labels)
