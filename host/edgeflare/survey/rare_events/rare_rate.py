"""The rate of a rare event, from multilevel splitting on the host and few device queries.

A pilot finds thresholds and where the device surprises. Each repetition is then a splitting of its
own, whose cloud is a weighted sample of the field: the weight of the points of which the host
foretells the event, corrected by what the device says about a few points of each shell (a
difference estimator). Where it asks depends on what was seen before, its expectation does not: each
is unbiased, no two are correlated, and their spread gives the interval.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from math import exp, log, sqrt
from typing import Final, TypeVar

import numpy as np
from numpy.typing import NDArray

from edgeflare.statistics.distributions import student_quantile
from edgeflare.survey.rare_events.splitting import Space, SplittingPlan, found_thresholds, split

INSURANCE = 0.25
"""Share of the queries in proportion to the weight of a shell, whatever was seen: it bounds what
one surprise far from the event may stand for."""

_DECAY = 0.1
"""What is guessed for a shell without surprises: at most so many times the rate of surprises of the
next one inwards. It steers queries and enters no estimate."""

Point = TypeVar("Point")

Ask = Callable[[Sequence[Point]], NDArray[np.bool_]]
"""Asks the device about points: whether the event happens at each, (points,) bool."""

FORETOLD = 0.0
"""The host foretells the event of the points whose level is below this."""

_PROBE = 25
"""Points that the pilot asks about below each threshold."""

_ENOUGH = 5
"""Events among them, that the host did not foretell, below each of two thresholds in succession:
the device is asked more cheaply about such points than the host splits them further. Fewer may be
copies of one point."""

_LEAST = 2
"""Points that a repetition asks about in each shell."""

_ROUNDING: Final = 1e-15
"""A mean that is not above this is 0 with errors of rounding."""


class StoppedEarly(Exception):  # noqa: N818 - a request of the user, no error
    """The user wants to stop; raised by a space or what asks the device."""


@dataclass(frozen=True, slots=True)
class RarePlan:
    """How a rare event is looked for.

    Attributes:
        splitting: how the points of the pilot and of each repetition are split.
        repetitions: number of repetitions; 2 or more.
        device_queries: device queries of the pilot and all repetitions, about; more where the
            shells are so many that the least for each exceeds them.
        confidence: confidence of the interval.

    """

    splitting: SplittingPlan = field(default_factory=SplittingPlan)
    repetitions: int = 10
    device_queries: int = 2000
    confidence: float = 0.95

    @property
    def least_for_a_shell(self) -> int:
        """Device queries that each shell takes at least, about, however few there are to be."""
        return _PROBE + self.repetitions * _LEAST


@dataclass(frozen=True, slots=True)
class RareShell:
    """The points between two thresholds.

    Attributes:
        below: their levels are below this.
        weight: their probability, the mean over the repetitions.
        asked: points that the device was asked about.
        happened: points asked at which the event happens.
        surprises: points asked where the host had foretold otherwise.

    """

    below: float
    weight: float
    asked: int
    happened: int
    surprises: int


@dataclass(frozen=True, slots=True)
class RareRate:
    """The rate of a rare event.

    Attributes:
        estimate: the mean of the repetitions.
        low, high: the interval from their spread. It takes for granted that nothing happens where
            nothing was seen.
        ceiling: an upper limit without that: as if the event were as frequent in the shells without
            a surprise as it could be without having been seen.
        unseen_share: share of the ceiling that comes from those shells, from 0 to 1.
        repetitions: the estimate of each that was finished.
        shells: the outermost first.
        device_queries: points that the device was asked about.

    """

    estimate: float
    low: float
    high: float
    ceiling: float
    unseen_share: float
    repetitions: tuple[float, ...]
    shells: tuple[RareShell, ...]
    device_queries: int


@dataclass(frozen=True, slots=True)
class RareProgress:
    """How far an estimate is; of no repetitions, the pilot is done."""

    repetitions: int
    of: int
    device_queries: int


@dataclass(slots=True)
class _Tally:
    """What was seen in each shell; arrays are (shells,)."""

    asked: NDArray[np.int64]
    happened: NDArray[np.int64]
    surprises: NDArray[np.int64]

    @classmethod
    def of(cls, shells: int) -> _Tally:
        return cls(*(np.zeros(shells, dtype=np.int64) for _ in range(3)))

    def add(
        self, shell: NDArray[np.int64], foretold: NDArray[np.bool_], seen: NDArray[np.bool_]
    ) -> None:
        np.add.at(self.asked, shell, 1)
        np.add.at(self.happened, shell[seen], 1)
        np.add.at(self.surprises, shell[seen != foretold], 1)


def rare_rate(
    space: Space[Point],
    ask: Ask[Point],
    plan: RarePlan,
    rng: np.random.Generator,
    progress: Callable[[RareProgress], None] = lambda _: None,
) -> RareRate | None:
    """Estimate the rate of a rare event.

    Args:
        space: the points; the host foretells the event where the level is below 0.
        ask: asks the device.
        plan: how it is looked for.
        rng: generator of all random draws.
        progress: is told when the pilot and each repetition are done.

    Returns:
        The rate, of the repetitions that were finished where `StoppedEarly` is raised; None where
        these are less than two.

    """
    pilot_rng, *generators = rng.spawn(plan.repetitions + 1)
    estimates: list[float] = []
    try:
        pilot = _pilot(space, ask, plan, pilot_rng)
    except StoppedEarly:
        return None
    tally = _Tally.of(len(pilot.thresholds) + 1)
    weights = []
    queries = pilot.queries
    progress(RareProgress(0, plan.repetitions, queries))
    for generator in generators:
        before = int(tally.asked.sum())
        counts = pilot.counts(plan, tally)
        try:
            estimate, weight = _repetition(space, ask, pilot, counts, tally, generator)
        except StoppedEarly:
            break
        estimates.append(estimate)
        weights.append(weight)
        queries += int(tally.asked.sum()) - before
        progress(RareProgress(len(estimates), plan.repetitions, queries))
    if len(estimates) < 2:
        return None
    return _concluded(estimates, np.mean(weights, axis=0), pilot.thresholds, tally, queries, plan)


@dataclass(frozen=True, slots=True)
class _Pilot:
    """What a pilot found; `weight` and the tally are by shell."""

    plan: SplittingPlan
    thresholds: tuple[float, ...]
    weight: NDArray[np.float64]
    tally: _Tally
    queries: int

    def counts(self, plan: RarePlan, since: _Tally) -> NDArray[np.int64]:
        """Return how many points of each shell the next repetition asks about: (shells,)."""
        foretold = np.zeros(len(self.weight), dtype=bool)
        foretold[-1] = bool(self.thresholds) and self.thresholds[-1] <= FORETOLD
        asked = self.tally.asked + since.asked
        surprises = self.tally.surprises + since.surprises
        shares = shell_shares(self.weight, asked, surprises, foretold)
        each = (plan.device_queries - self.queries) / plan.repetitions - _LEAST * len(shares)
        return _LEAST + np.rint(shares * max(each, 0.0)).astype(np.int64)


def _pilot(
    space: Space[Point], ask: Ask[Point], plan: RarePlan, rng: np.random.Generator
) -> _Pilot:
    """Find thresholds, weights of shells, and about how often the device surprises in each."""
    probed: list[tuple[NDArray[np.float64], NDArray[np.bool_]]] = []
    below: list[float] = []
    events = [0]

    def enough(points: Sequence[Point], weight: float) -> bool:
        chosen = [points[at] for at in rng.choice(len(points), min(_PROBE, len(points)), False)]
        levels, seen = space.levels(chosen), ask(chosen)
        probed.append((levels, seen))
        below.append(weight)
        events.append(int((seen & (levels >= FORETOLD)).sum()))
        return min(events[-2:]) >= _ENOUGH

    thresholds = found_thresholds(space, plan.splitting, rng, enough, FORETOLD)
    tally = _Tally.of(len(thresholds) + 1)
    levels, seen = (np.concatenate(parts) for parts in zip(*probed, strict=True))
    shell = (levels[:, None] < np.asarray(thresholds)[None, :]).sum(axis=1)
    tally.add(shell, levels < FORETOLD, seen)
    # Where the last threshold was passed by too few to be told, hardly anything is below it.
    below += [0.0] * (len(thresholds) + 2 - len(below))
    return _Pilot(plan.splitting, thresholds, -np.diff(below), tally, len(levels))


def _repetition(
    space: Space[Point],
    ask: Ask[Point],
    pilot: _Pilot,
    counts: NDArray[np.int64],
    tally: _Tally,
    rng: np.random.Generator,
) -> tuple[float, NDArray[np.float64]]:
    """Return the estimate of a splitting of its own, and the weight of each shell in it."""
    cloud = split(space, pilot.thresholds, pilot.plan, rng)
    members = [np.flatnonzero(cloud.shell == shell) for shell in range(len(counts))]
    chosen = np.concatenate(
        [
            rng.choice(member, min(int(count), len(member)), replace=False)
            for member, count in zip(members, counts, strict=True)
        ]
    )
    foretold = cloud.levels < FORETOLD
    shell = cloud.shell[chosen]
    seen = ask([cloud.points[at] for at in chosen])
    tally.add(shell, foretold[chosen], seen)
    surprise = seen.astype(np.float64) - foretold[chosen]
    asked = np.bincount(shell, minlength=len(counts))
    weight = np.asarray(np.bincount(cloud.shell, cloud.weight, len(counts)), dtype=np.float64)
    more = weight * np.bincount(shell, surprise, len(counts)) / np.maximum(asked, 1)
    return float(cloud.weight[foretold].sum() + more.sum()), weight


def _concluded(
    estimates: Sequence[float],
    weight: NDArray[np.float64],
    thresholds: Sequence[float],
    tally: _Tally,
    queries: int,
    plan: RarePlan,
) -> RareRate:
    estimate, low, high = repetition_interval(estimates, plan.confidence)
    unseen = unseen_limit(weight, tally.asked, tally.surprises, plan.confidence)
    ceiling = min(1.0, estimate + float(np.hypot(high - estimate, unseen)))
    shells = tuple(
        RareShell(*row)
        for row in zip(
            (float("inf"), *thresholds),
            weight.tolist(),
            tally.asked.tolist(),
            tally.happened.tolist(),
            tally.surprises.tolist(),
            strict=True,
        )
    )
    share = 1.0 - min(high, ceiling) / ceiling if ceiling > 0.0 else 0.0
    return RareRate(estimate, low, high, ceiling, share, tuple(estimates), shells, queries)


def shell_shares(
    weight: NDArray[np.float64],
    asked: NDArray[np.int64],
    surprises: NDArray[np.int64],
    foretold: NDArray[np.bool_],
) -> NDArray[np.float64]:
    """Return the share of each shell in the queries.

    Beside the insurance they are in proportion to weight times standard deviation of what the host
    does not foretell (Neyman's allocation).

    Args:
        weight: (shells,) the probability of each; the outermost is the first.
        asked: (shells,) points that were asked so far.
        surprises: (shells,) of those, how many the host did not foretell.
        foretold: (shells,) the host foretells the event in all of the shell.

    Returns:
        (shells,), adding up to 1.

    """
    rates = _guessed_rates(asked, surprises, foretold)
    wanted = weight * np.sqrt(rates * (1.0 - rates))
    if wanted.sum() == 0.0:
        wanted = weight
    return np.asarray(INSURANCE * weight / weight.sum() + (1.0 - INSURANCE) * wanted / wanted.sum())


def _guessed_rates(
    asked: NDArray[np.int64], surprises: NDArray[np.int64], foretold: NDArray[np.bool_]
) -> NDArray[np.float64]:
    """Return a guess at each shell's rate of surprises: (shells,), between 0 and 1."""
    rates = (surprises + 0.5) / (asked + 1.0)
    inward = [int(item) for item in np.flatnonzero(~foretold)]
    for shell, inner in zip(inward[-2::-1], inward[:0:-1], strict=True):
        if surprises[shell] == 0:
            rates[shell] = min(rates[shell], _DECAY * rates[inner])
    return np.asarray(rates)


def unseen_limit(
    weight: NDArray[np.float64],
    asked: NDArray[np.int64],
    surprises: NDArray[np.int64],
    confidence: float,
) -> float:
    """Return what the shells without a surprise could add to a rate at most.

    Had they more, together, one of their points that were asked would have been a surprise with at
    least the confidence's upper part. The worst case is that all lies where a point that was asked
    stands for the greatest weight.

    Args:
        weight: (shells,) the probability of each.
        asked: (shells,) points that were asked.
        surprises: (shells,) of those, how many the host did not foretell.
        confidence: confidence of an interval; the limit has its upper part, such as 97.5 % of 95 %.

    """
    unseen = (surprises == 0) & (weight > 0.0)
    if not unseen.any():
        return 0.0
    heaviest = np.minimum(-log((1.0 - confidence) / 2.0) / np.maximum(asked, 1), 1.0) * weight
    return float(heaviest[unseen].max())


def repetition_interval(
    estimates: Sequence[float], confidence: float
) -> tuple[float, float, float]:
    """Return the mean of uncorrelated, unbiased estimates, and its lower and upper limit.

    The limits are those of Student's t, on the logarithmic scale: estimates of a small rate are
    skewed, and some may be 0. Where the mean is 0 or below, it and its limits are 0.

    Args:
        estimates: estimates of the repetitions; two or more.
        confidence: confidence of the interval.

    """
    count = len(estimates)
    mean = float(np.mean(estimates))
    if mean <= _ROUNDING:
        return 0.0, 0.0, 0.0
    error = float(np.std(estimates, ddof=1)) / sqrt(count)
    width = student_quantile(0.5 + confidence / 2.0, count - 1) * error / mean
    return mean, min(1.0, mean * exp(-width)), min(1.0, mean * exp(width))
