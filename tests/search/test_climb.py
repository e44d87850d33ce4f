"""Climbing a distance, on crafted models of values."""

from __future__ import annotations

from dataclasses import dataclass, replace
from statistics import median

import numpy as np
import pytest

from edgeflare.core.answer import Answer
from edgeflare.core.arm import Arm
from edgeflare.core.bounds import Bounds
from edgeflare.core.goal import Find, Goal
from edgeflare.core.input import Input
from edgeflare.core.outcome import Outcome
from edgeflare.core.task import ModelOutputs
from edgeflare.core.tensor import RawBatch, Tensor
from edgeflare.core.trigger import Trigger
from edgeflare.errors import UserError
from edgeflare.search.climb import Climb
from edgeflare.search.random_walk import RandomWalk
from edgeflare.search.shrink import shrink
from edgeflare.search.strategy import AskTellSearch, SearchGenerator, Start
from edgeflare.search.strategy_registry import find_strategy
from edgeflare.search.strengthen import strengthen
from edgeflare.tasks.regression import Regression
from edgeflare_operators import built_in_operators

SHAPE = (12, 12, 1)
ANY = Goal()
BOUNDS = Bounds(80.0, 400.0)
WEIGHTS = np.random.default_rng(5).normal(size=(8, 144)) / 255
ERRORS = np.random.default_rng(6).normal(size=(8, 144)) / 2550
OUTPUT = Tensor("values", (1, 8), "float32")


@dataclass
class Values:
    """Two models of eight values, and how often each arm was asked."""

    tolerance: float
    kernels: float = 0.0

    def __post_init__(self) -> None:
        self.asked = dict.fromkeys(Arm, 0)
        self.inputs: list[Input] = []
        outputs = ModelOutputs("model", (OUTPUT,), frozenset(), 0, (), lambda _: RawBatch(WEIGHTS))
        self.decoder = Regression(tolerance=self.tolerance, distance="l2").decoder(outputs)

    def answer(self, one: Input, arm: Arm) -> Answer:
        self.asked[arm] += 1
        flat = one.reshape(-1).astype(float)
        raw = np.tanh(WEIGHTS @ flat)
        if arm is not Arm.ORIGINAL:
            raw = np.tanh((WEIGHTS + ERRORS) @ flat)
        if arm is Arm.DEVICE:
            raw = raw + self.kernels
        return next(self.decoder.read(RawBatch(raw.astype(np.float32)[None])))

    def outcome(self, one: Input, arms: tuple[Arm, ...] = tuple(Arm)) -> Outcome:
        return Outcome({arm: self.answer(one, arm) for arm in arms})

    def start(self, rng_seed: int, goal: Goal = ANY) -> Start:
        rng = np.random.default_rng(rng_seed)
        seed = rng.integers(60, 190, SHAPE).astype(np.uint8)
        pool = built_in_operators()
        return Start(seed, self.outcome(seed), goal, rng, BOUNDS, operators=pool)

    def drive(self, search: SearchGenerator, start: Start, steps: int) -> Trigger | None:
        chain = AskTellSearch(search)
        self.inputs.clear()
        while len(self.inputs) < steps and (queries := chain.ask()):
            self.inputs += [query.input for query in queries if not query.again]
            assert all(start.bounds.holds(query.input, start.seed) for query in queries)
            chain.tell([self.outcome(query.input, tuple(query.arms)) for query in queries])
        return chain.finding

    def farthest(self) -> float:
        return max(
            self.answer(one, Arm.ORIGINAL).distance(self.answer(one, Arm.TWIN))
            for one in self.inputs
        )


def test_what_it_finds_deviates_on_the_device() -> None:
    values = Values(tolerance=0.12)
    start = values.start(1)
    found = values.drive(Climb().search(start), start, 500)
    assert found is not None
    assert found.kind == "deviation"
    strength = found.outcome[Arm.ORIGINAL].strength_against(found.outcome[Arm.DEVICE])
    assert strength is not None
    assert strength > 0.0
    assert values.asked[Arm.DEVICE] == 2  # the seed, and the trigger


