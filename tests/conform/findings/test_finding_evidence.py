from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from edgeflare.conform.findings.finding_evidence import evidence_for, passes
from edgeflare.conform.findings.finding_key import FindingKey
from edgeflare.conform.findings.observation import Observation
from edgeflare.conform.operators.known_operators import known_operators
from edgeflare.conform.verdict.kernel_judgement import KernelJudgement
from simulated_faults import fresh, observed

CELL = ("CONV_2D", "int8")


def right(models: int) -> list[Observation]:
    rng = np.random.default_rng(5)
    return [observed([], CELL, fresh(CELL, rng), rng) for _ in range(models)]


def test_a_model_that_another_arm_gets_wrong_passes_on_the_device() -> None:
    host = replace(
        right(1)[0], judgement=KernelJudgement("host", "wrong values", wrong=("reference",))
    )
    assert passes(FindingKey(*CELL, "device", "wrong values", counted=True), host, 0)
    assert passes(FindingKey(*CELL, "host", "wrong values", False, ("builtin",)), host, 0)
    assert not passes(FindingKey(*CELL, "host", "biased", False, ("reference",)), host, 0)


@pytest.mark.parametrize(("mean", "telling"), [(0.5, 60), (0.25, 132)])
def test_the_smaller_a_bias_the_more_values_say_that_there_is_none(
    mean: float, telling: int
) -> None:
    models = right(6)
    passing = [
        replace(one, judgement=KernelJudgement("right", telling=telling + more))
        for one, more in zip(models, (-1, 0, 1, -30, 0), strict=False)
    ]
    biased = KernelJudgement("device", "biased", counted=True, worst=mean, unit="steps")
    observations = [*passing, replace(models[-1], judgement=biased)]
    key = FindingKey(*CELL, "device", "biased", counted=True)
    evidence = evidence_for(key, observations, [5], known_operators()[CELL[0]])
    assert evidence.passing.shape[1] == 3
