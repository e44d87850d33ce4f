"""Rates of rare events whose values are known: splitting, the device's draws, and intervals."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from math import erfc, exp, inf, log, sqrt

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from edgeflare.survey.rare_events.rare_rate import (
    INSURANCE,
    RarePlan,
    RareProgress,
    RareRate,
    StoppedEarly,
    rare_rate,
    repetition_interval,
    shell_shares,
    unseen_limit,
)
from edgeflare.survey.rare_events.splitting import SplittingPlan, found_thresholds, split

DIMENSIONS = 10
SMALL = SplittingPlan(first=400, particles=100, moves=4)
Vector = NDArray[np.float64]


class Normals:
    """Normal vectors, drawn and moved."""

    dimensions = DIMENSIONS

    def draw(self, count: int, rng: np.random.Generator) -> list[Vector]:
        return list(rng.standard_normal((count, self.dimensions)))

    def proposals(self, points: Sequence[Vector], rng: np.random.Generator) -> list[Vector]:
        drawn = rng.standard_normal((len(points), self.dimensions))
        return list(0.8 * np.stack(points) + 0.6 * drawn)


@dataclass
class Sums(Normals):
    """The level is how far the sum of a vector is from a limit, in standard deviations.

    Levels are rounded up to multiples of a step, where it is not 0.
    """

    limit: float
    step: float = 0.0

    def levels(self, points: Sequence[Vector]) -> NDArray[np.float64]:
        levels = self.limit - np.stack(points).sum(axis=1) / sqrt(DIMENSIONS)
        return np.asarray(np.ceil(levels / self.step) * self.step if self.step else levels)


def exact(limit: float) -> float:
    return 0.5 * erfc(limit / sqrt(2.0))


def never(_points: Sequence[Vector], _weight: float) -> bool:
    return False


def thresholds_to_the_event(space: Sums, plan: SplittingPlan) -> tuple[float, ...]:
    return found_thresholds(space, plan, np.random.default_rng(1), never, end=0.0)


@pytest.mark.parametrize("limit", [3.0902, 4.7534])  # 10⁻³ and 10⁻⁶
def test_small_probabilities_are_found(limit: float) -> None:
    space, plan = Sums(limit), SplittingPlan(first=400, particles=200)
    thresholds = thresholds_to_the_event(space, plan)
    found = [split(space, thresholds, plan, one) for one in np.random.default_rng(2).spawn(12)]
    estimates = [float(one.weight[one.levels < 0.0].sum()) for one in found]
    mean, error = float(np.mean(estimates)), float(np.std(estimates, ddof=1)) / sqrt(12)
    assert abs(mean - exact(limit)) < 3.1 * error  # 99 % of Student's t
    assert error < 0.2 * exact(limit)


@pytest.mark.slow
@pytest.mark.parametrize("step", [0.0, 0.5])
def test_few_particles_and_short_chains_are_unbiased(step: float) -> None:
    """Also where many points have the same level."""
    space, plan = Sums(2.0, step), SplittingPlan(first=32, particles=16, moves=1)
    thresholds = thresholds_to_the_event(space, plan)
    assert len(thresholds) > 2
    estimates, means = [], []
    for one in np.random.default_rng(3).spawn(1500):
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
    space, plan = Sums(limit, step), SplittingPlan(first=24, particles=12, moves=2)
    cloud = split(space, falling, plan, np.random.default_rng(seed))
    assert cloud.weight.sum() == pytest.approx(1.0)
    assert np.array_equal(cloud.levels, space.levels(cloud.points))
    below = (cloud.levels[:, None] < np.asarray([*falling, -inf])).sum(axis=1)
    assert np.array_equal(cloud.shell, below)
    assert all(0.0 <= share <= 1.0 for share in cloud.accepted)


@pytest.mark.parametrize("step", [0.0, 0.3, 0.7])
def test_thresholds_fall_to_the_end(step: float) -> None:
    found = thresholds_to_the_event(Sums(2.0, step), SplittingPlan(first=200, particles=100))
    assert list(found) == sorted(set(found), reverse=True)
    assert found[-1] == 0.0


def test_no_threshold_is_set_where_all_levels_are_equal_or_below_the_least_weight() -> None:
    plan = SplittingPlan(first=200, particles=100, least_weight=1e-3)
    assert thresholds_to_the_event(Sums(50.0, 100.0), plan) == ()
    assert 9 <= len(thresholds_to_the_event(Sums(9.0), plan)) <= 11  # a half passes each


def test_points_that_are_enough_need_no_threshold() -> None:
    asked: list[float] = []
    weights: list[float] = []

    def enough(points: Sequence[Vector], weight: float) -> bool:
        asked.append(float(space.levels(points).max()))
        weights.append(weight)
        return len(asked) == 3

    space = Sums(5.0)
    rng = np.random.default_rng(0)
    found = found_thresholds(space, SplittingPlan(first=100, particles=50), rng, enough)
    assert len(found) == 2
    assert all(level < threshold for level, threshold in zip(asked[1:], found, strict=True))
    assert weights == pytest.approx([1.0, 0.5, 0.25], rel=0.1)


def test_points_infinitely_far_are_split_off() -> None:
    class Gap(Sums):
        def levels(self, points: Sequence[Vector]) -> NDArray[np.float64]:
            near = np.stack(points)[:, 0] > 0.7
            return np.where(near, super().levels(points), inf)

    space, plan = Gap(1.0), SplittingPlan(first=200, particles=100)
    found = thresholds_to_the_event(space, plan)
    assert found[0] == inf
    cloud = split(space, found, plan, np.random.default_rng(4))
    assert 0.6 < cloud.weight[cloud.shell == 0].sum() < 0.9


@dataclass
class Deviations(Normals):
    """Normal pairs (x, e): the host foretells x > limit, the device says x + spread · e > limit.

    Without foretelling, levels lie above 0 by so much. The device counts what it is asked.
    """

    limit: float
    spread: float = 0.2
    above: float = 0.0
    asked: int = field(default=0)
    most: int = 10**9

    dimensions = 2

    def levels(self, points: Sequence[Vector]) -> NDArray[np.float64]:
        return np.asarray(self.limit + self.above - np.stack(points)[:, 0])

    def ask(self, points: Sequence[Vector]) -> NDArray[np.bool_]:
        self.asked += len(points)
        if self.asked > self.most:
            raise StoppedEarly
        x, e = np.stack(points).T
        return np.asarray(x + self.spread * e > self.limit)

    @property
    def exact(self) -> float:
        return exact(self.limit / sqrt(1.0 + self.spread**2))


Ask = Callable[[Sequence[Vector]], NDArray[np.bool_]]


def found(field: Deviations, plan: RarePlan, seed: int = 0, ask: Ask | None = None) -> RareRate:
    rate = rare_rate(field, ask or field.ask, plan, np.random.default_rng(seed))
    assert rate is not None
    return rate


@pytest.mark.parametrize(("limit", "above"), [(3.15, 0.0), (3.15, 0.4), (4.8, 0.0), (4.8, 0.4)])
def test_a_rare_rate_is_found_with_few_device_queries(limit: float, above: float) -> None:
    """About 10⁻³ and 10⁻⁶: the host foretells it, or knows no more than where it is likelier."""
    field = Deviations(limit, above=above)
    rate = found(field, RarePlan(splitting=SMALL, device_queries=1500, confidence=0.99))
    assert field.exact / 1.5 < rate.estimate < 1.5 * field.exact
    assert rate.low < field.exact < rate.high < rate.ceiling
    assert rate.device_queries == field.asked
    assert abs(field.asked - 1500) < 150


def test_the_estimate_is_unbiased_though_the_host_is_wrong() -> None:
    field = Deviations(1.6, spread=0.8, above=-0.5)
    plan = RarePlan(
        SplittingPlan(first=80, particles=40, moves=1), repetitions=40, device_queries=1000
    )
    estimates = [one for seed in range(5) for one in found(field, plan, seed).repetitions]
    error = float(np.std(estimates, ddof=1)) / sqrt(len(estimates))
    assert abs(float(np.mean(estimates)) - field.exact) < 3.5 * error
    assert error < 0.1 * field.exact


def test_more_is_asked_where_repetitions_were_surprised() -> None:
    """Though the pilot saw nothing there."""
    field, told, rounds = Deviations(3.15), [0], [0] * 6

    def ask(points: Sequence[Vector]) -> NDArray[np.bool_]:
        levels = field.levels(points)
        odd = (levels > 1.0) & (levels < 1.5)
        rounds[told[-1]] += int(odd.sum())
        return np.asarray(field.ask(points) | (odd & (len(told) > 1)))

    rare_rate(
        field,
        ask,
        RarePlan(splitting=SMALL, repetitions=5, device_queries=1500),
        np.random.default_rng(0),
        lambda progress: told.append(progress.repetitions + 1),
    )
    assert rounds[5] > 1.5 * rounds[1] > 0


def test_shells_say_where_the_rate_comes_from() -> None:
    shells = found(Deviations(3.15), RarePlan(splitting=SMALL)).shells
    assert sum(one.weight for one in shells) == pytest.approx(1.0)
    assert [one.below for one in shells] == sorted((one.below for one in shells), reverse=True)
    assert all(0 <= one.surprises <= one.asked for one in shells)
    assert all(one.asked >= 20 for one in shells[:-1])
    assert shells[0].happened == 0
    assert shells[-1].happened > 0.1 * shells[-1].asked


def test_nothing_seen_leaves_a_limit_and_says_so() -> None:
    field = Deviations(3.0, above=1.0, spread=0.0)
    plan = RarePlan(SMALL, repetitions=3, device_queries=600)
    rate = found(field, plan, ask=lambda points: np.zeros(len(points), bool))
    assert (rate.estimate, rate.low, rate.high) == (0.0, 0.0, 0.0)
    assert 3.0 / 600 < rate.ceiling < 0.2
    assert rate.unseen_share == 1.0


def test_events_far_from_the_margin_are_within_the_ceiling() -> None:
    """A device that fails at random: no repetition may see it, and the ceiling allows for it."""
    field, rng = Deviations(3.8), np.random.default_rng(9)

    def ask(points: Sequence[Vector]) -> NDArray[np.bool_]:
        return np.asarray(field.ask(points) | (rng.random(len(points)) < 1e-3))

    rate = found(field, RarePlan(splitting=SMALL), ask=ask)
    assert rate.ceiling > 1e-3 + field.exact
    assert 0.0 <= rate.unseen_share <= 1.0


def test_progress_is_told_after_the_pilot_and_each_repetition() -> None:
    told: list[RareProgress] = []
    field = Deviations(2.5)
    plan = RarePlan(SMALL, repetitions=3, device_queries=300)
    rare_rate(field, field.ask, plan, np.random.default_rng(0), told.append)
    assert [(one.repetitions, one.of) for one in told] == [(0, 3), (1, 3), (2, 3), (3, 3)]
    assert told[-1].device_queries == field.asked


def test_the_repetitions_that_were_finished_count() -> None:
    plan = RarePlan(SMALL, repetitions=6, device_queries=900)
    whole = found(Deviations(2.5), plan)
    part = found(Deviations(2.5, most=600), plan)
    assert 2 <= len(part.repetitions) < 6
    assert part.repetitions == whole.repetitions[: len(part.repetitions)]
    for most in (10, 200):  # within the pilot, and within the first repetitions
        field = Deviations(2.5, most=most)
        assert rare_rate(field, field.ask, plan, np.random.default_rng(0)) is None


SHELLS = st.lists(
    st.tuples(st.floats(1e-8, 1.0), st.integers(0, 60), st.floats(0.0, 1.0)), min_size=1, max_size=9
)


@given(SHELLS, st.booleans())
def test_every_shell_has_a_share_by_its_weight(
    shells: list[tuple[float, int, float]], told: bool
) -> None:
    weight = np.asarray([one[0] for one in shells])
    asked = np.asarray([one[1] for one in shells])
    surprises = np.asarray([round(one[1] * one[2]) for one in shells])
    foretold = (np.arange(len(shells)) == len(shells) - 1) & told
    shares = shell_shares(weight, asked, surprises, foretold)
    assert np.isclose(shares.sum(), 1.0)
    assert (shares >= INSURANCE * weight / weight.sum() - 1e-12).all()


def test_more_is_asked_where_the_device_surprised() -> None:
    weight, asked = np.asarray([0.5, 0.25, 0.125, 0.125]), np.full(4, 25)
    none = np.zeros(4, dtype=bool)
    calm = shell_shares(weight, asked, np.asarray([0, 0, 0, 5]), none)
    odd = shell_shares(weight, asked, np.asarray([0, 5, 0, 5]), none)
    assert odd[1] > 2.0 * calm[1]


def test_what_is_foretold_needs_little_where_the_host_is_right() -> None:
    weight, asked = np.asarray([0.998, 0.001, 0.001]), np.full(3, 400)
    foretold = np.asarray([False, False, True])
    right = shell_shares(weight, asked, np.asarray([0, 40, 0]), foretold)
    wrong = shell_shares(weight, asked, np.asarray([0, 40, 200]), foretold)
    assert right[2] < 0.5 * right[1] < wrong[2]


@pytest.mark.parametrize(
    ("weight", "asked", "surprises", "limit"),
    [
        ([0.9, 0.09, 0.01], [300, 10, 5], [0, 0, 2], 0.09 * log(40) / 10),
        ([0.9, 0.09, 0.01], [300, 10, 5], [1, 1, 2], 0.0),
        ([0.3, 0.7], [0, 0], [0, 0], 0.7),
    ],
    ids=["the heaviest without a surprise", "all surprised", "none was asked"],
)
def test_the_limit_is_of_the_heaviest_shell_without_a_surprise(
    weight: list[float], asked: list[int], surprises: list[int], limit: float
) -> None:
    shares, counts, seen = (np.asarray(one) for one in (weight, asked, surprises))
    assert unseen_limit(shares, counts, seen, 0.95) == pytest.approx(limit)


def test_events_above_the_limit_are_rarely_missed() -> None:
    weight, asked = np.asarray([0.8, 0.2]), np.asarray([200, 100])
    limit = unseen_limit(weight, asked, np.zeros(2, dtype=np.int64), 0.95)
    for shell in range(2):  # a rate that reaches the limit in one shell alone
        assert (1.0 - limit / weight[shell]) ** asked[shell] <= 0.0251


def test_the_limits_are_those_of_students_t_on_a_logarithmic_scale() -> None:
    width = 4.302653 * (1e-4 / sqrt(3)) / 2e-4  # the table's value for 2 degrees of freedom
    expected = (2e-4, 2e-4 * exp(-width), 2e-4 * exp(width))
    assert repetition_interval([1e-4, 2e-4, 3e-4], 0.95) == pytest.approx(expected)


def test_about_as_many_intervals_hold_as_said() -> None:
    rng = np.random.default_rng(0)
    held = 0
    for _ in range(1000):
        _, low, high = repetition_interval(rng.lognormal(-0.125, 0.5, 10).tolist(), 0.95)
        held += low <= 1.0 <= high
    assert 930 <= held <= 970


@given(st.lists(st.floats(0.0, 1e-2), min_size=2, max_size=12), st.floats(1e-9, 1e-2))
def test_an_interval_holds_its_estimate_and_scales(values: list[float], scale: float) -> None:
    estimate, low, high = repetition_interval(values, 0.9)
    assert 0.0 <= low <= estimate <= high <= 1.0
    if estimate > 1e-12 and high < 1.0:
        scaled = repetition_interval([scale * one for one in values], 0.9)
        assert scaled == pytest.approx((scale * estimate, scale * low, scale * high))


@given(st.lists(st.floats(0.8, 1.2), min_size=2, max_size=12))
def test_limits_of_what_nearly_always_happens_are_shares(values: list[float]) -> None:
    _, low, high = repetition_interval(values, 0.95)
    assert 0.0 < low <= high <= 1.0


@pytest.mark.parametrize("values", [[0.0, 0.0], [-1e-5, 0.5e-5]])
def test_nothing_found_has_no_interval(values: list[float]) -> None:
    assert repetition_interval(values, 0.95) == (0.0, 0.0, 0.0)
