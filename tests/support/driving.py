"""Plain functions as arms, and a loop that drives a strategy against them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from edgeflare.core.answer import Answer, Failure
from edgeflare.core.bounds import UNBOUNDED, Bounds
from edgeflare.core.goal import Goal, Trigger
from edgeflare.core.input_space import Input
from edgeflare.core.query import (
    Arm,
    Outcome,
    Query,
    TranslatedOutcome,
    TranslatedQuery,
    WhiteboxQuery,
)
from edgeflare.domains.image.image_domain import ImageDomain
from edgeflare.strategies.operator_pool import built_in_pool
from edgeflare.strategies.strategy import (
    AskTellSearch,
    Donor,
    SearchGenerator,
    Start,
    WhiteboxAnswer,
)

Model = Callable[[Input], NDArray[np.float64]]
"""From an image to probabilities, (classes,)."""

BeginSearch = Callable[[Start], SearchGenerator]
"""Such as the `search` of a strategy."""


def answer(probabilities: NDArray[np.float64], failure: Failure | None = None) -> Answer:
    if failure is not None:
        nothing = np.zeros_like(probabilities)
        return Answer(None, False, nothing, nothing, failure)
    second, first = np.sort(probabilities)[-2:]
    return Answer(
        int(probabilities.argmax()), bool(first == second), probabilities, np.log(probabilities)
    )


def linear_model(weights: NDArray[np.float64], step: float = 0.0) -> Model:
    """Softmax over weights (classes, entries); logits rounded to multiples of `step`."""

    def model(image: Input) -> NDArray[np.float64]:
        logits = weights @ (image.ravel() / 255.0)
        if step:
            logits = np.rint(logits / step) * step
        powers = np.exp(logits - logits.max())
        return np.asarray(powers / powers.sum())

    return model


def quantized(weights: NDArray[np.float64], step: float = 0.1) -> Model:
    """The linear model of weights that were rounded to multiples of `step`, as are its logits."""
    return linear_model(np.rint(weights / step) * step, step)


@dataclass
class Drive:
    """What happened when a strategy was driven.

    Attributes:
        finding: what it found.
        queries: what it asked, one after the other.
        outcomes: what it was told.
        answered: what it then knew of each input, in their order.

    """

    finding: Trigger | None = None
    queries: list[Query] = field(default_factory=list)
    outcomes: list[Outcome] = field(default_factory=list)
    answered: list[Outcome] = field(default_factory=list)

    @property
    def images(self) -> list[bytes]:
        return [query.input.tobytes() for query in self.queries]

    @property
    def inputs(self) -> int:
        """What counts as queries: an input that is asked about again is no further one."""
        return len(self.answered)

    @property
    def on_device(self) -> list[Outcome]:
        """What was known of the inputs that the device was asked about."""
        return [outcome for outcome in self.answered if Arm.DEVICE in outcome.answers]

    def note(self, query: Query, told: Outcome) -> None:
        self.queries.append(query)
        self.outcomes.append(told)
        if not query.again:
            self.answered.append(told)
            return
        asked = [one.input.tobytes() for one in self.queries if not one.again]
        last = len(asked) - 1 - asked[::-1].index(query.input.tobytes())
        before = self.answered[last]
        self.answered[last] = Outcome({**before.answers, **told.answers}, before.members)


@dataclass(frozen=True)
class SearchCase:
    """A seed and the models to search on.

    Attributes:
        seed: the seed input.
        models: by arm.
        members: further members of the twin's ensemble, by kernel set.
        bounds: how far a mutant may be from the seed.
        crashes: whether the device crashes on an input.

    """

    seed: Input
    models: Mapping[Arm, Model]
    members: Mapping[str, Model] = field(default_factory=dict)
    bounds: Bounds = UNBOUNDED
    crashes: Callable[[Input], bool] = lambda _image: False

    def evaluate(
        self, image: Input, arms: tuple[Arm, ...], kernels: tuple[str, ...] = ()
    ) -> Outcome:
        return Outcome(
            {arm: self._answer(arm, image) for arm in arms},
            {name: answer(self.members[name](image)) for name in kernels},
        )

    def _answer(self, arm: Arm, image: Input) -> Answer:
        crashed = arm is Arm.DEVICE and self.crashes(image)
        return answer(self.models[arm](image), "crash" if crashed else None)

    def start(self, goal: Goal, rng_seed: int = 0) -> Start:
        rng = np.random.default_rng(rng_seed)
        ensemble = tuple(self.members)
        outcome = self.evaluate(self.seed, tuple(self.models), ensemble)
        return Start(
            self.seed,
            outcome,
            goal,
            rng,
            self.bounds,
            ensemble,
            self.donors(),
            built_in_pool("image"),
            ImageDomain.paper_operators(),
            ImageDomain.published_operators(),
        )

    def donors(self) -> tuple[Donor, ...]:
        """The seed itself, and a few dark images, which are of other classes more often."""
        shape = (12, *self.seed.shape)
        lit = np.random.default_rng(11).random(shape) < 0.05
        others = np.where(lit, 255, 0).astype(np.uint8)
        return tuple(
            Donor(image, self.evaluate(image, tuple(self.models))) for image in (self.seed, *others)
        )

    def drive(self, search: BeginSearch, goal: Goal, rng_seed: int = 0, steps: int = 200) -> Drive:
        """Drive a search until it ends, or until it has asked about so many inputs."""
        begun = search(self.start(goal, rng_seed))
        asked_and_told, drive = AskTellSearch(begun, self.white_box), Drive()
        while asked_and_told.finding is None:
            asked = asked_and_told.ask()
            if not asked or drive.inputs + sum(not query.again for query in asked) > steps:
                break
            told = [self.evaluate(query.input, query.arms, query.kernels) for query in asked]
            for query, outcome in zip(asked, told, strict=True):
                drive.note(query, outcome)
            asked_and_told.tell(told)
        drive.finding = asked_and_told.finding
        return drive

    def white_box(self, query: WhiteboxQuery) -> WhiteboxAnswer:
        """Answer as translations would; gradients by central differences, a level to each side.

        The neurons are the probabilities of the classes.
        """
        if isinstance(query, TranslatedQuery):
            return [self._translated(image, query.coverage) for image in query.inputs]

        def weighted(image: Input) -> float:
            told = answer(self.models[query.arm](image))
            neurons = sum(told.probabilities[at] * by for at, by in query.neurons.items())
            return float(told.scores @ query.weights + neurons)

        real = query.input.astype(np.float64)
        gradient = np.zeros(real.size)
        for at in range(real.size):
            step = np.zeros_like(real)
            step.flat[at] = 1.0
            gradient[at] = (weighted(real + step) - weighted(real - step)) / 2
        return gradient.reshape(real.shape)

    def _translated(self, image: Input, coverage: float | None) -> TranslatedOutcome:
        told = self.evaluate(image, (Arm.ORIGINAL, Arm.TWIN))
        covered = {}
        if coverage is not None:
            covered = {arm: one.probabilities > coverage for arm, one in told.answers.items()}
        return TranslatedOutcome(
            told, {arm: one.scores for arm, one in told.answers.items()}, covered
        )
