"""What a candidate is judged by, what it mends and breaks, on the host and on a device."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dynamic_range import quantize_weights
from edgeflare.campaign.pair_panel import OpenedPair
from edgeflare.core.answer import Answer, Failure
from edgeflare.core.query import Arm
from edgeflare.core.seeds import Seeds
from edgeflare.errors import InfrastructureError, UserError
from edgeflare.models.pair import load_pair
from edgeflare.repair.device_judgement import judged_on, latency_on, refusal_by
from edgeflare.repair.judging.judgement import (
    Change,
    Figures,
    Judgement,
    SetAside,
    accuracy_change,
    candidate_answers,
    change,
    figures,
    judged,
    score,
)
from edgeflare.repair.judging.judgement_inputs import (
    FRESH,
    SAMPLED,
    SEEDS,
    TIGHT,
    WIDE,
    JudgedSet,
    SeedSplit,
    SetName,
    fresh_set,
    judged_sets,
    known_labels,
    split_seeds,
)
from edgeflare.repair.judging.repair_examples import FOLDER, shown_inputs, write_shown
from edgeflare_agent.runtime.launcher import LAUNCHER_VARIABLE
from operator_chain import ChainStep, write_tflite
from tampering import COMPRESSED, EXAMPLE, ORIGINAL
from tflite_weights import Weights, mutated

SEED_LABELS = st.lists(st.integers(-1, 4), min_size=1, max_size=80)


@given(SEED_LABELS, st.integers(0, 100))
def test_each_seed_is_in_one_part_and_each_part_has_its_share_of_each_label(
    labels: list[int], number: int
) -> None:
    """To within one seed."""
    split = split_seeds(np.array(labels), np.random.default_rng(number))
    rows = np.concatenate([split.fit, split.choose, split.judge])
    assert sorted(rows.tolist()) == list(range(len(labels)))
    for label in set(labels):
        count = labels.count(label)
        for part, fifths in ((split.fit, 3), (split.choose, 1), (split.judge, 1)):
            mine = sum(labels[row] == label for row in part)
            assert abs(mine - count * fifths / 5) < 1.5


def test_another_generator_seed_divides_otherwise() -> None:
    labels = np.arange(50) % 10
    one, same, other = (split_seeds(labels, np.random.default_rng(seed)) for seed in (1, 1, 2))
    assert one.judge.tolist() == same.judge.tolist() != other.judge.tolist()


@pytest.mark.slow
def test_all_inputs_are_made_from_the_given_seeds(
    opened: OpenedPair, split: SeedSplit, sets: Mapping[SetName, JudgedSet]
) -> None:
    assert list(sets) == [SEEDS, TIGHT, WIDE, SAMPLED]
    assert sets[SEEDS].seed_ids.tolist() == split.choose.tolist()
    for one in sets.values():
        assert set(one.seed_ids.tolist()) <= set(split.choose.tolist())
        count = len(one.inputs)
        assert len(one.seed_ids) == len(one.original) == len(one.before) == count > 0
        assert one.inputs.shape[1:] == opened.seeds.inputs.shape[1:]


@pytest.mark.slow
def test_answers_are_those_of_the_pairs_models(
    opened: OpenedPair, sets: Mapping[SetName, JudgedSet]
) -> None:
    arms = (Arm.ORIGINAL, Arm.TWIN)
    for one in sets.values():
        asked = list(opened.evaluate(list(one.inputs[:20]), one.seed_ids[:20].tolist(), arms))
        for arm, kept in zip(arms, (one.original, one.before), strict=True):
            assert all(
                query.outcome[arm].equals(answer)
                for query, answer in zip(asked, kept[:20], strict=True)
            )


@pytest.mark.slow
def test_true_labels_are_those_of_the_seeds_alone(
    opened: OpenedPair, split: SeedSplit, sets: Mapping[SetName, JudgedSet]
) -> None:
    seeds = opened.seeds
    assert seeds.labels is not None
    true = sets[SEEDS].labels
    assert true is not None
    assert true.tolist() == seeds.labels[split.choose].tolist()
    assert [sets[name].labels for name in (TIGHT, WIDE, SAMPLED)] == [None] * 3


@pytest.mark.slow
def test_tight_inputs_lie_on_both_sides_and_more_of_them_deviate(
    sets: Mapping[SetName, JudgedSet],
) -> None:
    labels = [answer.decision for answer in sets[TIGHT].original]
    assert all(one != other for one, other in zip(labels[::2], labels[1::2], strict=True))

    def deviating(name: SetName) -> float:
        one = sets[name]
        return float(np.mean([f.differs(g) for f, g in zip(one.original, one.before, strict=True)]))

    assert 0 == deviating(SEEDS) < deviating(WIDE) < deviating(TIGHT)
    assert 0 < deviating(SAMPLED) < deviating(TIGHT)


@pytest.mark.slow
def test_sampled_inputs_are_near_the_compressed_models_boundary(
    sets: Mapping[SetName, JudgedSet],
) -> None:
    assert len(sets[SAMPLED].inputs) == len(sets[TIGHT].inputs) == 400
    assert max(answer.lead() for answer in sets[SAMPLED].before) < 0.25
    assert len(set(sets[SAMPLED].seed_ids.tolist())) > 30


@pytest.mark.slow
def test_the_same_generator_seed_makes_the_same_sets(opened: OpenedPair, split: SeedSplit) -> None:
    labels = known_labels(opened)
    one, same, other = (
        judged_sets(opened, labels, split.judge[::5], np.random.default_rng(seed), 40)
        for seed in (3, 3, 4)
    )
    for name in (TIGHT, WIDE, SAMPLED):
        assert one[name].inputs.tobytes() == same[name].inputs.tobytes()
        assert one[name].inputs.tobytes() != other[name].inputs.tobytes()


@pytest.mark.slow
def test_seeds_of_one_label_are_refused(opened: OpenedPair) -> None:
    labels = known_labels(opened)
    rows = np.flatnonzero(labels == labels[0])
    with pytest.raises(UserError, match="all of one label or none: give more seeds"):
        judged_sets(opened, labels, rows, np.random.default_rng(0), 10)


@pytest.mark.slow
def test_a_fresh_set_keeps_its_labels(opened: OpenedPair) -> None:
    images = opened.seeds.inputs[:30]
    true = np.r_[np.arange(29) % 10, -1]
    fresh = fresh_set(opened, Seeds(images, true, ()))
    assert fresh.labels is true
    assert fresh.seed_ids.tolist() == list(range(30))
    assert len(fresh.original) == len(fresh.before) == 30


Row = tuple[int, float, int, int, int]
"""Seed id, the original's margin, and the labels of original, before and after."""


