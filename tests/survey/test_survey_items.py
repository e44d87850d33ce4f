"""What answers to items come to: judged, chosen as findings, and suspicious where all alike."""

from __future__ import annotations

import random
from dataclasses import replace
from math import isclose

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgeflare.core.answer import Answer, Failure
from edgeflare.core.goal import Find, Goal
from edgeflare.core.joint_answer import joint_answer
from edgeflare.core.query import Arm, EvaluatedQuery, Outcome
from edgeflare.core.tensor import Tensor
from edgeflare.core.truths import Truths
from edgeflare.run.survey_rows import NO_DECISION, DeviceRow
from edgeflare.survey.items.survey_items import ItemJudgement
from edgeflare.survey.survey_derivation import signs_in_answers, signs_of_chance
from edgeflare.survey.survey_run import choose_findings
from edgeflare.tasks.classification import ClassDecoder
from edgeflare.tasks.frame_pooling import ClipFrames

DECODER = ClassDecoder((Tensor("scores", (1, 3), "float32"),), 0, "logits")
JUDGEMENT = ItemJudgement(Goal(ties=True), DECODER)


def answer(*probabilities: float, tied: bool = False) -> Answer:
    values = np.array(probabilities)
    return Answer(int(values.argmax()), tied, values, np.log(values))


def failed(why: Failure) -> Answer:
    return Answer(None, False, np.zeros(3), np.zeros(3), why)


FIRST, SECOND = answer(0.7, 0.2, 0.1), answer(0.3, 0.6, 0.1)
TIED = answer(0.45, 0.45, 0.1, tied=True)
NAN, CRASH = failed("invalid-output"), failed("crash")


def asked(members: dict[str, Answer] | None = None, **arms: Answer) -> EvaluatedQuery:
    answers = {Arm(name): one for name, one in arms.items()}
    return EvaluatedQuery(Outcome(answers, members or {}), {}, 0.25)


def of_device(original: Answer, twin: Answer, device: Answer) -> DeviceRow:
    return JUDGEMENT.of_device(5, asked(original=original, twin=twin, device=device))


def test_the_host_says_what_compression_changes() -> None:
    row = JUDGEMENT.of_host(4, 99, asked(original=FIRST, twin=SECOND))
    assert (row.item, row.input_crc32) == (4, 99)
    assert (row.compression, row.compression_tied) == (True, False)
    assert (row.original_decision, row.twin_decision) == (0, 1)
    assert isclose(row.margin, np.log(0.6) - np.log(0.3))
    assert row.twin_distance is None
    assert row.seconds == 0.25


@pytest.mark.parametrize(("twin", "tied"), [(TIED, True), (NAN, False)])
def test_a_tie_and_a_failure_of_the_twin_have_no_margin(twin: Answer, tied: bool) -> None:
    row = JUDGEMENT.of_host(0, 0, asked(original=SECOND, twin=twin))
    assert (row.margin, row.compression, row.compression_tied) == (0.0, True, tied)


@pytest.mark.parametrize(("member", "doubtful"), [(FIRST, False), (SECOND, True), (TIED, True)])
def test_what_members_of_the_ensemble_disagree_about_is_doubtful(
    member: Answer, doubtful: bool
) -> None:
    row = JUDGEMENT.of_host(0, 0, asked({"builtin": member}, original=FIRST, twin=FIRST))
    assert row.doubtful == doubtful


@pytest.mark.parametrize(
    ("original", "twin", "device", "deviates", "by_kernels"),
    [
        (FIRST, FIRST, FIRST, False, False),
        (FIRST, FIRST, SECOND, True, True),
        (FIRST, SECOND, SECOND, True, False),
        (FIRST, NAN, NAN, True, False),
        (FIRST, NAN, CRASH, True, True),
        (FIRST, FIRST, NAN, True, True),
        (FIRST, NAN, FIRST, False, True),
    ],
    ids=[
        "it agrees", "by kernels", "as the twin", "fails as the twin", "fails otherwise",
        "fails alone", "the twin fails alone",
    ],
)  # fmt: skip
def test_the_device_is_held_against_original_and_twin(
    original: Answer, twin: Answer, device: Answer, deviates: bool, by_kernels: bool
) -> None:
    row = of_device(original, twin, device)
    assert (row.deviates, row.kernel) == (deviates, by_kernels)
    assert not row.deviates_tied
    assert row.failed == (device.failure is not None)
    assert row.kind == ((device.failure or "deviation") if deviates else None)


