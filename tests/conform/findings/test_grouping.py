from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from edgeflare.conform.findings import finding_evidence
from edgeflare.conform.findings.finding_evidence import passes
from edgeflare.conform.findings.finding_key import FindingKey, finding_key
from edgeflare.conform.findings.grouping import grouped
from edgeflare.conform.findings.observation import Observation
from edgeflare.conform.operators.known_operators import known_operators
from edgeflare.conform.specification.settings import number
from edgeflare.conform.verdict.kernel_judgement import KernelJudgement
from simulated_faults import SimulatedFault, fresh, observed

CELL = ("CONV_2D", "int8")
STRIDE = SimulatedFault(
    CELL, "stride_w > kernel_w", lambda one: number(one, "stride_w") > number(one, "kernel_w"), 0.8
)
CRASH = replace(STRIDE, meets=lambda one: one["per_channel"] is True, symptom="crash")
RELU = replace(STRIDE, meets=lambda one: one["activation"] == "RELU6", rate=0.9)


def seen(faults: list[SimulatedFault], models: int = 400) -> list[Observation]:
    rng = np.random.default_rng(5)
    return [observed(faults, CELL, fresh(CELL, rng), rng) for _ in range(models)]


def test_the_fewest_predicates_are_found_that_failing_models_share() -> None:
    observations = seen([STRIDE])
    (group,) = grouped(observations, known_operators())
    assert str(group.condition) == "kernel_w < stride_w"
    failing = [at for at, one in enumerate(observations) if one.judgement.verdict == "device"]
    assert list(group.failing) == failing


def test_models_that_all_fail_need_no_condition() -> None:
    everywhere = replace(STRIDE, meets=lambda _: True, rate=1.0)
    (group,) = grouped(seen([everywhere], 50), known_operators())
    assert str(group.condition) == "always"


def test_one_failing_model_among_few_has_no_condition_yet() -> None:
    right = seen([], 20)
    wrong = replace(right[3], judgement=KernelJudgement("device", "wrong values", counted=True))
    (group,) = grouped([*right, wrong], known_operators())
    assert (str(group.condition), group.failing) == ("always", (20,))


def test_symptoms_are_findings_of_their_own() -> None:
    groups = grouped(seen([STRIDE, CRASH]), known_operators())
    assert [(one.key.symptom, str(one.condition)) for one in groups] == [
        ("crash", "per_channel is yes"),
        ("wrong values", "kernel_w < stride_w"),
    ]


def test_two_faults_with_one_symptom_are_told_apart() -> None:
    groups = grouped(seen([STRIDE, RELU]), known_operators())
    assert {str(one.condition) for one in groups} == {"kernel_w < stride_w", "activation is RELU6"}
    covered = [at for one in groups for at in one.failing]
    assert len(covered) == len(set(covered))


def test_every_failing_model_meets_the_condition_of_its_finding() -> None:
    observations = seen([STRIDE, RELU, CRASH])
    for group in grouped(observations, known_operators()):
        for at in group.failing:
            assert group.condition.holds(observations[at].settings)
            assert finding_key(observations[at]) == group.key


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


def test_refused_models_are_neither_failing_nor_passing() -> None:
    refused = replace(seen([], 1)[0], judgement=KernelJudgement("refused", "refused"))
    assert finding_key(refused) is None
    assert not passes(FindingKey(*CELL, "device", "wrong values", counted=True), refused, 0)
    assert grouped([refused], known_operators()) == []


def with_bias(observations: list[Observation], share: float) -> list[Observation]:
    """Observations of which a share of those that fail is biased, and no more."""
    rng = np.random.default_rng(3)
    biased = KernelJudgement("device", "biased", counted=True, worst=1.0, unit="steps")
    return [
        replace(one, judgement=biased) if one.judgement.is_finding and rng.random() < share else one
        for one in observations
    ]


def test_a_few_models_that_are_but_biased_belong_to_what_makes_others_wrong() -> None:
    (group,) = grouped(with_bias(seen([STRIDE]), 0.2), known_operators())
    assert (group.key.symptom, str(group.condition)) == ("wrong values", "kernel_w < stride_w")


def test_many_models_that_are_biased_are_a_finding_beside_few_that_are_wrong() -> None:
    groups = grouped(with_bias(seen([STRIDE]), 0.8), known_operators())
    assert {group.key.symptom for group in groups} == {"wrong values", "biased"}


def test_a_bias_elsewhere_is_a_finding_of_its_own() -> None:
    bias = replace(RELU, symptom="biased")
    groups = grouped(seen([STRIDE, bias]), known_operators())
    assert {group.key.symptom for group in groups} == {"wrong values", "biased"}
