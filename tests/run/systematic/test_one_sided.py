"""One-sided changes: classes that lose seeds, lower scores, and outputs that are cut off."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from numpy.typing import NDArray

from edgeflare.core.answer import Answer, Confusion
from edgeflare.core.query import Arm, EvaluatedQuery, Outcome
from edgeflare.core.raw_output_rows import OutputDecoders, kept_row
from edgeflare.core.task import Decoder
from edgeflare.core.tensor import RawBatch, Tensor, pack_rows
from edgeflare.run.systematic.differences import systematic_differences
from edgeflare.run.systematic.figures import SystematicDifferences
from edgeflare.run.systematic.one_sided import (
    Saturation,
    class_flows,
    saturations,
    score_change,
    score_shifts,
)
from edgeflare.statistics.binomial import sign_test
from edgeflare.tasks.classification import ClassDecoder, HeadsDecoder, softmax
from edgeflare.tasks.detection.detection_answer import DetectionAnswer
from edgeflare.tasks.detection.detections import Candidates, DetectionRule, detected
from edgeflare.tasks.frame_pooling import NO_CLIP, ClipFrames
from edgeflare.tasks.value_decoder import Measure, ValueDecoder


def pairs(*counts: tuple[int, int, int]) -> list[Confusion]:
    """One decision for each seed: how many are of one class here and of another there."""
    return [np.array([[here, there, 1]]) for here, there, n in counts for _ in range(n)]


def test_a_class_that_seeds_only_leave_is_named_by_a_corrected_sign_test() -> None:
    """They go to several classes, of which none gains enough for a word."""
    flows = class_flows(pairs((0, 1, 5), (0, 2, 5), (0, 3, 5), (4, 4, 90)), 10)
    (flow,) = flows
    assert (flow.label, flow.left, flow.came) == (0, 15, 0)
    assert flow.p == pytest.approx(10 * sign_test(0, 15))


@pytest.mark.parametrize(
    "confusions",
    [
        pairs((0, 1, 20), (1, 0, 14), (2, 2, 50)),
        pairs((0, 1, 7)),
        pairs((0, 0, 100)),
        [np.array([[0, 0, 9_000], [0, 1, 300], [1, 1, 7_000]])] * 40,
    ],
    ids=["both ways", "few seeds", "none", "outlines of masks"],
)
def test_what_is_not_one_sided_is_not_named(confusions: Sequence[Confusion]) -> None:
    assert not class_flows(confusions, 10)


def test_objects_that_vanish_flow_to_no_class() -> None:
    (flow,) = class_flows([np.array([[3, -1, 2], [3, 3, 1]])] * 14, 0)
    assert (flow.label, flow.left, flow.came) == (3, 14, 0)


def of_classes(shares: NDArray[np.float64]) -> list[Answer]:
    return [
        Answer(0, False, np.array([one, 1.0 - one]), np.log([one, 1.0 - one])) for one in shares
    ]


def test_a_score_that_is_lower_throughout_is_told_with_its_interval() -> None:
    rng = np.random.default_rng(0)
    shares = rng.uniform(0.6, 0.9, 40)
    lower = shares - rng.normal(0.1, 0.02, 40)
    (shift,) = score_shifts(of_classes(shares), of_classes(lower))
    assert (shift.lower, shift.higher) == (40, 0)
    assert shift.low < shift.median < shift.high < 0.0
    assert shift.median == pytest.approx(-0.1, abs=0.01)


def test_how_the_score_of_decisions_changes_is_told_whether_it_is_worth_a_word_or_not() -> None:
    rng = np.random.default_rng(0)
    shares = rng.uniform(0.6, 0.9, 400)
    change = score_change(of_classes(shares), of_classes(shares + rng.normal(0.01, 0.05, 400)))
    assert change is not None
    assert change.inputs == 400
    assert change.low < 0.01 < change.high
    assert change.effect == pytest.approx(0.2, abs=0.1)
    assert not score_shifts(of_classes(shares), of_classes(shares + 0.0))
    failed = [Answer(None, False, np.empty(0), np.empty(0), "crash")]
    assert score_change(failed, failed) is None


def test_the_interval_of_the_median_contains_it_in_95_of_100_cases() -> None:
    rng = np.random.default_rng(1)
    held = 0
    for _ in range(100):
        shares = np.full(25, 0.5)
        (shift,) = score_shifts(of_classes(shares), of_classes(shares + rng.normal(0.2, 0.05, 25)))
        held += shift.low <= 0.2 <= shift.high
    assert held >= 90


def test_a_step_of_rounding_is_not_worth_a_word_however_one_sided() -> None:
    """An 8-bit softmax gives 255/256 where the original is sure."""
    assert not score_shifts(of_classes(np.full(99, 1.0 - 1e-9)), of_classes(np.full(99, 255 / 256)))


def test_noise_makes_no_decision_less_sure_on_the_whole() -> None:
    """Of the original's decisions alone it would: they were chosen since they score highest."""
    for number in range(10):
        rng = np.random.default_rng(number)
        logits = 2.0 * rng.normal(size=(300, 10))
        first, second = (
            [Answer(int(one.argmax()), False, one, np.log(one)) for one in softmax(scores)]
            for scores in (logits, logits + 0.6 * rng.normal(size=logits.shape))
        )
        assert not score_shifts(first, second)


