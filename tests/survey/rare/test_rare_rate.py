"""Rates of rare events whose values are known, of devices that do not do what is foretold."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from math import erfc, sqrt

import numpy as np
import pytest
from numpy.typing import NDArray

from edgeflare.survey.rare.rare_rate import (
    RarePlan,
    RareProgress,
    RareRate,
    StoppedEarly,
    rare_rate,
)
from edgeflare.survey.rare.splitting import SplittingPlan

SMALL = SplittingPlan(first=400, particles=100, moves=4)
Vector = NDArray[np.float64]


@dataclass
class Deviations:
    """Normal pairs (x, e): the host foretells x > limit, the device says x + spread · e > limit.

    Without foretelling, levels lie above 0 by so much. The device counts what it is asked.
    """

    limit: float
    spread: float = 0.2
    above: float = 0.0
    asked: int = field(default=0)
    most: int = 10**9

    def draw(self, count: int, rng: np.random.Generator) -> list[Vector]:
        return list(rng.standard_normal((count, 2)))

    def proposals(self, points: Sequence[Vector], rng: np.random.Generator) -> list[Vector]:
        return list(0.8 * np.stack(points) + 0.6 * rng.standard_normal((len(points), 2)))

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
        return 0.5 * erfc(self.limit / sqrt(1.0 + self.spread**2) / sqrt(2.0))


def found(field: Deviations, plan: RarePlan, seed: int = 0) -> RareRate:
    rate = rare_rate(field, field.ask, plan, np.random.default_rng(seed))
    assert rate is not None
    return rate


@pytest.mark.parametrize("limit", [3.15, 3.8, 4.8])  # about 10⁻³, 10⁻⁴ and 10⁻⁶
@pytest.mark.parametrize("above", [0.0, 0.4])
def test_a_rare_rate_is_found_with_few_device_queries(limit: float, above: float) -> None:
    """Whether the host foretells the event, or knows no more than where it is likelier."""
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
    field = Deviations(3.15)
    rate = found(field, RarePlan(splitting=SMALL))
    assert sum(one.weight for one in rate.shells) == pytest.approx(1.0)
    assert [one.below for one in rate.shells] == sorted(
        (s.below for s in rate.shells), reverse=True
    )
    assert all(0 <= one.surprises <= one.asked for one in rate.shells)
    assert all(one.asked >= 20 for one in rate.shells[:-1])
    assert rate.shells[0].happened == 0
    assert rate.shells[-1].happened > 0.1 * rate.shells[-1].asked


def test_nothing_seen_leaves_a_limit_and_says_so() -> None:
    field = Deviations(3.0, above=1.0, spread=0.0)
    never: Callable[[Sequence[Vector]], NDArray[np.bool_]] = lambda p: np.zeros(len(p), bool)  # noqa: E731
    plan = RarePlan(SMALL, repetitions=3, device_queries=600)
    rate = rare_rate(field, never, plan, np.random.default_rng(0))
    assert rate is not None
    assert (rate.estimate, rate.low, rate.high) == (0.0, 0.0, 0.0)
    assert 3.0 / 600 < rate.ceiling < 0.2
    assert rate.unseen_share == 1.0


def test_events_far_from_the_margin_are_within_the_ceiling() -> None:
    """A device that fails at random: no repetition may see it, and the ceiling allows for it."""
    field, rng = Deviations(3.8), np.random.default_rng(9)

    def ask(points: Sequence[Vector]) -> NDArray[np.bool_]:
        return np.asarray(field.ask(points) | (rng.random(len(points)) < 1e-3))

    rate = rare_rate(field, ask, RarePlan(splitting=SMALL), np.random.default_rng(0))
    assert rate is not None
    assert rate.ceiling > 1e-3 + field.exact
    assert 0.0 <= rate.unseen_share <= 1.0


def test_progress_is_told_after_the_pilot_and_each_repetition() -> None:
    told: list[RareProgress] = []
    field = Deviations(2.5)
    plan = RarePlan(SMALL, repetitions=3, device_queries=300)
    rare_rate(field, field.ask, plan, np.random.default_rng(0), told.append)
    assert [one.repetitions for one in told] == [0, 1, 2, 3]
    assert {one.of for one in told} == {3}
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
