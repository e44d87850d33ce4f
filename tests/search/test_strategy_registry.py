from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edgeflare.core.goal import Find, Goal
from edgeflare.errors import UserError
from edgeflare.search.strategy_registry import find_strategy, strategies

NAMES = list(strategies())


def test_the_strategies_that_there_are() -> None:
    assert NAMES == [
        "boundary",
        "boundary-mh",
        "dflare",
        "dflare-d",
        "dflare-r",
        "dflare-published",
        "diffchaser",
        "donor",
        "climb",
        "random",
        "gradient",
        "deepxplore",
        "fgsm",
        "pgd",
    ]
    for name, entry in strategies().items():
        assert entry.name == name
        assert find_strategy(name) is entry
        assert entry.summary
        assert "\n" not in entry.summary


@pytest.mark.parametrize(("typed", "meant"), [("dflair", "dflare"), ("randm", "random")])
def test_an_unknown_strategy_is_answered_with_the_nearest(typed: str, meant: str) -> None:
    with pytest.raises(UserError, match=f"unknown strategy '{typed}'; did you mean '{meant}'"):
        find_strategy(typed)


def test_an_unknown_strategy_like_none_is_answered_with_all() -> None:
    with pytest.raises(UserError, match=", ".join(NAMES)):
        find_strategy("zzzz")


@pytest.mark.parametrize("name", NAMES)
@given(rng_seed=st.integers(0, 2**32), find=st.sampled_from(Find), ties=st.booleans())
@settings(max_examples=10, deadline=None)
def test_the_same_start_asks_the_same_and_ends_with_a_trigger(
    bench: Any, name: str, rng_seed: int, find: Find, ties: bool
) -> None:
    search, goal = find_strategy(name).create({}).search, Goal(find, ties)
    seed = bench.seed.copy()
    once = bench.drive(search, goal, rng_seed, steps=60)
    again = bench.drive(search, goal, rng_seed, steps=60)
    assert once.images == again.images
    assert np.array_equal(bench.seed, seed)
    # Only where the device answered, and with it all that the goal needs, is there a verdict.
    assert all(set(goal.needed) <= outcome.answers.keys() for outcome in once.on_device)
    verdicts = [goal.met(outcome) for outcome in once.on_device]
    assert not any(verdicts[:-1])
    assert (once.finding is None) == (not any(verdicts))
    if once.finding is not None:
        assert once.finding.kind == verdicts[-1]
        assert once.finding.outcome == once.answered[-1]
        assert once.finding.input.tobytes() == once.images[-1]


DRAWING = [name for name in NAMES if not strategies()[name].strategy.needs_gradients]
"""Those whose first queries are drawn; gradients lead to the same place, drawn or not."""


@pytest.mark.parametrize("name", DRAWING)
def test_another_generator_asks_something_else(bench: Any, name: str) -> None:
    search = find_strategy(name).create({}).search
    runs = [bench.drive(search, Goal(), rng_seed, steps=5).images for rng_seed in range(3)]
    assert runs[0] != runs[1] != runs[2]


@pytest.mark.parametrize("name", NAMES)
def test_nothing_asked_is_changed_later(agreeing_bench: Any, name: str) -> None:
    drive = agreeing_bench.drive(find_strategy(name).create({}).search, Goal(), steps=60)
    recomputed = [
        agreeing_bench.evaluate(query.input, query.arms).answers for query in drive.queries
    ]
    for told, now in zip(drive.outcomes, recomputed, strict=True):
        for arm, answer in told.answers.items():
            assert np.array_equal(answer.probabilities, now[arm].probabilities)
