"""Climbing a distance, on crafted models of values, and the changes of one block that it tries."""

from __future__ import annotations

from dataclasses import dataclass, replace
from statistics import median

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgeflare.core.answer import Answer
from edgeflare.core.bounds import UNBOUNDED, Bounds
from edgeflare.core.goal import Find, Goal, Trigger
from edgeflare.core.input_space import EIGHT_BIT, Input, InputSpace
from edgeflare.core.query import Arm, Outcome
from edgeflare.core.task import ModelOutputs
from edgeflare.core.tensor import RawBatch, Tensor
from edgeflare.domains.audio.audio_domain import PCM_16
from edgeflare.domains.tokens_domain import TokenSpace
from edgeflare.errors import UserError
from edgeflare.strategies.baselines.random_walk import RandomWalk
from edgeflare.strategies.block_changes import (
    LEAST_WAVE,
    random_block,
    random_wave,
    with_block,
    with_wave,
)
from edgeflare.strategies.climb import Climb
from edgeflare.strategies.shrink import shrink
from edgeflare.strategies.strategy import AskTellSearch, SearchGenerator, Start
from edgeflare.strategies.strategy_registry import find_strategy
from edgeflare.strategies.strengthen import strengthen
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
    as_the_original: Arm | None = None

    def __post_init__(self) -> None:
        self.asked = dict.fromkeys(Arm, 0)
        self.inputs: list[Input] = []
        outputs = ModelOutputs("model", (OUTPUT,), frozenset(), 0, (), lambda _: RawBatch(WEIGHTS))
        self.decoder = Regression(tolerance=self.tolerance, distance="l2").decoder(outputs)

    def answer(self, one: Input, arm: Arm) -> Answer:
        self.asked[arm] += 1
        arm = Arm.ORIGINAL if arm is self.as_the_original else arm
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


@pytest.mark.slow
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
    values.as_the_original = Arm.DEVICE
    start = values.start(1)
    assert values.drive(Climb().search(start), start, 400) is None


@pytest.mark.parametrize("host_predicts", [True, False])
def test_a_device_with_stages_of_its_own_is_asked_itself(host_predicts: bool) -> None:
    values = Values(tolerance=0.12)
    values.as_the_original = Arm.TWIN
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
    start = replace(values.start(4), paper_operators=built_in_operators())
    found = values.drive(find_strategy(name).create({}).search(start), start, 600)
    assert found is None or found.kind == "deviation"
    assert len(values.inputs) > 5


UNLIMITED = InputSpace("float32", -np.inf, np.inf, cell_axes=1)

SPACES = {
    "image": (EIGHT_BIT, (9, 7, 3)),
    "sound": (PCM_16, (500,)),
    "unlimited": (UNLIMITED, (40, 2)),
    "tokens": (TokenSpace.of_vocabulary(30), (12,)),
}


def middle(space: InputSpace, shape: tuple[int, ...]) -> Input:
    value = (space.lowest + space.highest) / 2 if np.isfinite(space.span) else 0.0
    return np.full(shape, value, space.dtype)


@pytest.mark.parametrize("kind", SPACES)
@given(rng_seed=st.integers(0, 10_000))
def test_a_wave_changes_one_block_alone(kind: str, rng_seed: int) -> None:
    space, shape = SPACES[kind]
    rng, one = np.random.default_rng(rng_seed), middle(space, shape)
    block = random_block(space.cells(shape), rng)
    other = with_wave(space, UNBOUNDED, one, block, rng)
    assert other.dtype == one.dtype
    assert np.isfinite(other.astype(float)).all()
    assert np.array_equal(with_block(other, one, block), one)


@given(rng_seed=st.integers(0, 10_000), linf=st.floats(5.0, 200.0), l2=st.floats(50.0, 900.0))
def test_a_wave_is_as_high_as_the_bounds_allow_or_lower(
    rng_seed: int, linf: float, l2: float
) -> None:
    space, shape = SPACES["sound"]
    rng, one = np.random.default_rng(rng_seed), middle(space, shape)
    block = random_block(space.cells(shape), rng)
    other = with_wave(space, Bounds(linf, l2, space), one, block, rng)
    rounding = 1.0 / space.level
    change = space.distances(other, one)
    assert change.linf <= linf + rounding
    assert change.l2 <= l2 + rounding * np.sqrt(one.size)
    allowed = min(linf, l2 / np.sqrt(block[0].stop - block[0].start))
    assert change.linf >= allowed * LEAST_WAVE - rounding


def test_some_waves_are_slopes_and_some_are_quick() -> None:
    rng = np.random.default_rng(0)
    turns = [np.abs(np.diff(np.sign(random_wave((64,), rng)))).sum() / 2 for _ in range(200)]
    assert min(turns) == 0
    assert max(turns) > 40
    wave = random_wave((9, 12), rng)
    assert all(np.ptp(wave, axis=axis).max() > 0.1 for axis in (0, 1))
