"""The rate of a rare event of a pair in the field."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from math import inf

import numpy as np
from numpy.typing import NDArray

from edgeflare.campaign.pair_panel import OpenedPair
from edgeflare.conditions.condition import SEVERITIES, Condition
from edgeflare.core.answer import Answer
from edgeflare.core.input_space import Input, InputSpace
from edgeflare.core.joint_answer import MOST_SCORES
from edgeflare.core.query import Arm, Outcome
from edgeflare.errors import UserError
from edgeflare.survey.rare_events.rare_rate import (
    RarePlan,
    RareProgress,
    RareRate,
    StoppedEarly,
    rare_rate,
)

_LOWEST, _HIGHEST = float(SEVERITIES[0]), float(SEVERITIES[-1])
_SPAN = _HIGHEST - _LOWEST
_AT_ONCE = 1024
"""Points whose inputs are in memory together."""

_HALVINGS = 7.0
"""A step of the severity is between all of its range and that halved so many times: large steps are
accepted while thresholds are high, and small ones when they are low."""

_BELOW = -1e-12
"""The level of a foretold event at most, where rounding hides by how much it is one."""

_TOWARDS_ORIGINAL = 0.3
"""How far from the twin's scores towards the original's those of a device are expected. Both round
what the original computes, each in its own way, so where the twin has gone far, the device has
likely gone less far."""

_LEAST_SHARE = 1e-9
_MOST_CERTAIN = 1.0 - 1e-9
"""Bound of a probability that keeps scores finite where the strength they need cannot be had."""


@dataclass(frozen=True, slots=True)
class RareSurvey:
    """What was found of a rare event.

    Attributes:
        event: the event.
        conditions: names of the conditions, all equally likely in the field.
        inputs: number of inputs, all equally likely.
        rate: how often it happens; None where it was stopped before two repetitions.
        host_queries: inputs that the host's arms answered.

    """

    event: RareEvent
    conditions: tuple[str, ...]
    inputs: int
    rate: RareRate | None
    host_queries: int


def survey_rare_event(
    opened: OpenedPair,
    conditions: Sequence[Condition],
    event: RareEvent,
    plan: RarePlan,
    rng: np.random.Generator,
    *,
    progress: Callable[[RareProgress], None] = lambda _: None,
    stopped: Callable[[], bool] = lambda: False,
    wait_until_cool: Callable[[], None] = lambda: None,
) -> RareSurvey:
    """Estimate how often an event happens to the inputs of an opened pair in the field.

    Args:
        opened: pair whose seeds are the inputs.
        conditions: conditions of the inputs' domain, all equally likely.
        event: the event.
        plan: how it is looked for.
        rng: generator of all random draws.
        progress: is told when the pilot and each repetition are done.
        stopped: whether the user wants to stop; the repetitions that were finished count.
        wait_until_cool: is called before each batch for the device.

    Raises:
        UserError: there is no condition, or the pair's answers have no levels.

    """
    require_estimable(opened, conditions, event)
    arms = RareArms(opened, event, stopped, wait_until_cool)
    inputs = opened.seeds.inputs
    rate = None
    try:
        order = np.argsort(arms.levels(list(inputs), range(len(inputs))), kind="stable")
        space = opened.pair.interface.domain.space
        points = RarePoints(inputs, conditions, space, order, arms.levels)

        def ask(asked: Sequence[RarePoint]) -> NDArray[np.bool_]:
            return arms.happened(
                [points.changed(rare_point) for rare_point in asked], [p.input for p in asked]
            )

        rate = rare_rate(points, ask, plan, rng, progress)
    except StoppedEarly:
        pass
    names = tuple(condition.name for condition in conditions)
    return RareSurvey(event, names, len(inputs), rate, arms.host_queries)


def headline_event(opened: OpenedPair) -> RareEvent:
    """Return the event that a survey's headline counts: any deviation, or a failure."""
    return RareEvent(Arm.TWIN if opened.pair.original is None else Arm.ORIGINAL)


def require_estimable(
    opened: OpenedPair, conditions: Sequence[Condition], event: RareEvent
) -> None:
    """Refuse what rare events cannot be estimated of.

    Raises:
        UserError: there is no condition, or the pair's answers have no levels.

    """
    if not conditions:
        raise UserError("rare events are looked for under conditions: name some with --conditions")
    name, decoder = opened.pair.name, opened.panel.reading.decoders[Arm.TWIN]
    if not decoder.choices:
        raise UserError(
            f"{name}: rare events are found by the margins between decisions that can be counted,"
            f" and answers of the task {opened.pair.interface.task} have none: leave out --rare"
        )
    if event.reference is Arm.ORIGINAL and decoder.choices > MOST_SCORES:
        raise UserError(
            f"{name}: rare events are found by the probability of each decision, and the outputs of"
            f" an input have more than {MOST_SCORES:,} decisions together: leave out --rare"
        )