def test_it_repeats_with_the_generator() -> None:
    asked = []
    for _ in range(2):
        values = Values(tolerance=9.0)
        start = values.start(2)
        values.drive(Climb().search(start), start, 120)
        asked.append(values.inputs[:])
    assert all(np.array_equal(a, b) for a, b in zip(*asked, strict=True))


def test_it_goes_a_quarter_farther_than_a_random_walk() -> None:
    farthest: dict[str, list[float]] = {"climb": [], "random": []}
    for seed in range(5):
        for name, strategy in (("climb", Climb()), ("random", RandomWalk())):
            values = Values(tolerance=9.0)
            start = values.start(seed)
            assert values.drive(strategy.search(start), start, 300) is None
            farthest[name].append(values.farthest())
    assert median(farthest["climb"]) > 1.25 * median(farthest["random"])


def test_a_device_that_contradicts_its_twin_is_asked_itself() -> None:
    values = Values(tolerance=0.12, kernels=0.1)

    def undone(one: Input, arm: Arm) -> Answer:
        return Values.answer(values, one, Arm.ORIGINAL if arm is Arm.DEVICE else arm)

    values.answer = undone  # type: ignore[method-assign]
    start = values.start(1)
    assert values.drive(Climb().search(start), start, 400) is None


@pytest.mark.parametrize("host_predicts", [True, False])
def test_a_device_with_stages_of_its_own_is_asked_itself(host_predicts: bool) -> None:
    values = Values(tolerance=0.12)

    def shipped(one: Input, arm: Arm) -> Answer:
        return Values.answer(values, one, Arm.ORIGINAL if arm is Arm.TWIN else arm)

    values.answer = shipped  # type: ignore[method-assign]
    start = replace(values.start(1), host_predicts=host_predicts)
    found = values.drive(Climb().search(start), start, 500)
    assert (found is None) == host_predicts


def test_kernels_alone_are_searched_for_too() -> None:
    values = Values(tolerance=0.2, kernels=0.1)
    start = values.start(3, Goal(Find.KERNEL))
    found = values.drive(Climb().search(start), start, 100)
    assert found is not None  # each input deviates by 0.28
    assert len(values.inputs) == 1


def test_strengthening_and_shrinking_take_answers_without_scores() -> None:
    values = Values(tolerance=0.12)
    start = values.start(1)
    found = values.drive(Climb().search(start), start, 500)
    assert found is not None

    def strength(trigger: Trigger | None) -> float:
        assert trigger is not None
        return start.goal.strength(trigger.outcome) or 0.0

    whole = Trigger(found.input, found.kind, values.outcome(found.input), found.operators)
    stronger = values.drive(strengthen(whole, start, 200), start, 400)
    assert strength(stronger) > 1.2 * strength(whole)
    assert stronger is not None
    nearer = values.drive(shrink(stronger, start, 300), start, 600)
    assert nearer is not None
    assert strength(nearer) > 0.0
    space = start.space
    assert space.distance(nearer.input, start.seed) < space.distance(stronger.input, start.seed)


@pytest.mark.parametrize("name", ["boundary", "boundary-mh", "diffchaser", "donor"])
def test_strategies_that_follow_decisions_name_this_one(name: str) -> None:
    find_strategy(name).require_choices(True)
    with pytest.raises(UserError, match="between them: say --strategy climb"):
        find_strategy(name).require_choices(False)
    find_strategy("climb").require_choices(False)


@pytest.mark.parametrize("name", ["dflare", "dflare-d", "dflare-r", "random"])
def test_other_strategies_take_answers_without_scores(name: str) -> None:
    values = Values(tolerance=0.6)
    start = values.start(4)
    paper = built_in_operators()
    start = Start(
        start.seed,
        start.outcome,
        start.goal,
        start.rng,
        BOUNDS,
        operators=paper,
        paper_operators=paper,
    )
    found = values.drive(find_strategy(name).create({}).search(start), start, 600)
    assert found is None or found.kind == "deviation"
    assert len(values.inputs) > 5
