from __future__ import annotations

from dataclasses import replace
from itertools import islice
from typing import Any

import numpy as np
import pytest

from edgeflare.core.answer import Answer
from edgeflare.core.arm import Arm
from edgeflare.core.bounds import Bounds
from edgeflare.core.goal import Find, Goal
from edgeflare.core.outcome import Outcome
from edgeflare.domains.image.image_domain import TABLE_3, ImageDomain
from edgeflare.search.diffchaser import (
    CROSSOVER,
    Breeding,
    DiffChaser,
    Individual,
    k_certainty,
)
from edgeflare.search.strategy import SearchGenerator, Start

POPULATION = DiffChaser().population

PAPER = ImageDomain.paper_operators()


def answer(*probabilities: float) -> Answer:
    values = np.array(probabilities)
    return Answer(int(values.argmax()), False, values, np.log(values))


def test_k_certainty_is_the_lead_of_the_less_sure_arm() -> None:
    outcome = Outcome(
        {
            Arm.ORIGINAL: answer(0.7, 0.1, 0.2),
            Arm.TWIN: answer(0.4, 0.3, 0.3),
            Arm.DEVICE: answer(0.1, 0.3, 0.6),
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


@pytest.mark.parametrize(
    "bounds", [Bounds(max_linf=20.0), Bounds(max_l2=100.5), Bounds(30.0, 150.5)]
)
def test_every_query_keeps_the_bounds(agreeing_bench: Any, bounds: Bounds) -> None:
    def bounded(start: Start) -> SearchGenerator:
        return DiffChaser().search(replace(start, bounds=bounds))

    drive = agreeing_bench.drive(bounded, Goal(), steps=3 * POPULATION)
    assert len(drive.queries) == 3 * POPULATION
    assert all(bounds.holds(query.input, agreeing_bench.seed) for query in drive.queries)