# Inputs that a repair is shown on.


def test_a_folder_of_inputs_that_leads_elsewhere_is_not_written_to(tmp_path: Path) -> None:
    out, elsewhere = tmp_path / "out", tmp_path / "elsewhere"
    out.mkdir()
    elsewhere.mkdir()
    (out / FOLDER).symlink_to(elsewhere)
    sets, after = one_set([(0, 0.5, 0, 1, 0)])
    shown = shown_inputs({TIGHT: sets}, {TIGHT: after})
    assert shown
    with pytest.raises(UserError, match="outside of it"):
        write_shown(out, load_pair(EXAMPLE), shown)
    assert not list(elsewhere.iterdir())


def answer(
    label: int, margin: float = 0.5, tied: bool = False, failure: Failure | None = None
) -> Answer:
    probabilities = np.full(3, (1.0 - margin) / 3)
    probabilities[label] += margin
    decision = None if failure else label
    return Answer(decision, tied, probabilities, probabilities, failure)


def one_set(rows: Sequence[Row]) -> tuple[JudgedSet, list[Answer]]:
    """A set whose input at a position has that value in every pixel, and the answers after."""
    ids = np.array([row[0] for row in rows], np.int64)
    images = np.arange(len(rows), dtype=np.uint8)[:, None, None, None] + np.zeros((2, 2, 1), "u1")
    original, before = [answer(row[2], row[1]) for row in rows], [answer(row[3]) for row in rows]
    return JudgedSet(images, ids, None, original, before), [answer(row[4]) for row in rows]