@dataclass(slots=True)
class RareArms:
    """The arms of a pair, asked about an event.

    Attributes:
        opened: the pair.
        event: the event.
        stopped: whether the user wants to stop.
        wait_until_cool: is called before each batch for the device.
        host_queries: inputs that the host's arms answered for their levels.

    """

    opened: OpenedPair
    event: RareEvent
    stopped: Callable[[], bool]
    wait_until_cool: Callable[[], None] = lambda: None
    host_queries: int = field(default=0, init=False)

    def levels(self, inputs: Sequence[Input], ids: Sequence[int]) -> NDArray[np.float64]:
        """Return the level of inputs that come from seeds: (inputs,).

        Raises:
            StoppedEarly: the user wants to stop.

        """
        self.host_queries += len(inputs)
        arms = (Arm.TWIN,) if self.opened.pair.original is None else (Arm.ORIGINAL, Arm.TWIN)
        outcomes = self._outcomes(inputs, ids, arms)
        return np.asarray([self.event.level(outcome) for outcome in outcomes])

    def happened(self, inputs: Sequence[Input], ids: Sequence[int]) -> NDArray[np.bool_]:
        """Ask the device, and return at which inputs the event happens: (inputs,).

        Raises:
            StoppedEarly: the user wants to stop.

        """
        outcomes = self._outcomes(inputs, ids, (self.event.reference, Arm.DEVICE))
        return np.asarray([self.event.happened(outcome) for outcome in outcomes])

    def _outcomes(
        self, inputs: Sequence[Input], ids: Sequence[int], arms: tuple[Arm, ...]
    ) -> Iterator[Outcome]:
        answered = 0
        ready = self.wait_until_cool if Arm.DEVICE in arms else lambda: None
        for query in self.opened.evaluate(inputs, ids, arms, self.stopped, ready):
            answered += 1
            yield query.outcome
        if answered < len(inputs):
            raise StoppedEarly


@dataclass(frozen=True, slots=True)
class RareEvent:
    """A deviation of the device, or one that is stronger than a limit; or the device fails.

    Without a limit it is what a survey's headline counts.

    Attributes:
        reference: the arm that the device deviates from: the original, or the twin, where only
            kernels are judged.
        strength: limit that the deviation's strength has to exceed, from 0 to 1, without hanging on
            a tie; None counts every deviation. See `Answer.strength_against`.

    """

    reference: Arm
    strength: float | None = None

    def happened(self, outcome: Outcome) -> bool:
        """Whether the event happened, given what the reference and the device answered."""
        reference, device = outcome[self.reference], outcome[Arm.DEVICE]
        if device.failure is not None:
            # What the file itself does to both, such as a NaN, is no matter of kernels.
            return self.reference is not Arm.TWIN or device.failure != reference.failure
        return self._counts(reference, device)

    def level(self, outcome: Outcome) -> float:
        """Return how far the event is, as the host's arms tell it, in scores.

        It is below 0 where the twin foretells the event, and infinite where the host knows that
        nothing but a failure of the device could be it. The original's answer is used where there
        is one.
        """
        reference, twin = outcome[self.reference], outcome[Arm.TWIN]
        if reference.tied and self.strength is not None:
            return inf
        if reference.decision is None or twin.decision is None:
            return 0.0
        if len(reference.probabilities) == 0:
            return twin.margin(reference)
        foretold = self._counts(reference, twin)
        missing = self._missing(reference, twin, outcome.answers.get(Arm.ORIGINAL, twin))
        return min(missing, _BELOW) if foretold else max(missing, 0.0)

    def _counts(self, reference: Answer, other: Answer) -> bool:
        """Whether two answers differ, by more than the strength where one is set."""
        if not other.differs(reference) or self.strength is None:
            return other.differs(reference)
        strong = (reference.strength_against(other) or 0.0) > self.strength
        return strong and not other.differs_by_tie(reference)

    def _missing(self, reference: Answer, twin: Answer, original: Answer) -> float:
        """Return the change of the expected scores that the nearest decision still needs.

        A decision that the reference does not prefer its own to by enough cannot be the event.
        """
        a, least = reference.decision or 0, self.strength or 0.0
        scores = twin.scores
        if original.decision is not None:
            scores = scores + _TOWARDS_ORIGINAL * (original.scores - scores)
        # Of two probabilities that add up to a share, the difference is share · tanh(scores / 2).
        share = np.maximum(twin.probabilities + twin.probabilities[a], _LEAST_SHARE)
        ahead = 2.0 * np.arctanh(np.minimum(least / share, _MOST_CERTAIN))
        missing = scores[a] - scores + ahead
        if self.strength is not None:
            missing[reference.probabilities[a] - reference.probabilities <= least] = inf
        missing[a] = inf
        return float(missing.min())


