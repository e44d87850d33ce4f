"""The rate of a rare event of a pair in the field."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from edgeflare.campaign.opened_pair import OpenedPair
from edgeflare.conditions.condition import Condition
from edgeflare.core.arm import Arm
from edgeflare.core.input import Input
from edgeflare.core.joint_answer import MOST_SCORES
from edgeflare.core.outcome import Outcome
from edgeflare.errors import UserError
from edgeflare.survey.rare.rare_event import RareEvent
from edgeflare.survey.rare.rare_points import RarePoint, RarePoints
from edgeflare.survey.rare.rare_rate import (
    RarePlan,
    RareProgress,
    RareRate,
    StoppedEarly,
    rare_rate,
)


@dataclass(frozen=True, slots=True)
class RareSurvey:
    """What was found of a rare event.

    Attributes:
        event: the event.
        conditions: names of the conditions; each is as likely in the field.
        inputs: how many there are; each is as likely.
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
        opened: its seeds are the inputs.
        conditions: of the inputs' domain; each is as likely.
        event: the event.
        plan: how it is looked for.
        rng: from which all is drawn.
        progress: is told when the pilot and each repetition are done.
        stopped: whether the user wants to stop; the repetitions that were finished count.
        wait_until_cool: is called before each batch for the device.

    Raises:
        UserError: there is no condition, the pair's answers have no levels, or scipy is missing.
        InfrastructureError: a device or a worker process is lost for good.

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
            return arms.happened([points.changed(one) for one in asked], [p.input for p in asked])

        rate = rare_rate(points, ask, plan, rng, progress)
    except StoppedEarly:
        pass
    names = tuple(one.name for one in conditions)
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
            InfrastructureError: a worker process is lost for good.

        """
        self.host_queries += len(inputs)
        arms = (Arm.TWIN,) if self.opened.pair.original is None else (Arm.ORIGINAL, Arm.TWIN)
        outcomes = self._outcomes(inputs, ids, arms)
        return np.asarray([self.event.level(one) for one in outcomes])

    def happened(self, inputs: Sequence[Input], ids: Sequence[int]) -> NDArray[np.bool_]:
        """Ask the device, and return at which inputs the event happens: (inputs,).

        Raises:
            StoppedEarly: the user wants to stop.
            InfrastructureError: a device or a worker process is lost for good.

        """
        outcomes = self._outcomes(inputs, ids, (self.event.reference, Arm.DEVICE))
        return np.asarray([self.event.happened(one) for one in outcomes])

    def _outcomes(
        self, inputs: Sequence[Input], ids: Sequence[int], arms: tuple[Arm, ...]
    ) -> Iterator[Outcome]:
        answered = 0
        ready = self.wait_until_cool if Arm.DEVICE in arms else lambda: None
        for one in self.opened.evaluate(inputs, ids, arms, self.stopped, ready):
            answered += 1
            yield one.outcome
        if answered < len(inputs):
            raise StoppedEarly