def shown(most: int, rows: Mapping[SetName, Sequence[Row]]) -> list[tuple[str, str, int, int]]:
    made = {name: one_set(some) for name, some in rows.items()}
    sets: Mapping[SetName, JudgedSet] = {name: one for name, (one, _) in made.items()}
    found = shown_inputs(sets, {name: after for name, (_, after) in made.items()}, most)
    return [
        (one.shown.change, one.shown.set, one.shown.seed_id, int(one.pixels[0, 0, 0]))
        for one in found
    ]


def test_the_largest_margins_of_each_change_come_first() -> None:
    tight = [(1, 0.1, 0, 1, 0), (2, 0.4, 0, 0, 1), (3, 0.3, 0, 1, 0), (4, 0.2, 0, 1, 1)]
    wide = [(5, 0.2, 0, 1, 0), (6, 0.5, 0, 0, 2), (7, 0.9, 0, 0, 0)]
    assert shown(2, {TIGHT: tight, WIDE: wide}) == [
        ("mended", TIGHT, 3, 2),
        ("mended", WIDE, 5, 0),
        ("broken", WIDE, 6, 1),
        ("broken", TIGHT, 2, 1),
    ]


def test_a_seed_has_one_while_others_are_left() -> None:
    """A fresh input is of no seed, and one without an answer is not shown."""
    rows = [(1, 0.9, 0, 1, 0), (1, 0.8, 0, 1, 0), (1, 0.7, 0, 1, 0), (2, 0.1, 0, 1, 0)]
    assert [one[2:] for one in shown(2, {TIGHT: rows})] == [(1, 0), (2, 3)]
    assert [one[2:] for one in shown(3, {TIGHT: rows})] == [(1, 0), (1, 1), (2, 3)]
    row = (1, 0.9, 0, 1, 0)
    assert shown(2, {TIGHT: [row, row], FRESH: [row]}) == [
        ("mended", TIGHT, 1, 0),
        ("mended", FRESH, 1, 0),
    ]
    one, after = one_set([(1, 0.9, 0, 1, 0)])
    failed = JudgedSet(one.inputs, one.seed_ids, None, one.original, [answer(0, failure="crash")])
    assert shown_inputs({TIGHT: failed}, {TIGHT: after}) == ()


ROWS = st.lists(
    st.tuples(st.integers(0, 3), st.floats(0, 1), *[st.integers(0, 2)] * 3), max_size=30
)


@given(ROWS, ROWS, st.integers(0, 12))
def test_as_many_are_shown_as_are_changed(tight: list[Row], wide: list[Row], most: int) -> None:
    made: Mapping[SetName, tuple[JudgedSet, list[Answer]]]
    made = {TIGHT: one_set(tight), WIDE: one_set(wide)}
    found = shown_inputs(
        {name: one for name, (one, _) in made.items()},
        {name: after for name, (_, after) in made.items()},
        most,
    )
    changes = [change(one.original, one.before, after) for one, after in made.values()]
    for kind, count in (
        ("mended", sum(one.mended for one in changes)),
        ("broken", sum(one.broken for one in changes)),
    ):
        margins = [one.shown.original.margin for one in found if one.shown.change == kind]
        assert len(margins) == min(count, most)
        assert margins == sorted(margins, reverse=True)
    assert len({one.shown.file for one in found}) == len(found)


# What a candidate mends and breaks.


