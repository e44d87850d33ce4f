"""Multilevel splitting: points of a distribution, weighted, most of them where a level is low.

Points are drawn, and those whose level is not below a threshold are set aside, then those not below
the next one. Once few are left, they are copied, and all are moved by a Markov chain that leaves
the distribution below the threshold as it is (Cérou and Guyader 2007). What was set aside is kept:
between two thresholds lies a *shell*, and all shells together are a sample of the whole
distribution. With thresholds that are fixed beforehand the weighted mean of any function over that
sample is unbiased, however short the chains are (Del Moral 2004); a pilot finds them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Generic, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

Point = TypeVar("Point")


class Space(Protocol[Point]):
    """A distribution of points, and the level of each."""

    def draw(self, count: int, rng: np.random.Generator) -> list[Point]:
        """Return independent points of the distribution."""
        ...

    def proposals(self, points: Sequence[Point], rng: np.random.Generator) -> list[Point]:
        """Return for each point one that it may move to.

        Taking every proposal has to leave the distribution as it is, and moving back has to be as
        likely as moving there.
        """
        ...

    def levels(self, points: Sequence[Point]) -> NDArray[np.float64]:
        """Return the level of each point: (points,), low where the event is near."""
        ...


@dataclass(frozen=True, slots=True)
class SplittingPlan:
    """How points are split.

    Attributes:
        first: points that are drawn. They are independent, which moved ones are not: where chains
            seldom go from one input to another, the variety of what is found deep down is theirs.
        particles: the least that there are below a threshold; fewer are copied.
        survivors: share of them that is below the next threshold, as the pilot chooses it.
        moves: steps of the Markov chain that each takes between two thresholds; at least 1.
        least_weight: probability below which the pilot sets no further threshold.

    """

    first: int = 20_000
    particles: int = 300
    survivors: float = 0.5
    moves: int = 3
    least_weight: float = 1e-8


@dataclass(frozen=True, slots=True)
class Cloud(Generic[Point]):
    """A weighted sample of a distribution.

    Attributes:
        points: the sample; copies may be equal.
        levels: (points,) of each.
        shell: (points,) int64, how many thresholds each lies below.
        weight: (points,) the probability that each stands for; they add up to 1.
        accepted: share of the proposals that were accepted on the way to each threshold.

    """

    points: tuple[Point, ...]
    levels: NDArray[np.float64]
    shell: NDArray[np.int64]
    weight: NDArray[np.float64]
    accepted: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class _Particles(Generic[Point]):
    """Points, and the weight of each; they are independent until they are moved."""

    points: list[Point]
    levels: NDArray[np.float64]
    weight: float
    moved: bool = False
    accepted: float = 1.0

    def of(self, chosen: NDArray[np.int64]) -> _Particles[Point]:
        points = [self.points[at] for at in chosen]
        return replace(self, points=points, levels=self.levels[chosen])


def found_thresholds(
    space: Space[Point],
    plan: SplittingPlan,
    rng: np.random.Generator,
    enough: Callable[[Sequence[Point], float], bool],
    end: float = -np.inf,
) -> tuple[float, ...]:
    """Find thresholds, falling, each of which about the same share of the last ones' points passes.

    Levels may be equal for many points: then another share passes.

    Args:
        space: space of the points.
        plan: how points are split.
        rng: generator of all random draws.
        enough: is told all points below the last threshold, at first all that are drawn, and their
            probability; whether they need no further threshold.
        end: the last threshold, where levels fall as low.

    """
    alive = _drawn(space, plan.first, rng)
    found: list[float] = []
    while (weight := alive.weight * len(alive.points)) >= plan.least_weight:
        if enough(alive.points, weight) or found[-1:] == [end]:
            break
        threshold = _next_threshold(alive.levels, plan.survivors, end)
        if threshold is None:
            break
        found.append(threshold)
        alive = _below(space, alive, threshold, plan, rng)
    return tuple(found)


def split(
    space: Space[Point], thresholds: Sequence[float], plan: SplittingPlan, rng: np.random.Generator
) -> Cloud[Point]:
    """Return a weighted sample of a distribution.

    Args:
        space: space of the points.
        thresholds: falling, found by `found_thresholds` with another generator.
        plan: how points are split.
        rng: generator of all random draws.

    """
    alive = _drawn(space, plan.first, rng)
    parts: list[_Particles[Point]] = []
    for threshold in thresholds:
        parts.append(alive.of(np.flatnonzero(alive.levels >= threshold)))
        alive = _below(space, alive, threshold, plan, rng)
    parts.append(alive)
    counts = [len(part.points) for part in parts]
    return Cloud(
        tuple(point for part in parts for point in part.points),
        np.concatenate([part.levels for part in parts]),
        np.repeat(np.arange(len(parts)), counts),
        np.repeat([part.weight for part in parts], counts),
        tuple(part.accepted for part in parts[1:]),
    )


def _drawn(space: Space[Point], count: int, rng: np.random.Generator) -> _Particles[Point]:
    points = space.draw(count, rng)
    return _Particles(points, space.levels(points), 1.0 / count)


def _next_threshold(levels: NDArray[np.float64], share: float, end: float) -> float | None:
    """Return a threshold that some of the levels are below and some are not; None for none."""
    ordered = np.sort(levels)
    threshold = ordered[int(share * len(ordered))]
    if threshold == ordered[0]:
        above = ordered[ordered > threshold]
        if len(above) == 0:
            return None
        threshold = above[0]
    return max(float(threshold), end)


def _below(
    space: Space[Point],
    particles: _Particles[Point],
    threshold: float,
    plan: SplittingPlan,
    rng: np.random.Generator,
) -> _Particles[Point]:
    """Return the particles below a threshold, copied and moved where they are few; maybe none.

    From the first time that there are few, all are moved each time. Were only the copies moved,
    their share would depend on how many passed, and so the estimate be biased.
    """
    below = np.flatnonzero(particles.levels < threshold)
    missing = plan.particles - len(below)
    if len(below) == 0 or (missing <= 0 and not particles.moved):
        return particles.of(below)
    chosen = rng.choice(below, max(missing, 0))
    kept = np.concatenate([below, chosen])
    alive = particles.of(kept)
    points, levels, taken = alive.points, alive.levels, 0
    for _ in range(plan.moves):
        proposed = space.proposals(points, rng)
        theirs = space.levels(proposed)
        for at in np.flatnonzero(theirs < threshold):
            points[at] = proposed[at]
            levels[at] = theirs[at]
            taken += 1
    weight = particles.weight * len(below) / len(points)
    return _Particles(points, levels, weight, True, taken / (len(points) * plan.moves))
