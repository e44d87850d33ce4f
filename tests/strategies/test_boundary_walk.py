"""The steps of a walk along a boundary, whose margin and level are linear here."""

from __future__ import annotations

import numpy as np
import pytest

from edgeflare.core.answer import Answer
from edgeflare.strategies.boundary import Boundary
from edgeflare.strategies.boundary_walk import BoundaryPoint, BoundaryWalk, common_level

SLOPE = -10.0
SIDEWAYS = np.array([0.02, 0.008])
"""What one step to the side adds to margin and level."""


def point(margin: float, level: float, *, tied: bool = True) -> BoundaryPoint:
    other = 0.0 if tied else np.sign(margin) * 0.2
    return BoundaryPoint(np.zeros(1), margin < 0.0, margin, other, tied, level)


def walked(tied: list[bool]) -> list[BoundaryPoint]:
    """Walk over ties and others, in their order; return where each step ended."""
    here = point(0.01, 5.0)
    walk = BoundaryWalk(here, 0.7 * SLOPE, Boundary(max_pushes=0))
    points = []
    for tie in tied:
        if walk.needs_direction:
            walk.turn()
        along, stride = walk.step()
        margin, level = (
            (here.margin, here.level) + along * np.array([SLOPE, 1.0]) + stride * (SIDEWAYS)
        )
        here = point(float(margin), float(level), tied=tie)
        walk.arrive(here)
        points.append(here)
    return points


def test_the_margin_is_kept_while_the_level_moves_on_over_ties() -> None:
    points = walked([True] * 9)
    levels = np.diff([one.level for one in points[4:]])
    assert (np.sign(levels) == np.sign(levels[0])).all()
    assert np.abs(levels) == pytest.approx(Boundary().level_stride, rel=0.05)
    assert max(abs(one.margin) for one in points[3:]) < 0.02


def test_the_level_stays_where_the_second_arm_was_not_tied() -> None:
    parameters = Boundary()
    ties = [True] * 6
    points = walked([*ties, False, *ties])
    where = points[6].level
    held = points[7 : 6 + parameters.hold_steps]
    assert max(abs(one.level - where) for one in held) < parameters.level_stride / 2
    assert abs(points[-1].level - where) > parameters.level_stride / 2


def test_a_push_crosses_the_boundary_on_the_side_of_the_second_arm() -> None:
    parameters = Boundary(max_pushes=1)
    for side in (1.0, -1.0):
        walk = BoundaryWalk(point(side * 0.05, 5.0, tied=False), SLOPE, parameters)
        assert walk.is_pushing
        assert not walk.needs_direction
        along, stride = walk.step()
        assert stride == 0.0
        assert side * 0.05 + along * SLOPE == pytest.approx(-side * parameters.push_target)
        walk.arrive(point(side * 0.05, 5.0, tied=False))
        assert not walk.is_pushing


def test_a_walk_is_lost_after_steps_off_the_boundary() -> None:
    parameters = Boundary()
    walk = BoundaryWalk(point(0.0, 5.0), SLOPE, parameters)
    told = []
    for margin in (0.5, 0.1, -0.5, 0.5, 0.6):
        if walk.needs_direction:
            walk.turn()
        walk.step()
        walk.arrive(point(margin, 5.0))
        told.append(walk.is_lost)
    assert told == [False, False, False, False, True]


def test_the_common_level_ignores_what_all_scores_share() -> None:
    scores = np.array([1.0, 4.0, 3.0, 0.0])
    assert common_level(Answer(1, False, scores, scores)) == pytest.approx(1.5)
    assert common_level(Answer(1, False, scores, scores + 7.0)) == pytest.approx(1.5)
    assert common_level(Answer(1, False, scores[:2], scores[:2])) == 0.0