def test_deviations_are_counted_by_kind() -> None:
    """A margin of 1/128 is not big, and without labels nothing is right."""
    original = [answer(0), answer(0), answer(0, 0.001), answer(0, tied=True), answer(0), answer(1)]
    arm = [answer(0), answer(1), answer(1), answer(2), answer(1, tied=True), answer(1, tied=True)]
    found = figures(original, arm, np.array([0, 1, 0, 2, -1, 9]))
    assert found == Figures(
        inputs=6, deviating=4, wide_margin=3, strict=2, failed=0, right=3, labelled=4
    )
    limit = 1 / 128
    original = [answer(0, limit), answer(0, limit * 1.01)]
    assert figures(original, [answer(1), answer(1)], None).wide_margin == 1
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
def judge(opened: OpenedPair, sets: Mapping[SetName, JudgedSet]) -> Judge:
    return lambda content: judged(content, opened, sets)


@pytest.mark.slow
def test_the_file_before_changes_nothing_and_the_original_mends_all(
    judge: Judge, sets: Mapping[SetName, JudgedSet]
) -> None:
    """Float inputs are taken."""
    same, best = judge(COMPRESSED.read_bytes()), judge(ORIGINAL.read_bytes())
    assert isinstance(same, Judgement)
    assert isinstance(best, Judgement)
    assert list(same.by_set) == list(sets)
    for one in same.by_set.values():
        assert one.before == one.after
        assert (one.mended, one.broken, one.p) == (0, 0, 1.0)
    assert same.by_set[TIGHT].before.inputs == len(sets[TIGHT].inputs)
    assert (same.score, best.score) == (1.0, 0.0)
    wide = best.by_set[WIDE]
    assert (wide.mended, wide.broken) == (wide.before.deviating, 0)
    assert [name for name, one in best.by_set.items() if one.accuracy is not None] == [SEEDS]


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
        ChainStep("mean", "MEAN", ("image",), (1, 1)),
        ChainStep("scores", "FULLY_CONNECTED", ("mean",), (1, 5), weights, bias),
        ChainStep("probabilities", "SOFTMAX", ("scores",), (1, 5)),
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


@pytest.mark.slow
def test_a_worker_that_cannot_be_started_is_no_fault_of_the_candidate(
    judge: Judge, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(LAUNCHER_VARIABLE, "false")
    with pytest.raises(InfrastructureError, match="no worker process could be started"):
        judge(COMPRESSED.read_bytes())


# On a device.
def test_a_device_answers_as_the_host_on_the_same_kernels(
    opened: OpenedPair, sets: Mapping[SetName, JudgedSet]
) -> None:
    some: Mapping[SetName, JudgedSet] = {TIGHT: sets[TIGHT], WIDE: sets[WIDE]}
    content = ORIGINAL.read_bytes()
    foretold = candidate_answers(content, opened, some)
    assert not isinstance(foretold, SetAside)
    found = judged_on(opened.devices[0], content, opened, some, foretold)
    assert found.inputs == sum(len(one.inputs) for one in some.values())
    assert found.same_labels == found.inputs
    for name, one in some.items():
        assert found.sets[name].before == figures(one.original, one.before, one.labels)
        assert found.sets[name].after.deviating == 0


def test_what_a_device_does_not_open_is_refused_in_a_line(opened: OpenedPair) -> None:
    (device,) = opened.devices
    content = COMPRESSED.read_bytes()
    assert refusal_by(device, content, opened) is None
    reason = refusal_by(device, content[: len(content) // 2], opened)
    assert reason
    assert "\n" not in reason


@pytest.mark.slow
def test_a_candidate_of_another_input_type_is_measured_too(
    opened: OpenedPair, sets: Mapping[SetName, JudgedSet]
) -> None:
    device = opened.devices[0]
    latency = latency_on(device, ORIGINAL.read_bytes(), opened, sets[TIGHT])
    assert latency.device == device.profile.name
    assert latency.ratio > 0.0
