"""Strategies that combine inputs: donor bisection and DiffChaser."""

from __future__ import annotations

from itertools import islice
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from edgeflare.core.answer import Answer
from edgeflare.core.bounds import Bounds
from edgeflare.core.goal import Find, Goal
from edgeflare.core.query import Arm, Outcome
from edgeflare.domains.image.image_domain import TABLE_3, ImageDomain
from edgeflare.strategies.baselines.diffchaser import (
    CROSSOVER,
    Breeding,
    DiffChaser,
    Individual,
    k_certainty,
)
from edgeflare.strategies.donor import DonorBisection
from edgeflare.strategies.strategy import AskTellSearch, Donor, Start

Image = NDArray[np.uint8]
HOME, AWAY = 0, 1


def gray(level: int, size: int = 16) -> Image:
    return np.full((size, 1, 1), level, dtype=np.uint8)


def answer(label: int, tied: bool = False) -> Answer:
    probabilities = np.array([0.9, 0.1] if label == HOME else [0.1, 0.9])
    return Answer(label, tied, probabilities, np.log(probabilities))


class Ramp:
    """Arms that tell bright from dark images, each from another sum of gray levels on."""

    def __init__(self, original: float, device: float, tie: float = 0.0) -> None:
        self._limits = {Arm.ORIGINAL: original, Arm.DEVICE: device}
        self._tie = tie

    def outcome(self, image: Image) -> Outcome:
        total = int(image.sum())
        return Outcome(
            {
                arm: answer(AWAY if total >= limit else HOME, abs(total - limit) < self._tie)
                for arm, limit in self._limits.items()
            }
        )

    def start(
        self, *donors: Image, goal: Goal | None = None, bounds: Bounds | None = None
    ) -> Start:
        seed = gray(0)
        lent = tuple(Donor(image, self.outcome(image)) for image in donors)
        rng = np.random.default_rng(0)
        return Start(seed, self.outcome(seed), goal or Goal(), rng, bounds or Bounds(), donors=lent)

    def drive(self, start: Start) -> tuple[AskTellSearch, list[Image]]:
        strategy, asked = AskTellSearch(DonorBisection().search(start)), list[Image]()
        while queries := strategy.ask():
            asked += [query.input for query in queries]
            strategy.tell([self.outcome(query.input) for query in queries])
        return strategy, asked


def test_finds_a_trigger_between_two_linear_models(bench: Any) -> None:
    for seed in range(10):
        drive = bench.drive(DonorBisection().search, Goal(), seed)
        assert drive.finding is not None
        assert drive.finding.operators == ("donor",)
        assert len(drive.queries) <= 15


@pytest.mark.parametrize("find", [Find.COMPRESSION, Find.KERNEL])
def test_finds_what_is_asked_for(bench: Any, find: Find) -> None:
    goal = Goal(find)
    drive = bench.drive(DonorBisection().search, goal, steps=500)
    assert drive.finding is not None
    assert goal.met(drive.finding.outcome) == "deviation"
    assert all(query.arms == goal.needed for query in drive.queries)


def test_halves_the_line_until_it_is_between_the_boundaries() -> None:
    ramp = Ramp(original=16 * 100, device=16 * 101)
    strategy, asked = ramp.drive(ramp.start(gray(255)))
    assert [int(image[0, 0, 0]) for image in asked] == [128, 64, 96, 112, 104, 100]
    assert strategy.finding is not None
    assert np.array_equal(strategy.finding.input, gray(100))


def test_goes_below_the_gray_level_where_entries_round_one_by_one() -> None:
    rng = np.random.default_rng(3)
    chosen = rng.integers(100, 256, size=(16, 1, 1), dtype=np.uint8)
    ramp = Ramp(original=900, device=902)
    strategy, asked = ramp.drive(ramp.start(chosen))
    assert strategy.finding is not None
    assert 900 <= int(strategy.finding.input.sum()) < 902
    assert len({image.tobytes() for image in asked}) == len(asked)


def test_a_line_without_a_trigger_ends_and_the_next_is_tried() -> None:
    ramp = Ramp(original=1601, device=1602)
    # The entries of a gray image round together: none on its line has the sum 1601.
    strategy, asked = ramp.drive(ramp.start(gray(255)))
    assert strategy.finding is None
    assert len(asked) <= 9
    uneven = np.random.default_rng(3).integers(150, 256, size=(16, 1, 1), dtype=np.uint8)
    strategy, asked = ramp.drive(ramp.start(uneven, gray(255), gray(200)))
    assert np.ptp(asked[0]) == 0
    assert strategy.finding is not None
    assert int(strategy.finding.input.sum()) == 1601


def test_asks_nothing_without_a_donor_of_another_class() -> None:
    ramp = Ramp(original=1600, device=1616)
    for donors in ((), (gray(0), gray(50)), (gray(100),)):  # the last: of one arm's class only
        strategy, asked = ramp.drive(ramp.start(*donors))
        assert strategy.finding is None
        assert not asked


