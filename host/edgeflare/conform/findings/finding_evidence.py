"""The models that say something of a finding: those that fail so, and those that could have."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import ceil, sqrt

import numpy as np

from edgeflare.conform.findings.condition_learning import ModelEvidence, vocabulary
from edgeflare.conform.findings.settings_table import SettingsTable
from edgeflare.conform.specification.operator_specification import OperatorSpecification
from edgeflare.conform.specification.parameter import Setting
from edgeflare.conform.verdict.kernel_judgement import KernelJudgement, Symptom, Verdict

STRONGER: Mapping[Symptom, Symptom] = {"biased": "wrong-values"}
"""Symptoms that are weak signs of another one: fewer models that have them, and that meet a
condition of the other one, are no finding of their own."""


MOST_FAILING, MOST_PASSING = 600, 3000
"""Models that are looked at, the latest of each: those were asked for to tell conditions apart."""

_TELLING: Mapping[Symptom, int] = {"biased": 60, "wrong-values": 4}
"""Different values that a right answer needs at least to say that a fault does not show: what is
saturated everywhere is right by any kernel."""

_MOST_TELLING = 400
"""The most that is ever needed."""

_NO_BIAS = 0.1
_NOISE = 4 * 0.43
"""The mean error that is no bias, and by how much one of n values has to exceed it times √n: four
deviations of an error that is a step in one of four values."""


def evidence_for(
    key: FindingKey,
    observations: Sequence[Observation],
    failing: Sequence[int],
    specification: OperatorSpecification,
) -> ModelEvidence:
    """Return what is known of a finding: some failing models, and those that passed.

    Models that fail in another way say nothing about this one, and are left out.
    """
    kept = list(failing)[-MOST_FAILING:]
    least = _least_telling(key.symptom, [observations[at].judgement.worst for at in kept])
    passing = [at for at, observation in enumerate(observations) if passes(key, observation, least)]
    passing = passing[-MOST_PASSING:]
    table = SettingsTable([observations[at].settings for at in (*kept, *passing)])
    known = vocabulary(specification.parameters(key.type), table)
    held = known.held(table)
    return ModelEvidence(known, held[:, : len(kept)], held[:, len(kept) :])


def passes(key: FindingKey, observation: Observation, least_telling: int) -> bool:
    """Return whether a model shows that a finding's fault is not in it, or did not show.

    Args:
        key: the finding's key.
        observation: a model.
        least_telling: values that a right answer needs, so that it could have shown the fault.

    """
    if (observation.operator, observation.type) != (key.operator, key.type):
        return False
    judged = observation.judgement
    if judged.verdict == "host":
        return not set(key.wrong) & set(judged.wrong)
    return judged.verdict in ("right", "rounding") and judged.telling >= least_telling


def _least_telling(symptom: Symptom, worst: Sequence[float]) -> int:
    """Return how many different values could have shown a fault.

    Args:
        symptom: the fault's symptom.
        worst: the largest errors of models that fail; of "biased" their means.

    """
    least = _TELLING.get(symptom, 0)
    if symptom != "biased":
        return least
    above = max(float(np.median(worst)) - _NO_BIAS, _NOISE / sqrt(_MOST_TELLING))
    return max(least, ceil((_NOISE / above) ** 2))


@dataclass(frozen=True, slots=True, order=True)
class FindingKey:
    """What all models of a finding share besides the condition.

    Attributes:
        operator: the operator's name in the schema.
        type: the operator's type.
        verdict: on all of them.
        symptom: how all of them fail.
        counted: whether they count: of crashes some may be the twin's, too, and others not.
        wrong: the kernel sets that are wrong, for the verdict "host"; otherwise ().

    """

    operator: str
    type: str
    verdict: Verdict
    symptom: Symptom
    counted: bool
    wrong: tuple[str, ...] = ()


def finding_key(observation: Observation) -> FindingKey | None:
    """Return what a model's finding is, None for a model without."""
    judged = observation.judgement
    if not judged.is_finding:
        return None
    wrong = judged.wrong if judged.verdict == "host" else ()
    return FindingKey(
        observation.operator,
        observation.type,
        judged.verdict,
        judged.symptom,
        judged.counted,
        wrong,
    )


def stronger(key: FindingKey) -> FindingKey:
    """Return the key of which one is a weak sign, where it is one; else itself.

    A fault of one step is wrong where the exact answer lies between two steps, and but biased where
    it is a whole step.
    """
    return replace(key, symptom=STRONGER.get(key.symptom, key.symptom))


@dataclass(frozen=True, slots=True)
class Observation:
    """A model of one operator and what was said of it.

    Attributes:
        operator: the operator's name in the schema.
        type: the operator's type.
        settings: the model's configuration and the facts that follow from it, by name.
        judgement: what was said.

    """

    operator: str
    type: str
    settings: Mapping[str, Setting]
    judgement: KernelJudgement
