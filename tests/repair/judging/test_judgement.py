"""What a candidate mends and breaks, on the host and on a device."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dynamic_range import quantize_weights
from edgeflare.campaign.opened_pair import OpenedPair
from edgeflare.core.answer import Answer, Failure
from edgeflare.errors import InfrastructureError
from edgeflare.repair.device_judgement import cost_on, judged_on, refusal_by
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
from tampering import COMPRESSED, EXAMPLE, ORIGINAL
from tflite_weights import Weights, mutated


def answer(
    label: int, margin: float = 0.5, tied: bool = False, failure: Failure | None = None
) -> Answer:
    probabilities = np.full(3, (1.0 - margin) / 3)
    probabilities[label] += margin
    decision = None if failure else label
    return Answer(decision, tied, probabilities, probabilities, failure)


def test_deviations_are_counted_by_kind() -> None:
    """A margin of 1/128 is not big, and without labels nothing is right."""
    original = [answer(0), answer(0), answer(0, 0.001), answer(0, tied=True), answer(0), answer(1)]
    arm = [answer(0), answer(1), answer(1), answer(2), answer(1, tied=True), answer(1, tied=True)]
    found = figures(original, arm, np.array([0, 1, 0, 2, -1, 9]))
    assert found == Figures(asked=6, deviating=4, big=3, strict=2, failed=0, right=3, labelled=4)
    limit = 1 / 128
    original = [answer(0, limit), answer(0, limit * 1.01)]
    assert figures(original, [answer(1), answer(1)], None).big == 1
    found = figures([answer(0)], [answer(0)], None)
    assert (found.right, found.labelled) == (None, 0)
    assert figures([answer(0)], [answer(0)], np.array([-1])).right is None


def test_failures_count_as_such_alone() -> None:
    crash = answer(0, failure="crash")
    found = figures([answer(0), crash, answer(0)], [crash, answer(1), answer(0)], np.zeros(3, int))
    assert found == Figures(3, 0, 0, 0, failed=2, right=1, labelled=1)
    assert change([answer(0)] * 2, [answer(1), crash], [crash, answer(1)]) == Change(0, 0, 1.0)


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


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        (
            {"tight": (600, 200), "wide": (100, 60), "sampled": (50, 30)},
            {"tight": (500, 100), "wide": (40, 40), "sampled": (30, 10)},
            (600 / 800 + 80 / 160 + 40 / 80) / 3,
        ),
        # Sets of few deviations are pooled.
        (
            {"tight": (100, 100), "wide": (19, 11), "sampled": (10, 0)},
            {"tight": (50, 50), "wide": (0, 0), "sampled": (20, 10)},
            (100 / 200 + 30 / 40) / 2,
        ),
        (
            {"tight": (100, 100), "wide": (40, 0), "sampled": (10, 0)},
            {"tight": (50, 50), "wide": (0, 0), "sampled": (20, 10)},
            (100 / 200 + 30 / 50) / 2,
        ),
        # Seeds do not count, and nothing deviating is no change.
        ({}, {}, 1.0),
        ({}, {"seeds": (5, 5)}, 1.0),
        ({}, {"wide": (2, 1)}, 4.0),
    ],
)
def test_the_score_is_the_mean_of_the_ratios_of_the_sets(
    before: dict[str, tuple[int, int]], after: dict[str, tuple[int, int]], expected: float
) -> None:
    nothing = dict.fromkeys(("seeds", "tight", "wide", "sampled"), (0, 0))
    one, other = (
        {name: counts(*both) for name, both in (nothing | known).items()}
        for known in (before, after)
    )
    assert score(one, other) == pytest.approx(expected)
    assert score(one, one) == 1.0


Judge = Callable[[bytes], Judgement | SetAside]


@pytest.fixture
def judge(opened: OpenedPair, sets: Mapping[str, JudgedSet]) -> Judge:
    return lambda content: judged(content, opened, sets)


@pytest.mark.slow
def test_the_file_before_changes_nothing_and_the_original_mends_all(
    judge: Judge, sets: Mapping[str, JudgedSet]
) -> None:
    """Float inputs are taken."""
    same, best = judge(COMPRESSED.read_bytes()), judge(ORIGINAL.read_bytes())
    assert isinstance(same, Judgement)
    assert isinstance(best, Judgement)
    assert same.before == same.after
    assert set(same.changes.values()) == {Change(0, 0, 1.0)}
    assert same.before[TIGHT].asked == len(sets[TIGHT].images)
    assert (same.score, best.score) == (1.0, 0.0)
    assert best.changes[WIDE] == Change(best.before[WIDE].deviating, 0, best.changes[WIDE].p)
    assert list(best.accuracy) == [SEEDS]


@pytest.mark.slow
def test_a_better_compression_has_a_better_score_than_a_worse_one(judge: Judge) -> None:
    original = ORIGINAL.read_bytes()
    worse = mutated(Weights(original), [100], np.random.default_rng(0))[100]
    good, bad = judge(quantize_weights(original)), judge(worse)
    assert isinstance(good, Judgement)
    assert isinstance(bad, Judgement)
    assert good.score < 0.9
    assert bad.score > 1.0


def five_classes() -> bytes:
    weights, bias = np.ones((5, 1), np.float32), np.arange(5, dtype=np.float32)
    steps = [
        Step("mean", "MEAN", ("image",), (1, 1)),
        Step("scores", "FULLY_CONNECTED", ("mean",), (1, 5), weights, bias),
        Step("probabilities", "SOFTMAX", ("scores",), (1, 5)),
    ]
    return write_tflite(steps, (1, 28, 28, 1))


def of_nan() -> bytes:
    weights = Weights(ORIGINAL.read_bytes())
    last = weights.layers[-1]
    return weights.with_values({last: np.full_like(weights.values[last], np.nan)})


@pytest.mark.slow
@pytest.mark.parametrize(
    ("write", "reason"),
    [
        (lambda: COMPRESSED.read_bytes()[:20_000], r"candidate\.tflite does not load"),
        ((EXAMPLE.parent / "spoken_words" / "compressed.tflite").read_bytes, r"candidate\.tflite"),
        (five_classes, r"\b5\b.*\b10\b|\b10\b.*\b5\b"),
        (of_nan, r"^invalid-output on (\d+) of \1 inputs of the set 'seeds'$"),
    ],
    ids=["cut off", "other inputs", "other classes", "not finite"],
)
def test_what_cannot_be_judged_is_set_aside(
    judge: Judge, write: Callable[[], bytes], reason: str
) -> None:
    found = judge(write())
    assert isinstance(found, SetAside)
    assert re.search(reason, found.reason)
    assert "\n" not in found.reason


def test_a_worker_that_cannot_be_started_is_no_fault_of_the_candidate(
    judge: Judge, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(LAUNCHER_VARIABLE, "false")
    with pytest.raises(InfrastructureError, match="no worker process could be started"):
        judge(COMPRESSED.read_bytes())


# On a device.


def test_a_device_answers_as_the_host_on_the_same_kernels(
    opened: OpenedPair, sets: Mapping[str, JudgedSet]
) -> None:
    some = {name: sets[name] for name in (TIGHT, WIDE)}
    found = judged_on(opened.devices[0], ORIGINAL.read_bytes(), opened, some)
    assert found.asked == sum(len(one.images) for one in some.values())
    assert found.same_labels == found.asked
    for name, one in some.items():
        assert found.before[name] == figures(one.original, one.before, one.labels)
        assert found.after[name].deviating == 0


def test_what_a_device_does_not_open_is_refused_in_a_line(opened: OpenedPair) -> None:
    (device,) = opened.devices
    content = COMPRESSED.read_bytes()
    assert refusal_by(device, content, opened) is None
    reason = refusal_by(device, content[: len(content) // 2], opened)
    assert reason
    assert "\n" not in reason


def test_a_candidate_of_another_input_type_is_measured_too(
    opened: OpenedPair, sets: Mapping[str, JudgedSet]
) -> None:
    cost = cost_on(opened.devices[0], ORIGINAL.read_bytes(), opened, sets[TIGHT].images)
    assert cost.bytes_after == len(ORIGINAL.read_bytes())
    assert cost.ratio > 0.0
