"""Multilevel splitting of a normal distribution, whose small probabilities are known."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import erfc, inf, sqrt

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from edgeflare.survey.rare.splitting import SplittingPlan, found_thresholds, split

DIMENSIONS = 10
Vector = NDArray[np.float64]


@dataclass(frozen=True)
class Normals:
    """Normal vectors; the level is how far their sum is from a limit, in standard deviations.

    Levels are rounded up to multiples of a step, where it is not 0.
    """

    limit: float
    step: float = 0.0

    def draw(self, count: int, rng: np.random.Generator) -> list[Vector]:
        return list(rng.standard_normal((count, DIMENSIONS)))

    def proposals(self, points: Sequence[Vector], rng: np.random.Generator) -> list[Vector]:
        drawn = rng.standard_normal((len(points), DIMENSIONS))
        return list(0.8 * np.stack(points) + 0.6 * drawn)

    def levels(self, points: Sequence[Vector]) -> NDArray[np.float64]:
        levels = self.limit - np.stack(points).sum(axis=1) / sqrt(DIMENSIONS)
        return np.asarray(np.ceil(levels / self.step) * self.step if self.step else levels)


def exact(limit: float) -> float:
    return 0.5 * erfc(limit / sqrt(2.0))


def never(_points: Sequence[Vector], _weight: float) -> bool:
    return False


def thresholds_to_the_event(space: Normals, plan: SplittingPlan) -> tuple[float, ...]:
    return found_thresholds(space, plan, np.random.default_rng(1), never, end=0.0)


@pytest.mark.parametrize("limit", [3.0902, 3.719, 4.2649, 4.7534])  # from 10⁻³ to 10⁻⁶
def test_small_probabilities_are_found(limit: float) -> None:
    space, plan = Normals(limit), SplittingPlan(first=400, particles=200)
    thresholds = thresholds_to_the_event(space, plan)
    generators = np.random.default_rng(2).spawn(12)
    found = [split(space, thresholds, plan, one) for one in generators]
    estimates = [float(one.weight[one.levels < 0.0].sum()) for one in found]
    mean, error = float(np.mean(estimates)), float(np.std(estimates, ddof=1)) / sqrt(12)
    assert abs(mean - exact(limit)) < 3.1 * error  # 99 % of Student's t
    assert error < 0.2 * exact(limit)


@pytest.mark.parametrize("step", [0.0, 0.5])
def test_few_particles_and_short_chains_are_unbiased(step: float) -> None:
    """Also where many points have the same level."""
    space, plan = Normals(2.0, step), SplittingPlan(first=32, particles=16, moves=1)
    thresholds = thresholds_to_the_event(space, plan)
    assert len(thresholds) > 2
    generators = np.random.default_rng(3).spawn(1500)
    estimates, means = [], []
    for one in generators:
        cloud = split(space, thresholds, plan, one)
        estimates.append(float(cloud.weight[cloud.levels < 0.0].sum()))
        means.append(float((cloud.weight * np.stack(cloud.points).sum(axis=1)).sum()))
    expected = exact(2.0 + step)  # a rounded level is below 0 where the other is below -step
    for values, true in ((estimates, expected), (means, 0.0)):
        error = float(np.std(values, ddof=1)) / sqrt(len(values))
        assert abs(float(np.mean(values)) - true) < 3.5 * error


@given(
    seed=st.integers(0, 2**32),
    step=st.sampled_from([0.0, 0.25, 2.0]),
    limit=st.floats(-1.0, 5.0),
    thresholds=st.lists(st.floats(-1.0, 6.0), max_size=6, unique=True),
)
def test_a_cloud_stands_for_the_whole_distribution(
    seed: int, step: float, limit: float, thresholds: list[float]
) -> None:
    falling = sorted(thresholds, reverse=True)
    space, plan = Normals(limit, step), SplittingPlan(first=24, particles=12, moves=2)
    cloud = split(space, falling, plan, np.random.default_rng(seed))
    assert cloud.weight.sum() == pytest.approx(1.0)
    assert np.array_equal(cloud.levels, space.levels(cloud.points))
    below = (cloud.levels[:, None] < np.asarray([*falling, -inf])).sum(axis=1)
    assert np.array_equal(cloud.shell, below)
    assert all(0.0 <= share <= 1.0 for share in cloud.accepted)


@pytest.mark.parametrize("step", [0.0, 0.3, 0.7])
def test_thresholds_fall_to_the_end(step: float) -> None:
    found = thresholds_to_the_event(Normals(2.0, step), SplittingPlan(first=200, particles=100))
    assert list(found) == sorted(set(found), reverse=True)
    assert found[-1] == 0.0


def test_no_threshold_is_set_where_all_levels_are_equal() -> None:
    assert (
        thresholds_to_the_event(Normals(50.0, 100.0), SplittingPlan(first=100, particles=50)) == ()
    )


def test_no_threshold_is_set_below_the_least_weight() -> None:
    plan = SplittingPlan(first=200, particles=100, least_weight=1e-3)
    found = thresholds_to_the_event(Normals(9.0), plan)
    assert 9 <= len(found) <= 11  # a half passes each


def test_points_that_are_enough_need_no_threshold() -> None:
    asked: list[float] = []
    weights: list[float] = []

    def enough(points: Sequence[Vector], weight: float) -> bool:
        asked.append(float(space.levels(points).max()))
        weights.append(weight)
        return len(asked) == 3

    space = Normals(5.0)
    rng = np.random.default_rng(0)
    found = found_thresholds(space, SplittingPlan(first=100, particles=50), rng, enough)
    assert len(found) == 2
    assert all(level < threshold for level, threshold in zip(asked[1:], found, strict=True))
    assert weights == pytest.approx([1.0, 0.5, 0.25], rel=0.1)


def test_points_infinitely_far_are_split_off() -> None:
    class Gap(Normals):
        def levels(self, points: Sequence[Vector]) -> NDArray[np.float64]:
            near = np.stack(points)[:, 0] > 0.7
            return np.where(near, super().levels(points), inf)

    space, plan = Gap(1.0), SplittingPlan(first=200, particles=100)
    found = thresholds_to_the_event(space, plan)
    assert found[0] == inf
    cloud = split(space, found, plan, np.random.default_rng(4))
    assert 0.6 < cloud.weight[cloud.shell == 0].sum() < 0.9
