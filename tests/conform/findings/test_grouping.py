"""Failing models become findings, each with the fewest predicates that they share."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from drafting import fresh
from edgeflare.conform.drafts.cells import Cell
from edgeflare.conform.findings import finding_evidence
from edgeflare.conform.findings.fault_condition import FaultCondition
from edgeflare.conform.findings.finding_evidence import (
    FindingKey,
    Observation,
    evidence_for,
    finding_key,
    passes,
)
from edgeflare.conform.findings.grouping import FindingGroup, grouped
from edgeflare.conform.operators.operator_catalogue import known_operators
from edgeflare.conform.rounds.refinement import proposals
from edgeflare.conform.specification.parameter import number
from edgeflare.conform.verdict.kernel_judgement import KernelJudgement
from simulated_faults import SimulatedFault, agreement, drawn_fault, observed, refined

CELL = ("CONV_2D", "int8")
STRIDE = SimulatedFault(
    CELL, "stride_w > kernel_w", lambda one: number(one, "stride_w") > number(one, "kernel_w"), 0.8
)
CRASH = replace(STRIDE, meets=lambda one: one["per_channel"] is True, symptom="crash")
RELU = replace(STRIDE, meets=lambda one: one["activation"] == "RELU6", rate=0.9)
EVERYWHERE = replace(STRIDE, meets=lambda _: True, rate=1.0)


def seen(faults: list[SimulatedFault], models: int = 400) -> list[Observation]:
    rng = np.random.default_rng(5)
    return [observed(faults, CELL, fresh(CELL, rng), rng) for _ in range(models)]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("faults", "found"),
    [
        ([STRIDE], [("wrong-values", "kernel_w < stride_w")]),
        (
            [STRIDE, CRASH],
            [("crash", "per_channel is yes"), ("wrong-values", "kernel_w < stride_w")],
        ),
        (
            [STRIDE, RELU],
            [("wrong-values", "activation is RELU6"), ("wrong-values", "kernel_w < stride_w")],
        ),
        ([EVERYWHERE], [("wrong-values", "always")]),
    ],
)
def test_faults_are_told_apart_each_by_the_fewest_predicates_that_its_models_share(
    faults: list[SimulatedFault], found: list[tuple[str, str]]
) -> None:
    observations = seen(faults)
    groups = grouped(observations, known_operators())
    assert sorted((one.key.symptom, str(one.condition)) for one in groups) == found
    for group in groups:
        for at in group.failing:
            assert group.condition.holds(observations[at].settings)
            assert finding_key(observations[at]) == group.key
    failing = [at for at, one in enumerate(observations) if one.judgement.verdict == "device"]
    assert sorted(at for one in groups for at in one.failing) == failing


def test_one_failing_model_among_few_has_no_condition_yet() -> None:
    right = seen([], 20)
    wrong = replace(right[3], judgement=KernelJudgement("device", "wrong-values", counted=True))
    (group,) = grouped([*right, wrong], known_operators())
    assert (str(group.condition), group.failing) == ("always", (20,))


@pytest.mark.slow
def test_failing_models_beyond_those_that_are_looked_at_stay_in_a_finding(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A run of one operator has thousands of models."""
    monkeypatch.setattr(finding_evidence, "MOST_FAILING", 40)
    observations = seen([STRIDE])
    (group,) = grouped(observations, known_operators())
    failing = [at for at, one in enumerate(observations) if one.judgement.verdict == "device"]
    assert len(failing) > 40
    assert (str(group.condition), list(group.failing)) == ("kernel_w < stride_w", failing)


