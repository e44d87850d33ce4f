"""Tests of edgeflare.repair.judging.judgement and edgeflare.repair.judging.candidate_model."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dynamic_range import quantize_weights
from edgeflare.campaign.opened_pair import OpenedPair
from edgeflare.core.answer import Answer, Failure
from edgeflare.errors import InfrastructureError
from edgeflare.repair.judging.judged_inputs import SEEDS, TIGHT, WIDE, JudgedSet
from edgeflare.repair.judging.judgement import (
    Change,
    Figures,
    Judgement,
    SetAside,
    accuracy_change,
    change,
    figures,
    judged,
    score,
)
from edgeflare_agent.runtime.launcher import LAUNCHER_VARIABLE
from operator_chain import Step, write_tflite
from tampering import EXAMPLE
from tflite_weights import Weights, mutated


def answer(
    label: int, margin: float = 0.5, tied: bool = False, failure: Failure | None = None
) -> Answer:
    probabilities = np.full(3, (1.0 - margin) / 3)
    probabilities[label] += margin
    decision = None if failure else label
    return Answer(decision, tied, probabilities, probabilities, failure)


def test_deviations_are_counted_by_kind() -> None:
    original = [answer(0), answer(0), answer(0, 0.001), answer(0, tied=True), answer(0), answer(1)]
    arm = [answer(0), answer(1), answer(1), answer(2), answer(1, tied=True), answer(1, tied=True)]
    found = figures(original, arm, np.array([0, 1, 0, 2, -1, 9]))
    assert found == Figures(asked=6, deviating=4, big=3, strict=2, failed=0, right=3, labelled=4)


def test_a_margin_of_one_128th_is_not_big() -> None:
    limit = 1 / 128
    original = [answer(0, limit), answer(0, limit * 1.01)]
    assert figures(original, [answer(1), answer(1)], None).big == 1


def test_failures_count_as_such_alone() -> None:
    crash = answer(0, failure="crash")
    found = figures([answer(0), crash, answer(0)], [crash, answer(1), answer(0)], np.zeros(3, int))
    assert found == Figures(3, 0, 0, 0, failed=2, right=1, labelled=1)
    assert change([answer(0)] * 2, [answer(1), crash], [crash, answer(1)]) == Change(0, 0, 1.0)


def test_without_labels_nothing_is_right() -> None:
    found = figures([answer(0)], [answer(0)], None)
    assert (found.right, found.labelled) == (None, 0)
    assert figures([answer(0)], [answer(0)], np.array([-1])).right is None


LABELS = st.lists(st.tuples(*[st.integers(0, 2)] * 4), max_size=30)


@given(LABELS)
def test_mended_less_broken_is_the_fall_of_deviations(
    labels: list[tuple[int, int, int, int]],
) -> None:
    original, before, after, _ = ([answer(row[at]) for row in labels] for at in range(4))
    true = np.array([row[3] for row in labels], np.int64)
    one, other = (figures(original, arm, true) for arm in (before, after))
    changed = change(original, before, after)
    assert changed.mended - changed.broken == one.deviating - other.deviating
    gained = accuracy_change(true, before, after)
    assert gained.mended - gained.broken == (other.right or 0) - (one.right or 0)


def counts(deviating: int, big: int) -> Figures:
    return Figures(1600, deviating, big, 0, 0, None, 0)


def test_the_score_is_the_mean_of_the_ratios_of_the_sets() -> None:
    before = {"tight": counts(600, 200), "wide": counts(100, 60), "sampled": counts(50, 30)}
    after = {"tight": counts(500, 100), "wide": counts(40, 40), "sampled": counts(30, 10)}
    assert score(before, after) == pytest.approx((600 / 800 + 80 / 160 + 40 / 80) / 3)
    assert score(before, before) == 1.0


def test_sets_of_few_deviations_are_pooled() -> None:
    before = {"tight": counts(100, 100), "wide": counts(19, 11), "sampled": counts(10, 0)}
    after = {"tight": counts(50, 50), "wide": counts(0, 0), "sampled": counts(20, 10)}
    assert score(before, after) == pytest.approx((100 / 200 + 30 / 40) / 2)
    alone = {**before, "wide": counts(40, 0)}
    assert score(alone, after) == pytest.approx((100 / 200 + 30 / 50) / 2)


def test_seeds_do_not_count_for_the_score_and_nothing_deviating_is_no_change() -> None:
    sets = ("seeds", "tight", "wide", "sampled")
    none = dict.fromkeys(sets, counts(0, 0))
    assert score(none, none) == 1.0
    assert score(none, {**none, "seeds": counts(5, 5)}) == 1.0
    assert score(none, {**none, "wide": counts(2, 1)}) == 4.0


@pytest.mark.slow
def test_the_file_before_changes_nothing(opened: OpenedPair, sets: Mapping[str, JudgedSet]) -> None:
    same = judged((EXAMPLE / "compressed.tflite").read_bytes(), opened, sets)
    assert isinstance(same, Judgement)
    assert same.before == same.after
    assert set(same.changes.values()) == {Change(0, 0, 1.0)}
    assert same.score == 1.0
    assert same.before[TIGHT].asked == len(sets[TIGHT].images)


@pytest.mark.slow
def test_the_original_mends_all_and_float_inputs_are_taken(
    opened: OpenedPair, sets: Mapping[str, JudgedSet]
) -> None:
    best = judged((EXAMPLE / "original.tflite").read_bytes(), opened, sets)
    assert isinstance(best, Judgement)
    assert best.score == 0.0
    assert best.changes[WIDE] == Change(best.before[WIDE].deviating, 0, best.changes[WIDE].p)
    assert list(best.accuracy) == [SEEDS]


@pytest.mark.slow
def test_a_better_compression_has_a_better_score_than_a_worse_one(
    opened: OpenedPair, sets: Mapping[str, JudgedSet]
) -> None:
    original = (EXAMPLE / "original.tflite").read_bytes()
    worse = mutated(Weights(original), [100], np.random.default_rng(0))[100]
    good, bad = (judged(content, opened, sets) for content in (quantize_weights(original), worse))
    assert isinstance(good, Judgement)
    assert isinstance(bad, Judgement)
    assert good.score < 0.9
    assert bad.score > 1.0


@pytest.mark.slow
def test_a_file_that_does_not_load_is_set_aside(
    opened: OpenedPair, sets: Mapping[str, JudgedSet]
) -> None:
    content = (EXAMPLE / "compressed.tflite").read_bytes()
    found = judged(content[: len(content) // 2], opened, sets)
    assert isinstance(found, SetAside)
    assert "candidate.tflite does not load" in found.reason
    assert "\n" not in found.reason


def test_a_worker_that_cannot_be_started_is_no_fault_of_the_candidate(
    opened: OpenedPair, sets: Mapping[str, JudgedSet], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(LAUNCHER_VARIABLE, "false")
    with pytest.raises(InfrastructureError, match="no worker process could be started"):
        judged((EXAMPLE / "compressed.tflite").read_bytes(), opened, sets)


@pytest.mark.slow
def test_a_model_of_other_inputs_is_set_aside(
    opened: OpenedPair, sets: Mapping[str, JudgedSet]
) -> None:
    content = (EXAMPLE.parent / "spoken_words" / "compressed.tflite").read_bytes()
    found = judged(content, opened, sets)
    assert isinstance(found, SetAside)
    assert "candidate.tflite" in found.reason


@pytest.mark.slow
def test_a_model_of_other_classes_is_set_aside(
    opened: OpenedPair, sets: Mapping[str, JudgedSet]
) -> None:
    five = (1, 5)
    weights, bias = np.ones((5, 1), np.float32), np.arange(5, dtype=np.float32)
    steps = [
        Step("mean", "MEAN", ("image",), (1, 1)),
        Step("scores", "FULLY_CONNECTED", ("mean",), five, weights, bias),
        Step("probabilities", "SOFTMAX", ("scores",), five),
    ]
    found = judged(write_tflite(steps, (1, 28, 28, 1)), opened, sets)
    assert isinstance(found, SetAside)
    assert "5" in found.reason
    assert "10" in found.reason


@pytest.mark.slow
def test_a_model_that_gives_nan_is_set_aside(
    opened: OpenedPair, sets: Mapping[str, JudgedSet]
) -> None:
    weights = Weights((EXAMPLE / "original.tflite").read_bytes())
    last = weights.layers[-1]
    nothing = {last: np.full_like(weights.values[last], np.nan)}
    found = judged(weights.with_values(nothing), opened, sets)
    count = len(sets[SEEDS].images)
    assert found == SetAside(f"invalid-output on {count} of {count} inputs of the set 'seeds'")
