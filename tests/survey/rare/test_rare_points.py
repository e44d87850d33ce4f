"""Points of the field, and the moves between them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray

from edgeflare.conditions.condition import Condition
from edgeflare.core.input import Input
from edgeflare.core.input_space import InputSpace
from edgeflare.survey.rare.rare_points import RarePoint, RarePoints

INPUTS = 40
SPACE = InputSpace("uint8", 0.0, 255.0, 2)


def brighter(one: Input, severity: float, rng: np.random.Generator) -> Input:
    shift = 10.0 * severity + rng.integers(0, 5)
    return np.asarray(np.clip(one + shift, 0, 255)).astype(np.uint8)


def darker(one: Input, severity: float, _rng: np.random.Generator) -> Input:
    return (one / severity).astype(np.uint8)


@pytest.fixture
def points() -> RarePoints:
    rng = np.random.default_rng(0)
    images = rng.integers(0, 256, (INPUTS, 4, 4, 1), dtype=np.uint8)
    conditions = [
        Condition("brighter", "image", (), "more light", brighter),
        Condition("darker", "image", (), "less light", darker),
    ]

    def level_of(inputs: Sequence[Input], ids: Sequence[int]) -> NDArray[np.float64]:
        return np.asarray([one.mean() + 1000.0 * of for one, of in zip(inputs, ids, strict=True)])

    return RarePoints(images, conditions, SPACE, rng.permutation(INPUTS), level_of)


def test_moves_leave_the_distribution_as_it_is(points: RarePoints) -> None:
    """What is drawn uniformly is uniform after moves that are all accepted."""
    rng = np.random.default_rng(1)
    moved: Sequence[RarePoint] = points.draw(8000, rng)
    for _ in range(6):
        moved = points.proposals(moved, rng)
    severities = np.sort([one.severity for one in moved])
    uniform = 1.0 + 4.0 * (np.arange(8000) + 0.5) / 8000
    assert np.abs(severities - uniform).max() < 4.0 * 1.63 / np.sqrt(8000)  # Kolmogorov, 1 %
    counts = np.bincount([one.input for one in moved], minlength=INPUTS)
    assert ((counts - 200.0) ** 2 / 200.0).sum() < 62.4  # chi squared, 39 degrees, 1 %
    assert abs(sum(one.condition for one in moved) - 4000) < 2.6 * np.sqrt(2000)


def test_levels_are_in_the_order_of_the_points(points: RarePoints) -> None:
    drawn = points.draw(1500, np.random.default_rng(4))  # more than are in memory together
    levels = points.levels(drawn)
    assert [int(level // 1000) for level in levels] == [one.input for one in drawn]
    assert points.levels([]).shape == (0,)


def test_moving_back_is_as_likely_as_moving_there(points: RarePoints) -> None:
    rng = np.random.default_rng(2)
    there, back = np.zeros((2, INPUTS))
    for start, counts in ((3, there), (11, back)):
        begun = [RarePoint(start, 0, 2.0, 7)] * 20_000
        for one in points.proposals(begun, rng):
            counts[one.input] += 1
    one, other = there[11], back[3]
    assert one > 20
    assert abs(one - other) < 3.3 * np.sqrt(one + other)


def test_inputs_move_to_those_of_about_the_same_level(points: RarePoints) -> None:
    rng = np.random.default_rng(3)
    rank = np.argsort(points.order)
    begun = points.draw(4000, rng)
    moves = [
        (rank[to.input] - rank[of.input]) % INPUTS
        for of, to in zip(begun, points.proposals(begun, rng), strict=True)
        if to.input != of.input
    ]
    away = np.minimum(moves, INPUTS - np.asarray(moves))
    assert np.median(away) <= 5
    assert set(away) >= {1, 2, 3, INPUTS // 2}


def test_one_thing_moves_at_a_time(points: RarePoints) -> None:
    rng = np.random.default_rng(4)
    kinds = set()
    for of in points.draw(300, rng):
        (to,) = points.proposals([of], rng)
        changed = tuple(
            name
            for name in ("input", "condition", "severity", "draw")
            if getattr(of, name) != getattr(to, name)
        )
        kinds.add(changed)
        assert 1.0 <= to.severity <= 5.0
    assert kinds == {(), ("input",), ("condition",), ("severity",), ("draw",)}


def test_a_point_is_one_input_whatever_was_drawn_before(points: RarePoints) -> None:
    rng = np.random.default_rng(5)
    for one in points.draw(20, rng):
        first = points.changed(one)
        points.changed(replace(one, draw=one.draw // 2))
        assert np.array_equal(first, points.changed(one))
        condition = points.conditions[one.condition]
        drawn = np.random.default_rng(one.draw)
        expected = condition(points.inputs[one.input], one.severity, drawn)
        assert np.array_equal(first, expected)


def test_levels_are_those_of_the_changed_inputs(points: RarePoints) -> None:
    drawn = points.draw(9, np.random.default_rng(6))
    expected = [points.changed(one).mean() + 1000.0 * one.input for one in drawn]
    assert points.levels(drawn) == pytest.approx(expected)