@pytest.mark.slow
def test_a_fault_that_showed_long_ago_alone_is_not_put_under_another_ones_condition(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(finding_evidence, "MOST_FAILING", 40)
    later = seen([STRIDE])
    wrong = KernelJudgement("device", "wrong-values", counted=True)
    early = [
        replace(one, judgement=wrong)
        for one in later
        if one.settings["activation"] == "RELU6" and not STRIDE.meets(one.settings)
    ]
    observations = [*early[:5], *later]
    groups = grouped(observations, known_operators())
    found = sorted(at for group in groups for at in group.failing)
    assert found == [at for at, one in enumerate(observations) if one.judgement == wrong]
    for group in groups:
        for at in group.failing:
            assert group.condition.holds(observations[at].settings), (at, str(group.condition))


def test_refused_models_are_neither_failing_nor_passing() -> None:
    refused = replace(seen([], 1)[0], judgement=KernelJudgement("refused", "refused"))
    assert finding_key(refused) is None
    assert not passes(FindingKey(*CELL, "device", "wrong-values", counted=True), refused, 0)
    assert grouped([refused], known_operators()) == []


def with_bias(observations: list[Observation], share: float) -> list[Observation]:
    """Observations of which a share of those that fail is biased, and no more."""
    rng = np.random.default_rng(3)
    biased = KernelJudgement("device", "biased", counted=True, worst=1.0, unit="steps")
    return [
        replace(observation, judgement=biased)
        if observation.judgement.is_finding and rng.random() < share
        else observation
        for observation in observations
    ]


@pytest.mark.slow
def test_a_few_models_that_are_but_biased_belong_to_what_makes_others_wrong() -> None:
    (group,) = grouped(with_bias(seen([STRIDE]), 0.2), known_operators())
    assert (group.key.symptom, str(group.condition)) == ("wrong-values", "kernel_w < stride_w")


@pytest.mark.slow
def test_a_bias_elsewhere_is_a_finding_of_its_own() -> None:
    bias = replace(RELU, symptom="biased")
    for observations in (seen([STRIDE, bias]), with_bias(seen([STRIDE]), 0.8)):
        groups = grouped(observations, known_operators())
        assert {group.key.symptom for group in groups} == {"wrong-values", "biased"}


CELL = ("CONV_2D", "int8")


def test_a_model_that_another_arm_gets_wrong_passes_on_the_device() -> None:
    host = replace(
        seen([], 1)[0], judgement=KernelJudgement("host", "wrong-values", wrong=("reference",))
    )
    assert passes(FindingKey(*CELL, "device", "wrong-values", counted=True), host, 0)
    assert passes(FindingKey(*CELL, "host", "wrong-values", False, ("builtin",)), host, 0)
    assert not passes(FindingKey(*CELL, "host", "biased", False, ("reference",)), host, 0)


@pytest.mark.parametrize(("mean", "telling"), [(0.5, 60), (0.25, 132)])
def test_the_smaller_a_bias_the_more_values_say_that_there_is_none(
    mean: float, telling: int
) -> None:
    models = seen([], 6)
    passing = [
        replace(one, judgement=KernelJudgement("right", telling=telling + more))
        for one, more in zip(models, (-1, 0, 1, -30, 0), strict=False)
    ]
    biased = KernelJudgement("device", "biased", counted=True, worst=mean, unit="steps")
    observations = [*passing, replace(models[-1], judgement=biased)]
    key = FindingKey(*CELL, "device", "biased", counted=True)
    evidence = evidence_for(key, observations, [5], known_operators()[CELL[0]])
    assert evidence.passing.shape[1] == 3


CELLS = [
    ("CONV_2D", "int8"),
    ("ADD", "uint8"),
    ("DEPTHWISE_CONV_2D", "float32"),
    ("SUM", "int8"),
    ("RESIZE_BILINEAR", "uint8"),
    ("MUL", "int8"),
]
CONV = known_operators()["CONV_2D"]


def first_group(seed: int) -> tuple[FindingGroup, list[Observation], SimulatedFault]:
    rng = np.random.default_rng(seed)
    fault = drawn_fault(CELLS[0], rng)
    seen = [observed([fault], CELLS[0], fresh(CELLS[0], rng), rng) for _ in range(60)]
    return grouped(seen, known_operators())[0], seen, fault


@pytest.mark.slow
def test_proposals_are_valid_and_follow_from_the_generator() -> None:
    group, seen, _ = first_group(1)
    asked = proposals(CONV, group, seen, np.random.default_rng(2), 24)
    assert len(asked) == 24
    assert all(CONV.invalid("int8", one) is None for one in asked)
    assert asked == proposals(CONV, group, seen, np.random.default_rng(2), 24)


@pytest.mark.slow
def test_proposals_meet_a_rare_condition_far_more_often_than_drawing_does() -> None:
    rng = np.random.default_rng(3)
    fault = SimulatedFault(
        CELLS[0], "rare", lambda one: (one["activation"], one["bias"]) == ("RELU6", False), 0.6
    )
    rare = replace(fault, meets=lambda one: fault.meets(one) and number(one, "kernel_w") < 3)
    seen = [observed([rare], CELLS[0], fresh(CELLS[0], rng), rng) for _ in range(200)]
    (group,) = grouped(seen, known_operators())
    asked = proposals(CONV, group, seen, np.random.default_rng(2), 48)
    met = np.mean([rare.meets(one) for one in asked])
    drawn = np.mean([rare.meets(one.settings) for one in seen])
    assert met > 3 * drawn > 0


@pytest.mark.slow
def test_nothing_is_proposed_for_a_condition_that_is_certain() -> None:
    rng = np.random.default_rng(3)
    fault = SimulatedFault(CELLS[0], "bias", lambda one: one["bias"] is True, 1.0)
    seen = [observed([fault], CELLS[0], fresh(CELLS[0], rng), rng) for _ in range(400)]
    (group,) = grouped(seen, known_operators())
    assert proposals(CONV, group, seen, rng, 48) == []


@pytest.mark.slow
@pytest.mark.parametrize(("cell", "seed"), [(CELLS[2], 2), (CELLS[4], 10)])
def test_the_condition_of_a_fault_that_shows_in_half_of_all_models_is_learned(
    cell: Cell, seed: int
) -> None:
    """Of two terms; it is met by the same fresh models as what was planted, but for 5 in 100."""
    rng = np.random.default_rng(seed)
    fault = drawn_fault(cell, rng)
    groups, asked = refined([fault], cell, rng, most=100)
    assert asked <= 100
    assert agreement(groups, [fault], cell, rng, 300) >= 0.95


def test_a_group_without_any_other_model_gets_proposals() -> None:
    rng = np.random.default_rng(0)
    always = SimulatedFault(CELLS[1], "always", lambda _: True, 1.0)
    seen = [observed([always], CELLS[1], fresh(CELLS[1], rng), rng)]
    key = FindingKey(*CELLS[1], "device", "wrong-values", counted=True)
    group = FindingGroup(key, FaultCondition(), (0,))
    assert len(proposals(known_operators()["ADD"], group, seen, rng, 10)) in range(5, 11)
