"""What all models of a finding share besides its condition."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from edgeflare.conform.findings.observation import Observation
from edgeflare.conform.verdict.kernel_judgement import Symptom, Verdict

STRONGER: Mapping[Symptom, Symptom] = {"biased": "wrong values"}
"""Symptoms that are weak signs of another one: fewer models that have them, and that meet a
condition of the other one, are no finding of their own."""


@dataclass(frozen=True, slots=True, order=True)
class FindingKey:
    """What all models of a finding share besides the condition.

    Attributes:
        operator: its name in the schema.
        type: of the operator.
        verdict: on all of them.
        symptom: of all of them.
        counted: whether they count: of crashes some may be the twin's, too, and others not.
        wrong: for the verdict "host" the kernel sets that are wrong; otherwise ().

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
