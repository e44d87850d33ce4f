"""What answers come to: deviations, ties and failures, as a survey keeps them."""

from __future__ import annotations

from math import isclose

import numpy as np

from edgeflare.core.answer import Answer, Failure
from edgeflare.core.arm import Arm
from edgeflare.core.evaluated_query import EvaluatedQuery
from edgeflare.core.goal import Find, Goal
from edgeflare.core.outcome import Outcome
from edgeflare.core.tensor import Tensor
from edgeflare.core.truths import Truths
from edgeflare.run.survey_rows import NO_DECISION
from edgeflare.survey.items.item_judgement import ItemJudgement
from edgeflare.tasks.classification import ClassDecoder

JUDGEMENT = ItemJudgement(Goal(ties=True), choices=3)


def answer(*probabilities: float, tied: bool = False, failure: Failure | None = None) -> Answer:
    if failure is not None:
        return Answer(None, False, np.zeros(3), np.zeros(3), failure)
    values = np.array(probabilities)
    return Answer(int(values.argmax()), tied, values, np.log(values))


def asked(members: dict[str, Answer] | None = None, **arms: Answer) -> EvaluatedQuery:
    answers = {Arm(name): one for name, one in arms.items()}
    return EvaluatedQuery(Outcome(answers, members or {}), {}, 0.25)


FIRST, SECOND = answer(0.7, 0.2, 0.1), answer(0.3, 0.6, 0.1)
TIED = answer(0.45, 0.45, 0.1, tied=True)


def test_the_host_says_what_compression_changes() -> None:
    row = JUDGEMENT.of_host(4, 99, asked(original=FIRST, twin=SECOND))
    assert (row.item, row.input_crc32, row.compression, row.compression_tied) == (
        4,
        99,
        True,
        False,
    )
    assert (row.original_decision, row.twin_decision) == (0, 1)
    assert isclose(row.margin, np.log(0.6) - np.log(0.3))
    assert row.twin_distance is None
    assert row.seconds == 0.25


def test_a_tie_has_no_margin_and_is_told_apart() -> None:
    row = JUDGEMENT.of_host(0, 0, asked(original=SECOND, twin=TIED))
    assert row.compression_tied
    assert row.margin == 0.0


def test_what_members_of_the_ensemble_disagree_about_is_doubtful() -> None:
    def doubtful(member: Answer) -> bool:
        return JUDGEMENT.of_host(
            0, 0, asked({"builtin": member}, original=FIRST, twin=FIRST)
        ).doubtful

    assert doubtful(SECOND)
    assert doubtful(TIED)
    assert not doubtful(FIRST)


def test_the_device_deviates_by_its_kernels() -> None:
    row = JUDGEMENT.of_device(5, asked(original=FIRST, twin=FIRST, device=SECOND))
    assert (row.deviates, row.kernel, row.deviates_tied, row.failed) == (True, True, False, False)
    assert row.kind == "deviation"
    assert isclose(row.strength or 0.0, 0.3)
    assert row.device_decision == 1


def test_the_device_deviates_as_the_twin_does() -> None:
    row = JUDGEMENT.of_device(5, asked(original=FIRST, twin=SECOND, device=SECOND))
    assert (row.deviates, row.kernel) == (True, False)


def test_a_deviation_by_a_tie_is_a_finding_and_told_apart() -> None:
    row = JUDGEMENT.of_device(5, asked(original=SECOND, twin=SECOND, device=TIED))
    assert (row.deviates, row.deviates_tied, row.kernel_tied) == (True, True, True)
    assert (row.tied, row.kind) == (True, "deviation")


def test_a_failure_that_the_twin_shares_is_not_by_kernels() -> None:
    nan, crash = answer(failure="invalid-output"), answer(failure="crash")
    shared = JUDGEMENT.of_device(5, asked(original=FIRST, twin=nan, device=nan))
    assert (shared.deviates, shared.kernel, shared.failed) == (True, False, True)
    another = JUDGEMENT.of_device(5, asked(original=FIRST, twin=nan, device=crash))
    alone = JUDGEMENT.of_device(5, asked(original=FIRST, twin=FIRST, device=nan))
    mended = JUDGEMENT.of_device(5, asked(original=FIRST, twin=nan, device=FIRST))
    assert another.kernel
    assert alone.kernel
    assert mended.kernel


def test_a_failure_of_the_device_is_a_deviation_that_hangs_on_no_tie() -> None:
    row = JUDGEMENT.of_device(5, asked(original=TIED, twin=TIED, device=answer(failure="crash")))
    assert (row.deviates, row.kernel, row.failed) == (True, True, True)
    assert not row.deviates_tied
    assert not row.kernel_tied
    assert row.kind == "crash"
    assert row.strength is None
    assert row.device_decision == NO_DECISION


def test_a_device_that_agrees_has_no_strength() -> None:
    row = JUDGEMENT.of_device(5, asked(original=FIRST, twin=FIRST, device=FIRST))
    assert (row.deviates, row.kind, row.strength) == (False, None, None)


def test_without_an_original_kernels_alone_are_judged() -> None:
    judgement = ItemJudgement(Goal(Find.KERNEL), choices=3)
    host = judgement.of_host(0, 0, asked(twin=FIRST))
    assert (host.compression, host.original_decision) == (False, NO_DECISION)
    row = judgement.of_device(0, asked(twin=FIRST, device=SECOND))
    assert (row.deviates, row.kernel, row.kind) == (True, True, "deviation")


def test_a_twin_that_fails_has_no_margin() -> None:
    row = JUDGEMENT.of_host(0, 0, asked(original=FIRST, twin=answer(failure="invalid-output")))
    assert (row.margin, row.compression, row.compression_tied) == (0.0, True, False)


def test_who_is_right_is_said_of_each_item_of_an_input() -> None:
    decoder = ClassDecoder(Tensor("scores", (1, 3), "float32"), "logits")
    judgement = ItemJudgement(Goal(), 3, Truths(decoder, [1, 7, 0], None))
    evaluated = asked(original=FIRST, twin=SECOND, device=FIRST)
    for item, rights in (
        (0, (False, True, False)),
        (4, (False, False, False)),
        (5, (True, False, True)),
    ):
        host, device = judgement.of_host(item, 0, evaluated), judgement.of_device(item, evaluated)
        assert host.known == (item != 4)
        assert (host.original_right, host.twin_right, device.device_right) == rights
        assert device.device_truth_distance is None