@pytest.mark.parametrize("first_level", [100, 102])
@pytest.mark.parametrize(("original", "device"), [(1600, 1632), (1632, 1600)])
def test_at_a_tie_the_other_arm_says_where_to_go_on(
    original: float, device: float, first_level: int
) -> None:
    # One arm is tied at level 100, the other at 102: a strict trigger is at 101 alone.
    ramp = Ramp(original, device, tie=1)
    strategy, asked = ramp.drive(ramp.start(gray(2 * first_level)))
    assert np.array_equal(asked[0], gray(first_level))
    assert strategy.finding is not None
    assert np.array_equal(strategy.finding.input, gray(101))


def test_the_line_ends_where_the_bounds_do() -> None:
    ramp = Ramp(original=16 * 100, device=16 * 101)
    bounds = Bounds(max_linf=120.0)
    strategy, asked = ramp.drive(ramp.start(gray(255), bounds=bounds))
    assert np.array_equal(asked[0], gray(120))
    assert all(bounds.holds(image, gray(0)) for image in asked)
    assert strategy.finding is not None
    # Where the class is still the seed's there, the line holds nothing.
    tight = ramp.start(gray(255), gray(240), bounds=Bounds(max_linf=90.0))
    strategy, asked = ramp.drive(tight)
    assert strategy.finding is None
    assert len(asked) == 2


POPULATION = DiffChaser().population
PAPER = ImageDomain.paper_operators()


def shares(*probabilities: float) -> Answer:
    values = np.array(probabilities)
    return Answer(int(values.argmax()), False, values, np.log(values))


def test_k_certainty_is_the_lead_of_the_less_sure_arm() -> None:
    outcome = Outcome(
        {
            Arm.ORIGINAL: shares(0.7, 0.1, 0.2),
            Arm.TWIN: shares(0.4, 0.3, 0.3),
            Arm.DEVICE: shares(0.1, 0.3, 0.6),
        }
    )
    assert k_certainty(outcome, Goal()) == pytest.approx(0.3)
    assert k_certainty(outcome, Goal(Find.KERNEL)) == pytest.approx(0.1)


def test_finds_triggers_and_names_the_way_to_them(bench: Any) -> None:
    for seed in range(3):
        drive = bench.drive(DiffChaser().search, Goal(), seed, steps=3000)
        assert drive.finding is not None
        assert len(drive.queries) > 1
        generation = (len(drive.queries) - 1) // POPULATION
        trail = drive.finding.operators
        assert set(trail) <= {*TABLE_3, CROSSOVER}
        assert trail[0] != CROSSOVER
        assert trail.count(CROSSOVER) <= generation
        assert (CROSSOVER in trail) == (generation > 0)


def test_asks_one_at_a_time_so_that_an_allowance_is_spent_to_the_last(bench: Any) -> None:
    drive = bench.drive(DiffChaser().search, Goal(min_strength=1.0), steps=250)
    assert drive.finding is None
    assert len(drive.queries) == 250


def test_the_first_generation_is_one_mutation_away_from_the_seed(agreeing_bench: Any) -> None:
    drive = agreeing_bench.drive(DiffChaser().search, Goal(), rng_seed=5, steps=POPULATION)
    breeding = Breeding(PAPER, np.random.default_rng(5))
    seed = Individual(agreeing_bench.seed)
    assert drive.images == [breeding.mutate(seed).input.tobytes() for _ in range(POPULATION)]


def test_later_generations_are_less_sure(agreeing_bench: Any) -> None:
    goal = Goal()
    drive = agreeing_bench.drive(DiffChaser().search, goal, steps=8 * POPULATION)
    leads = [k_certainty(outcome, goal) for outcome in drive.outcomes]
    assert len(leads) == 8 * POPULATION
    assert np.mean(leads[-POPULATION:]) < np.mean(leads[:POPULATION])


def test_a_child_has_each_pixel_whole_from_one_of_its_parents() -> None:
    rng = np.random.default_rng(0)
    first, second = rng.integers(256, size=(2, 16, 16, 3), dtype=np.uint8)
    child = Breeding(PAPER, rng).cross(Individual(first, ("a",)), Individual(second, ("b",)))
    from_first = (child.input == first).all(axis=2)
    assert (from_first | (child.input == second).all(axis=2)).all()
    assert 0.3 < from_first.mean() < 0.7
    assert child.operators == ("a", CROSSOVER)


def test_parents_are_among_the_least_sure() -> None:
    pool = [Individual(np.full((1, 1, 1), k, dtype=np.uint8), (str(k),)) for k in range(200)]
    certainties = [float(k) for k in range(200)]
    breeding = Breeding(PAPER, np.random.default_rng(0))
    children = list(islice(iter(breeding.generation(pool, certainties)), 200))
    # The least of five out of 0 ... 199 is 33 on average; any one of them would be 99.5.
    assert np.mean([int(child.operators[0]) for child in children]) < 50