@pytest.mark.parametrize("seeds", [100, 1_000])
def test_a_shift_that_is_small_against_the_noise_or_the_lead_is_not_told(seeds: int) -> None:
    rng = np.random.default_rng(3)
    shares = rng.uniform(0.6, 0.9, seeds)
    noisy = shares + rng.normal(-0.04, 0.12, seeds)
    assert not score_shifts(of_classes(shares), of_classes(noisy.clip(0.01, 0.99)))
    sure = rng.uniform(0.95, 0.99, seeds)
    assert not score_shifts(of_classes(sure), of_classes(sure - rng.uniform(0.03, 0.06, seeds)))
    assert score_shifts(of_classes(sure), of_classes(sure - rng.uniform(0.1, 0.2, seeds)))


def test_the_score_of_a_vanished_object_counts_where_it_was() -> None:
    rule = DetectionRule(threshold=0.5, overlap=0.5, suppression=1.0, most_objects=9)
    box = np.array([[0.2, 0.2, 0.6, 0.6]])

    def scored(score: float) -> DetectionAnswer:
        known = Candidates(
            box, np.zeros(1, np.int64), np.array([score]), np.array([score - 0.5]), np.array([0.1])
        )
        found = detected(known, rule)
        return DetectionAnswer(0, False, np.empty(0), np.empty(0), detected=found)

    before = [scored(0.9)] * 6
    (shift,) = score_shifts(before, [scored(0.3)] * 6)
    assert shift.lower == 6
    assert shift.median == pytest.approx(-0.6)
    assert not score_shifts(before[:5], [scored(0.3)] * 5)
    (appeared,) = score_shifts([scored(0.3)] * 9, [scored(0.9)] * 9)
    assert appeared.higher == 9
    assert not score_shifts([scored(0.3)] * 9, [scored(0.2)] * 9)


def test_each_of_a_few_values_is_judged_by_itself() -> None:
    rng = np.random.default_rng(2)
    decoder = ValueDecoder((Tensor("a", (1, 3), "float32"),), 0, Measure(0.5, "absolute"), NO_CLIP)
    values = rng.normal(size=(30, 3)).astype(np.float32)
    given = values + rng.normal(scale=0.05, size=values.shape) - np.array([0.0, 1.0, 0.1])
    first, second = (
        list(decoder.read(RawBatch(one.astype(np.float32)))) for one in (values, given)
    )
    (shift,) = score_shifts(first, second)
    assert shift.place == 1
    assert shift.median == pytest.approx(-2.0, abs=0.1)


KINDS = {"mine": "float32", "its": "int8"}

SCALE = 0.05
"""With the zero point -128 an int8 output then holds 0 to 12.75."""


def cut(wanted: NDArray[np.float64], dtype: str) -> list[Saturation]:
    """What is found of a device that holds 0 to 12.75, as an int8 output or in float32 behind."""
    raw = np.clip(np.round(wanted / SCALE) - 128, -128, 127)
    given = raw.astype(np.int8)
    if dtype == "float32":
        given = ((raw + 128) * SCALE).astype(np.float32)
    return found(wanted, Tensor("its", (1, wanted.shape[1]), dtype, SCALE, -128), given)


def found(
    wanted: NDArray[np.float64], tensor: Tensor, given: NDArray[np.generic]
) -> list[Saturation]:
    mine = (Tensor("mine", (1, wanted.shape[1]), "float32"),)
    measure = Measure(1.0, "absolute")
    return saturations(
        ValueDecoder(mine, 0, measure, NO_CLIP),
        wanted.astype(np.float32),
        ValueDecoder((tensor,), 0, measure, NO_CLIP),
        given,
    )


