"""Strategies that mutate one input again and again: their loop, its operators, and DFlare.

Chains of DFlare are compared, query by query, with Algorithms 1 and 2 written down a second time.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from driving import BeginSearch
from edgeflare.core.answer import Answer
from edgeflare.core.goal import Find, Goal
from edgeflare.core.query import Arm, Outcome
from edgeflare.domains.image.image_domain import TABLE_3, ImageDomain
from edgeflare.errors import UserError
from edgeflare.strategies.baselines.dflare_published import (
    DFlarePublished,
    PublishedAcceptance,
    PublishedSelection,
)
from edgeflare.strategies.baselines.random_walk import RandomWalk, accept_all
from edgeflare.strategies.dflare import NOVELTY_THRESHOLD, DFlare, DFlareD, DFlareR, SeenStates
from edgeflare.strategies.mutation_loop import Uniform, draw_rank, mutation_loop
from edgeflare.strategies.strategy import AskTellSearch, SearchGenerator, Start
from edgeflare_operators import MutationOperator, built_in_operators, operators

Image = NDArray[np.uint8]


def brighten(image: Image, rng: np.random.Generator) -> Image:
    return np.add(image, 1, dtype=np.uint8)


def search_with(apply: Any, accepts: Any = accept_all) -> Any:
    def search(start: Start) -> SearchGenerator:
        made = MutationOperator("made", "image", apply)
        return mutation_loop(start, Uniform([made], start.rng), accepts)

    return search


def test_a_rejected_mutant_is_no_parent(agreeing_bench: Any) -> None:
    verdicts = iter([True, False, False, True, True])
    search = search_with(brighten, lambda _mutant: next(verdicts))
    drive = agreeing_bench.drive(search, Goal(), steps=5)
    levels = [int(query.input[0, 0, 0]) for query in drive.queries]
    assert levels == [agreeing_bench.seed[0, 0, 0] + by for by in (1, 2, 2, 2, 3)]


def test_the_trail_holds_accepted_operators_and_the_last(bench: Any) -> None:
    failed = Answer(None, False, np.zeros(4), np.zeros(4), "crash")
    strategy = AskTellSearch(search_with(brighten)(bench.start(Goal())))
    fine = bench.start(Goal()).outcome
    strategy.tell([fine])
    strategy.tell([Outcome({**fine.answers, Arm.DEVICE: failed})])
    assert strategy.finding is not None
    assert strategy.finding.kind == "crash"
    assert strategy.finding.operators == ("made", "made")
    assert strategy.ask() == ()


def test_an_operator_that_breaks_its_promise_is_named(bench: Any) -> None:
    with pytest.raises(UserError, match="operator 'made' returned ndarray, float64"):
        bench.drive(search_with(lambda image, _rng: image + 0.5), Goal(), steps=1)


def test_every_mutant_is_the_next_parent(agreeing_bench: Any) -> None:
    drive = agreeing_bench.drive(RandomWalk().search, Goal(), rng_seed=3, steps=100)
    rng, pool, image = np.random.default_rng(3), built_in_operators(), agreeing_bench.seed
    for query in drive.queries:
        image = pool[rng.integers(len(pool))](image, rng)
        assert np.array_equal(query.input, image)


def test_a_walk_names_every_operator_on_the_way(bench: Any) -> None:
    drive = bench.drive(RandomWalk().search, Goal(ties=True), steps=3000)
    assert drive.finding is not None
    assert len(drive.finding.operators) == len(drive.queries)


DRAWS = 8_000


@pytest.mark.parametrize("previous", [-1, 3])
def test_ranks_are_drawn_as_algorithm_2_accepts_them(previous: int) -> None:
    rng = np.random.default_rng(0)
    drawn = Counter(draw_rank(7, previous, rng) for _ in range(DRAWS))
    accepted = [min(1.0, (6 / 7) ** (rank - previous)) for rank in range(7)]
    for rank in range(7):
        assert drawn[rank] / DRAWS == pytest.approx(accepted[rank] / sum(accepted), abs=0.02)


@pytest.mark.slow
@settings(deadline=None, max_examples=50)
@given(seed=st.integers(0, 2**32), count=st.integers(0, 300), spread=st.floats(0.05, 1.0))
def test_answers_as_a_search_through_all_states_does(seed: int, count: int, spread: float) -> None:
    rng = np.random.default_rng(seed)
    states = SeenStates()
    known: list[NDArray[np.float64]] = []
    for state in rng.normal(0.0, spread, (count, 6)):
        far = all(((state - other) ** 2).sum() > NOVELTY_THRESHOLD for other in known)
        assert states.is_new(state) == far
        states.add(state)
        known.append(state)


@pytest.mark.parametrize(("squared", "new"), [(0.49, False), (0.51, True)])
def test_new_is_beyond_a_squared_distance_of_one_half(squared: float, new: bool) -> None:
    states = SeenStates()
    states.add(np.array([1.0, 0.0]))
    assert states.is_new(np.array([1.0, squared**0.5])) == new


def test_keeps_a_copy() -> None:
    states, state = SeenStates(), np.zeros(2)
    states.add(state)
    state += 10.0
    assert not states.is_new(np.zeros(2))


def algorithm_1(
    bench: Any, goal: Goal, rng_seed: int, steps: int, *, delta: float, novel: bool, ranked: bool
) -> tuple[list[bytes], list[str]]:
    """The images that are asked about, and the operators of the accepted ones."""
    rng = np.random.default_rng(rng_seed)
    pool = list(operators(names=TABLE_3))
    tried, gained = dict.fromkeys(TABLE_3, 0), dict.fromkeys(TABLE_3, 0)
    seen: list[Any] = []

    def fitness(image: Any) -> float:
        f, g = (bench.models[arm](image) for arm in goal.compared)
        both = np.concatenate([f, g])
        o = all(np.sum((both - other) ** 2) > 0.5 for other in seen)
        seen.append(both)
        return float(abs(max(f) - max(g)) / delta + (o if novel else 0))

    x_max, h_max = bench.seed, fitness(bench.seed)
    op = pool[rng.integers(6)]
    asked: list[bytes] = []
    accepted: list[str] = []
    while True:
        tried[op.name] += 1
        x = op(x_max, rng)
        asked.append(x.tobytes())
        f, g = (bench.models[arm](x) for arm in goal.compared)
        if len(asked) == steps or f.argmax() != g.argmax():
            return asked, accepted
        h = fitness(x)
        if h >= h_max:
            x_max, h_max = x, h
            accepted.append(op.name)
            gained[op.name] += 1
        if not ranked:
            op = pool[rng.integers(6)]
            continue
        op_list = sorted(pool, key=lambda o: -gained[o.name] / (tried[o.name] + 1e-7))
        k_last = op_list.index(op)
        while True:
            op = op_list[rng.integers(6)]
            if rng.random() < (1 - 1 / 6) ** (op_list.index(op) - k_last):
                break


VARIANTS = [
    (DFlare().search, {"delta": 1e-3, "novel": True, "ranked": True}),
    (DFlareD().search, {"delta": 1.0, "novel": False, "ranked": True}),
    (DFlareR().search, {"delta": 1e-3, "novel": True, "ranked": False}),
]


@pytest.mark.slow
@pytest.mark.parametrize("find", [Find.ANY, Find.KERNEL])
@pytest.mark.parametrize(("search", "variant"), VARIANTS, ids=["dflare", "dflare-d", "dflare-r"])
def test_asks_what_the_paper_asks(
    bench: Any, agreeing_bench: Any, search: BeginSearch, variant: dict[str, Any], find: Find
) -> None:
    goal = Goal(find, ties=True)
    for models in (bench, agreeing_bench):
        for rng_seed in range(4):
            drive = models.drive(search, goal, rng_seed, steps=150)
            asked, accepted = algorithm_1(models, goal, rng_seed, 150, **variant)
            assert drive.images == asked
            if drive.finding is not None:
                *trail, _last = drive.finding.operators
                assert trail == accepted


def outcome(p: float, q: float, label: int = 0) -> Outcome:
    """Top-1 probabilities p of the original and q of the device; what remains is shared out."""

    def answer(top: float) -> Answer:
        probabilities = np.full(10, (1 - top) / 9)
        probabilities[label] = top
        return Answer(label, False, probabilities, np.log(probabilities))

    return Outcome({Arm.ORIGINAL: answer(p), Arm.DEVICE: answer(q)})


def test_published_operators_are_uniform_until_the_first_acceptance() -> None:
    selection = PublishedSelection(ImageDomain.published_operators(), np.random.default_rng(0))
    chosen = Counter(selection.choose().name for _ in range(DRAWS))
    assert sorted(chosen) == [
        *("average-blur", "gaussian-blur", "median-blur", "pixel-change", "salt-and-pepper"),
        *("wrapping-gaussian-noise", "wrapping-multiplicative-noise"),
    ]
    for count in chosen.values():
        assert count / DRAWS == pytest.approx(1 / 7, abs=0.02)


def test_once_one_was_accepted_the_rank_alone_counts() -> None:
    rng = np.random.default_rng(0)
    selection = PublishedSelection(ImageDomain.published_operators(), rng)
    best = selection.choose().name
    selection.reward()
    weights = [(6 / 7) ** (rank + 1) for rank in range(7)]
    first_rank = weights[0] / sum(weights)
    after: dict[bool, list[bool]] = {True: [], False: []}
    last = best
    for _ in range(DRAWS):
        name = selection.choose().name
        after[last == best].append(name == best)
        if name == best:
            selection.reward()
        last = name
    for was_best in (True, False):
        assert np.mean(after[was_best]) == pytest.approx(first_rank, abs=0.03)


def test_operators_of_equal_value_are_shuffled() -> None:
    seconds = Counter[str]()
    for seed in range(3000):
        selection = PublishedSelection(
            ImageDomain.published_operators(), np.random.default_rng(seed)
        )
        first = selection.choose().name
        selection.reward()
        second = selection.choose().name
        if second != first:
            seconds[second] += 1
    # In a fixed order, the first would have (7/6)^5 = 2.16 times the share of the last.
    assert max(seconds.values()) < 1.5 * min(seconds.values())


def test_a_decrease_is_accepted_and_a_standstill_is_not() -> None:
    accepts = PublishedAcceptance(Goal(), outcome(0.9, 0.9))
    assert accepts(outcome(0.9, 0.8))
    assert accepts(outcome(0.9, 0.85))  # down
    assert not accepts(outcome(0.9, 0.8505))  # within 1e-3 of the last accepted
    assert not accepts(outcome(0.85, 0.9))  # the same distance, the other way round
    assert accepts(outcome(0.9, 0.8))  # up again


def test_the_best_starts_as_no_distance_whatever_the_seeds() -> None:
    seed = outcome(0.9, 0.6)
    assert PublishedAcceptance(Goal(), seed)(seed)
    assert not PublishedAcceptance(Goal(), seed)(outcome(0.9, 0.9))


def test_the_published_code_finds_triggers(bench: Any) -> None:
    found = [
        bench.drive(DFlarePublished().search, Goal(), seed, steps=3000).finding for seed in range(5)
    ]
    assert all(trigger is not None for trigger in found)


def test_a_new_state_is_accepted_once_and_that_of_the_seed_is_known() -> None:
    accepts = PublishedAcceptance(Goal(), outcome(0.95, 0.95))
    assert not accepts(outcome(0.95, 0.95))
    other = outcome(0.95, 0.95, label=1)
    assert accepts(other)
    assert not accepts(other)
    # Steps of less than the threshold, each near the one before but ever farther from the seed:
    # were every state stored, none would ever be new.
    accepts = PublishedAcceptance(Goal(), outcome(0.99, 0.99))
    assert any(accepts(outcome(top / 100, top / 100)) for top in range(95, 10, -5))