@dataclass(frozen=True, slots=True)
class RarePoint:
    """A point of the field.

    Attributes:
        input: index of the input.
        condition: index of the condition.
        severity: real number from 1 to 5.
        draw: seed of the generator of the condition's own draws; 63 bits.

    """

    input: int
    condition: int
    severity: float
    draw: int


@dataclass(frozen=True, slots=True)
class RarePoints:
    """All points, uniformly distributed: each input, condition, severity and draw is as likely.

    A point moves by its severity, draw, condition or input. Inputs are moved to such as have nearly
    the same level unchanged: of them the event is about as far.

    Attributes:
        inputs: (inputs, *shape).
        conditions: conditions of the inputs' domain; one or more.
        space: input space of the domain, whose limits are held.
        order: (inputs,) the inputs in the order of their levels, unchanged.
        level_of: function of inputs, and of the index in `inputs` that each comes from, to their
            levels.

    """

    inputs: Sequence[Input] | NDArray[np.generic]
    conditions: Sequence[Condition]
    space: InputSpace
    order: NDArray[np.int64]
    level_of: Callable[[Sequence[Input], Sequence[int]], NDArray[np.float64]]

    def draw(self, count: int, rng: np.random.Generator) -> list[RarePoint]:
        """Return independent points."""
        return [
            RarePoint(*row)
            for row in zip(
                rng.integers(len(self.inputs), size=count).tolist(),
                rng.integers(len(self.conditions), size=count).tolist(),
                rng.uniform(_LOWEST, _HIGHEST, count).tolist(),
                rng.integers(2**63, size=count).tolist(),
                strict=True,
            )
        ]

    def proposals(self, points: Sequence[RarePoint], rng: np.random.Generator) -> list[RarePoint]:
        """Return for each point a near one; see `Space`."""
        rank = np.argsort(self.order)
        return [self._near(point, rank, rng) for point in points]

    def levels(self, points: Sequence[RarePoint]) -> NDArray[np.float64]:
        """Return the level of each point: (points,)."""
        parts = [points[at : at + _AT_ONCE] for at in range(0, len(points), _AT_ONCE)]
        levels = [
            self.level_of(
                [self.changed(rare_point) for rare_point in part],
                [rare_point.input for rare_point in part],
            )
            for part in parts
        ]
        return np.concatenate([np.empty(0), *levels])

    def changed(self, point: RarePoint) -> Input:
        """Return the input of a point, under its condition."""
        rng = np.random.default_rng(point.draw)
        condition = self.conditions[point.condition]
        return self.space.clipped(condition(self.inputs[point.input], point.severity, rng))

    def _near(
        self, point: RarePoint, rank: NDArray[np.int64], rng: np.random.Generator
    ) -> RarePoint:
        kind = rng.choice(4, p=(0.35, 0.25, 0.1, 0.3))
        if kind == 0:
            step = _SPAN * 0.5 ** rng.uniform(0.0, _HALVINGS) * rng.standard_normal()
            return replace(point, severity=_reflected(point.severity + step))
        if kind == 1:
            return replace(point, draw=int(rng.integers(2**63)))
        if kind == 2:
            return replace(point, condition=int(rng.integers(len(self.conditions))))
        # From a neighbour to half of all inputs away, each order of magnitude as likely.
        away = int((len(self.inputs) // 2 + 1) ** rng.random())
        place = rank[point.input] + (away if rng.random() < 0.5 else -away)
        return replace(point, input=int(self.order[place % len(self.inputs)]))


def _reflected(severity: float) -> float:
    """Return a severity within its range, reflected at its ends as often as need be."""
    beyond = (severity - _LOWEST) % (2.0 * _SPAN)
    return _LOWEST + min(beyond, 2.0 * _SPAN - beyond)