def test_a_deviation_has_its_strength_and_its_decision() -> None:
    row = of_device(FIRST, FIRST, SECOND)
    assert isclose(row.strength or 0.0, 0.3)
    assert row.device_decision == 1
    assert of_device(FIRST, FIRST, FIRST).strength is None


def test_a_deviation_by_a_tie_is_a_finding_and_told_apart() -> None:
    row = of_device(SECOND, SECOND, TIED)
    assert (row.deviates, row.deviates_tied, row.kernel_tied) == (True, True, True)
    assert (row.tied, row.kind) == (True, "deviation")


def test_a_failure_of_the_device_is_a_deviation_that_hangs_on_no_tie() -> None:
    row = of_device(TIED, TIED, CRASH)
    assert (row.deviates, row.kernel, row.failed) == (True, True, True)
    assert not row.deviates_tied
    assert not row.kernel_tied
    assert (row.kind, row.strength, row.device_decision) == ("crash", None, NO_DECISION)


def test_without_an_original_kernels_alone_are_judged() -> None:
    judgement = ItemJudgement(Goal(Find.KERNEL), DECODER)
    host = judgement.of_host(0, 0, asked(twin=FIRST))
    assert (host.compression, host.original_decision) == (False, NO_DECISION)
    row = judgement.of_device(0, asked(twin=FIRST, device=SECOND))
    assert (row.deviates, row.kernel, row.kind) == (True, True, "deviation")


@pytest.mark.parametrize(
    ("item", "rights"),
    [(0, (False, True, False)), (4, (False, False, False)), (5, (True, False, True))],
)
def test_who_is_right_is_said_of_each_item_of_an_input(
    item: int, rights: tuple[bool, bool, bool]
) -> None:
    judgement = ItemJudgement(Goal(), DECODER, Truths(DECODER, [1, 7, 0], None))
    evaluated = asked(original=FIRST, twin=SECOND, device=FIRST)
    host, device = judgement.of_host(item, 0, evaluated), judgement.of_device(item, evaluated)
    assert host.known == (item != 4)
    assert (host.original_right, host.twin_right, device.device_right) == rights
    assert device.device_truth_distance is None


@pytest.mark.parametrize(("frames", "kept"), [(39, 3**39 - 1), (40, NO_DECISION)])
def test_decisions_beyond_64_bits_are_not_kept(frames: int, kept: int) -> None:
    """As of a clip whose frames are answered each by itself."""
    scores = Tensor("scores", (frames, 1, 3), "float32")
    decoder = ClassDecoder((scores,), 0, "logits", ClipFrames(frames, "any"))
    every = joint_answer([answer(0.1, 0.2, 0.7)] * frames)
    judgement = ItemJudgement(Goal(), decoder)
    host = judgement.of_host(0, 0, asked(original=every, twin=every))
    device = judgement.of_device(0, asked(original=every, twin=every, device=every))
    assert {host.original_decision, host.twin_decision, device.device_decision} == {kept}


INPUTS, CELLS = 4, 3
AGREES = of_device(FIRST, FIRST, FIRST)


def found(item: int, strength: float | None, kind: str | None = "deviation") -> DeviceRow:
    return replace(AGREES, item=item, deviates=kind is not None, kind=kind, strength=strength)


rows = st.lists(
    st.builds(
        found,
        item=st.integers(0, INPUTS * CELLS - 1),
        strength=st.none() | st.floats(0.0, 1.0),
        kind=st.sampled_from(["deviation", "crash", None]),
    ),
    unique_by=lambda one: one.item,
)