@pytest.mark.parametrize("dtype", ["int8", "float32"])
def test_the_share_beyond_the_range_is_told_by_side(dtype: str) -> None:
    rng = np.random.default_rng(0)
    wanted = rng.uniform(0.0, 12.0, (50, 20))
    wanted[:, 3] = 20.0
    wanted[:40, 4] = -5.0
    low, high = cut(wanted, dtype)
    assert (low.side, low.share, low.values, low.positions) == ("low", 0.04, 1, 20)
    assert (high.side, high.share, high.values) == ("high", 0.05, 1)
    assert low.end == 0.0
    assert high.end == pytest.approx(12.75)


@pytest.mark.parametrize("dtype", ["int8", "float32"])
def test_what_fits_or_is_rounded_or_rare_is_not_cut_off(dtype: str) -> None:
    rng = np.random.default_rng(1)
    wanted = rng.uniform(0.0, 12.7, (50, 20))
    wanted[0, 0] = 40.0
    wanted[:, 1] = 12.75 + SCALE
    assert not cut(wanted, dtype)


def test_scores_that_are_not_decided_may_be_cut_off() -> None:
    wanted = np.random.default_rng(3).normal(scale=9.0, size=(50, 20))
    mine, its = (Tensor(name, (1, 20), kind, SCALE, 0) for name, kind in KINDS.items())
    given = np.clip(np.round(wanted / SCALE), -128, 127).astype(np.int8)
    both = saturations(
        ClassDecoder((mine,), 0, "logits"),
        wanted.astype(np.float32),
        ClassDecoder((its,), 0, "logits"),
        given,
    )
    assert [one.side for one in both] == ["high"]


def test_a_float_output_has_no_end() -> None:
    """Neither has one that is lower than the original's throughout."""
    wanted = np.random.default_rng(2).uniform(0.0, 12.7, (50, 20))
    tensor = Tensor("its", (1, 20), "float32")
    assert not found(wanted, tensor, (wanted / 2).astype(np.float32))
    steps = np.round(wanted / 2 / SCALE) * SCALE
    assert not found(wanted, tensor, steps.astype(np.float32))


ARMS = Arm.ORIGINAL, Arm.DEVICE


def differences_of(
    decoder: Decoder, labels: tuple[NDArray[np.int64], NDArray[np.int64]], classes: int
) -> SystematicDifferences | None:
    """Of models that are sure of labels, (seeds, parts), each with as many classes."""
    scores = [(9.0 * np.eye(classes, dtype=np.float32))[one] for one in labels]
    outputs = decoder.outputs
    raw = [
        pack_rows(outputs, [part.reshape(-1, *outputs[0].shape) for part in parts])
        for parts in (np.split(one, len(outputs), axis=1) for one in scores)
    ]
    answers = [list(decoder.read(RawBatch(one))) for one in raw]
    evaluated = [
        EvaluatedQuery(
            Outcome(dict(zip(ARMS, each, strict=True))),
            {arm: kept_row(decoder, one[at]) for arm, one in zip(ARMS, raw, strict=True)},
            0.0,
        )
        for at, each in enumerate(zip(*answers, strict=True))
    ]
    return systematic_differences(OutputDecoders(dict.fromkeys(ARMS, decoder)), ARMS, evaluated)


def leaving(labels: NDArray[np.int64], seeds: int) -> NDArray[np.int64]:
    """Labels of which the first part's first so many are another class."""
    others: NDArray[np.int64] = labels.copy()
    others[:seeds, 0] = 1
    return others


def test_flows_of_clips_are_of_the_classes_of_a_frame_and_not_of_all_their_decisions() -> None:
    clip = Tensor("scores", (4, 10), "float32")
    decoder = ClassDecoder((clip,), 0, "logits", frames=ClipFrames(4, "any"))
    labels = np.arange(4 * 60).reshape(60, 4) % 8 + 2
    labels[:15, 0] = 0
    found = differences_of(decoder, (labels, leaving(labels, 15)), 10)
    assert found is not None
    assert [(one.name, one.left, one.came) for one in found.flows] == [("0", 15, 0), ("1", 0, 15)]


def test_flows_of_heads_are_corrected_for_the_classes_of_all_of_them() -> None:
    outputs = tuple(Tensor(f"head {at}", (1, 2), "float32") for at in range(12))
    decoder = HeadsDecoder(tuple(ClassDecoder(outputs, at, "logits") for at in range(len(outputs))))
    labels = np.zeros((60, 12), np.int64)
    assert differences_of(decoder, (labels, leaving(labels, 9)), 2) is None
    assert differences_of(decoder, (labels, leaving(labels, 20)), 2) is not None
