"""Two linear models whose gradients are known, as the white box of a search without a runtime."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from driving import answer
from edgeflare.core.arm import Arm
from edgeflare.core.bounds import UNBOUNDED, Bounds
from edgeflare.core.goal import Goal
from edgeflare.core.gradient_query import (
    GradientQuery,
    TranslatedOutcome,
    TranslatedQuery,
    WhiteboxQuery,
)
from edgeflare.core.input import Input
from edgeflare.core.outcome import Outcome
from edgeflare.core.query import Query
from edgeflare.core.trigger import Trigger
from edgeflare.search.strategy import AskTellSearch, Start, Strategy, WhiteboxAnswer


@dataclass
class TwoLinearModels:
    """Scores W x + b of the original, and those of rounded weights of the twin.

    Their neurons are the rows of the image, each a mean.

    Attributes:
        seed: the seed input.
        weights: (classes, values), for each level of a value.
        biases: (classes,).
        rounding: the twin's weights are multiples of it.
        device: whose answers the device has.
        asked: all white-box queries, in their order.
        queries: all queries of the arms.

    """

    seed: Input
    weights: NDArray[np.float64]
    biases: NDArray[np.float64]
    rounding: float
    device: Arm = Arm.TWIN
    asked: list[GradientQuery | TranslatedQuery] = field(default_factory=list)
    queries: list[Query] = field(default_factory=list)

    def weights_of(self, arm: Arm) -> NDArray[np.float64]:
        """Return the weights of an arm's model."""
        if (self.device if arm is Arm.DEVICE else arm) is Arm.ORIGINAL:
            return self.weights
        return np.rint(self.weights / self.rounding) * self.rounding

    def scores(self, arm: Arm, one: Input) -> NDArray[np.float64]:
        """Return the scores of an arm."""
        return self.weights_of(arm) @ one.ravel().astype(np.float64) + self.biases

    def outcome(self, one: Input, arms: Sequence[Arm]) -> Outcome:
        """Return the answers of arms."""
        powers = {arm: np.exp(self.scores(arm, one)) for arm in arms}
        return Outcome({arm: answer(power / power.sum()) for arm, power in powers.items()})

    def translated(self, one: Input, coverage: float | None = None) -> TranslatedOutcome:
        """Return what the translations answer about an input."""
        arms = (Arm.ORIGINAL, Arm.TWIN)
        covered = one.mean((1, 2)) / 255.0 > (0.0 if coverage is None else coverage)
        return TranslatedOutcome(
            self.outcome(one, arms),
            {arm: self.scores(arm, one) for arm in arms},
            {} if coverage is None else dict.fromkeys(arms, covered),
        )

    def white_box(self, query: WhiteboxQuery) -> WhiteboxAnswer:
        """Answer a white-box query."""
        self.asked.append(query)
        if isinstance(query, TranslatedQuery):
            return [self.translated(one, query.coverage) for one in query.inputs]
        gradient = (query.weights @ self.weights_of(query.arm)).reshape(query.input.shape)
        for neuron, weight in query.neurons.items():
            gradient[neuron] += weight / gradient[neuron].size
        return gradient

    def drive(
        self,
        strategy: Strategy,
        goal: Goal | None = None,
        bounds: Bounds = UNBOUNDED,
        rng_seed: int = 0,
    ) -> Trigger | None:
        """Search from the seed until the search ends."""
        goal = goal or Goal()
        outcome = self.outcome(self.seed, goal.needed)
        rng = np.random.default_rng(rng_seed)
        start = Start(self.seed, outcome, goal, rng, bounds)
        search = AskTellSearch(strategy.search(start), self.white_box)
        while asked := search.ask():
            self.queries.extend(asked)
            search.tell([self.outcome(query.input, query.arms) for query in asked])
        return search.finding

    @property
    def gradients(self) -> list[GradientQuery]:
        """The gradients that were asked for."""
        return [one for one in self.asked if isinstance(one, GradientQuery)]

    @property
    def judged(self) -> list[Input]:
        """The inputs on which translations were evaluated, in their order: first the seed."""
        evaluated = [one for one in self.asked if isinstance(one, TranslatedQuery)]
        return [image for query in evaluated for image in query.inputs]


def two_linear_models(margin: float = 1.0, rounding: float = 0.004) -> TwoLinearModels:
    """Return models of three classes, which give a dark image of 8 × 9 pixels the class 0.

    Args:
        margin: by how much the original's score of that class exceeds each other.
        rounding: of the twin's weights, which are about .01.

    """
    rng = np.random.default_rng(3)
    seed = rng.integers(0, 90, (8, 9, 1), dtype=np.uint8)
    seed[[1, 4]] = 0
    weights = rng.normal(0.0, 0.01, (3, seed.size))
    scores = weights @ seed.ravel()
    return TwoLinearModels(seed, weights, np.array([margin, 0.0, 0.0]) - scores, rounding)
