from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest

from edgeflare.core.answer import Answer
from edgeflare.core.arm import Arm
from edgeflare.core.goal import Goal
from edgeflare.core.outcome import Outcome
from edgeflare.domains.image.image_domain import ImageDomain
from edgeflare.search.dflare_published import (
    DFlarePublished,
    PublishedAcceptance,
    PublishedSelection,
)

DRAWS = 20_000


def outcome(p: float, q: float, label: int = 0) -> Outcome:
    """Top-1 probabilities p of the original and q of the device; what remains is shared out."""

    def answer(top: float) -> Answer:
        probabilities = np.full(10, (1 - top) / 9)
        probabilities[label] = top
        return Answer(label, False, probabilities, np.log(probabilities))

    return Outcome({Arm.ORIGINAL: answer(p), Arm.DEVICE: answer(q)})


def test_there_are_seven_operators_and_the_noises_wrap() -> None:
    selection = PublishedSelection(ImageDomain.published_operators(), np.random.default_rng(0))
    names = {selection.choose().name for _ in range(500)}
    assert names == {
        "average-blur",
        "gaussian-blur",
        "median-blur",
        "pixel-change",
        "salt-and-pepper",
        "wrapping-gaussian-noise",
        "wrapping-multiplicative-noise",
    }


def test_operators_are_uniform_until_the_first_acceptance() -> None:
    selection = PublishedSelection(ImageDomain.published_operators(), np.random.default_rng(0))
    chosen = Counter(selection.choose().name for _ in range(DRAWS))
    for count in chosen.values():
        assert count / DRAWS == pytest.approx(1 / 7, abs=0.015)


def test_afterwards_the_rank_alone_counts_not_the_last_operator() -> None:
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
        assert np.mean(after[was_best]) == pytest.approx(first_rank, abs=0.02)


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


def test_a_new_state_is_accepted_once() -> None:
    accepts = PublishedAcceptance(Goal(), outcome(0.95, 0.95))
    other = outcome(0.95, 0.95, label=1)
    assert accepts(other)
    assert not accepts(other)


def test_the_seeds_state_is_known() -> None:
    assert not PublishedAcceptance(Goal(), outcome(0.95, 0.95))(outcome(0.95, 0.95))


def test_only_new_states_are_stored() -> None:
    # Steps of less than the threshold, each near the one before but ever farther from the seed:
    # were every state stored, none would ever be new.
    accepts = PublishedAcceptance(Goal(), outcome(0.99, 0.99))
    steps = [accepts(outcome(top / 100, top / 100)) for top in range(95, 10, -5)]
    assert any(steps)


def test_finds_triggers(bench: Any) -> None:
    found = [
        bench.drive(DFlarePublished().search, Goal(), seed, steps=3000).finding for seed in range(5)
    ]
    assert all(trigger is not None for trigger in found)