@given(
    rows,
    st.lists(st.floats(0, 1), min_size=CELLS, max_size=CELLS),
    st.integers(0, 6),
    st.integers(0, 99),
)
def test_each_input_is_chosen_once_at_most_whatever_the_order_of_the_answers(
    rows: list[DeviceRow], rates: list[float], most: int, seed: int
) -> None:
    chosen = choose_findings(rows, INPUTS, np.array(rates), most)
    deviating = {one.item % INPUTS for one in rows if one.kind is not None}
    assert all(one.kind is not None for one in chosen)
    assert len({one.item % INPUTS for one in chosen}) == len(chosen) == min(most, len(deviating))
    shuffled = random.Random(seed).sample(rows, len(rows))  # noqa: S311 - an order, no secret
    assert choose_findings(shuffled, INPUTS, np.array(rates), most) == chosen


def test_the_worst_cells_come_first_and_then_the_strongest() -> None:
    strengths = {0: 0.9, 1: 0.8, 4: 0.1, 6: 0.3, 8: 0.2, 7: 0.7}
    deviating = [found(item, strength) for item, strength in strengths.items()]
    chosen = choose_findings(deviating, INPUTS, np.array([0.1, 0.2, 0.9]), 10)
    # Of cell 2 item 8 (input 0), of cell 1 item 7 (input 3), of cell 0 item 1; then item 6.
    assert [one.item for one in chosen] == [8, 7, 1, 6]


def test_a_failure_is_stronger_than_any_deviation() -> None:
    chosen = choose_findings([found(0, 1.0), found(1, None, "hang")], INPUTS, np.zeros(3), 1)
    assert [one.item for one in chosen] == [1]


ITEMS = 20
HOST = [
    replace(
        JUDGEMENT.of_host(item, 0, asked(original=FIRST, twin=FIRST)),
        original_decision=item % 3,
        twin_decision=item % 3,
    )
    for item in range(ITEMS)
]


def decided(item: int, decision: int, *, tied: bool = False) -> DeviceRow:
    return replace(AGREES, item=item, device_decision=decision, tied=tied)


def no_answer(item: int) -> DeviceRow:
    return replace(decided(item, NO_DECISION), failed=True, kind="invalid-output")


def test_a_device_that_decides_always_the_same_is_told_by_its_twin() -> None:
    (line,) = signs_in_answers(HOST, [decided(item, 0) for item in range(ITEMS)])
    assert line.startswith("the device decides the same on all 20 items that it answered, and its")
    as_its_twin = [decided(item, item % 3) for item in range(ITEMS)]
    assert signs_in_answers(HOST, as_its_twin) == []
    assert signs_in_answers(HOST, [decided(item, 0) for item in range(0, ITEMS, 3)]) == []


def test_failures_are_no_decisions() -> None:
    assert signs_in_answers(HOST, [no_answer(item) for item in range(ITEMS)]) == []
    device = [no_answer(item) if item < 4 else decided(item, 0) for item in range(ITEMS)]
    (line,) = signs_in_answers(HOST, device)
    assert "on all 16 items that it answered" in line


@pytest.mark.parametrize(("ties", "said"), [(2, 0), (3, 1)])
def test_more_than_a_tenth_of_ties_is_said(ties: int, said: int) -> None:
    device = [decided(item, item % 3, tied=item < ties) for item in range(ITEMS)]
    assert len(signs_in_answers(HOST, device)) == said


@pytest.mark.parametrize(("right", "said"), [(6, 1), (12, 1), (19, 0)])
def test_an_original_that_is_at_chance_is_said(right: int, said: int) -> None:
    """Half of the labels are alike, and the interval of 12 of 20 begins below that."""
    rows = [replace(row, known=True, original_right=row.item < right) for row in HOST]
    labels = [0] * 10 + list(range(10))
    lines = signs_of_chance(rows, labels)
    assert len(lines) == said
    assert all("no better than one label for all of them (55.0%)" in line for line in lines)
    assert not signs_of_chance(HOST, labels)
