"""Findings of a conformance run, tried again: the stored models, on other kernels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from edgeflare.conform.execution.kernel_arm import KernelArm, ModelAnswer, PosedModel
from edgeflare.conform.record.conform_document import FoundFault
from edgeflare.conform.record.finding_files import StoredModel
from edgeflare.conform.rounds.judged_draft import (
    JudgedDraft,
    judge_again,
    judge_packed,
    judge_wholes,
)
from edgeflare.conform.rounds.posed_draft import PosedDraft
from edgeflare.conform.verdict.arm_comparison import DEVICE
from edgeflare.conform.verdict.kernel_judgement import BESIDE_OTHERS, KernelJudgement

RetryOutcome = Literal["still", "otherwise", "refused", "mended"]
"""What became of a finding: it fails as it did; it fails in another way; the device refuses its
model; it does not fail."""

_COPIES: Final = 8
"""Of a model that fails beside others, run in one file with it: there may be no other finding."""


@dataclass(frozen=True, slots=True)
class RetriedFinding:
    """A finding that was tried again.

    Attributes:
        stored: its model.
        judged: what was said of it now.
        answers: of each arm, to the whole model.

    """

    stored: StoredModel
    judged: JudgedDraft
    answers: Mapping[str, ModelAnswer]

    @property
    def finding(self) -> FoundFault:
        """What it was."""
        return self.stored.finding

    @property
    def judgement(self) -> KernelJudgement:
        """What is said of the whole model; of one that gives up half-way, of that operator."""
        if self.judged.whole is not None:
            return self.judged.whole
        return [one for one in self.judged.nodes if one is not None][-1]

    @property
    def outcome(self) -> RetryOutcome:
        """What became of it."""
        now = self.judgement
        if now.verdict == "refused":
            return "refused"
        was = (self.finding.verdict, self.finding.symptom)
        if (now.verdict, now.symptom) == was:
            return "still"
        # That the host's kernels are wrong says that this device, on which it is tried, is right.
        return "otherwise" if now.is_finding and now.verdict != "host" else "mended"

    @property
    def counts(self) -> bool:
        """Whether it counts for the exit code."""
        fails = self.outcome in ("still", "otherwise")
        return fails and self.judgement.counted and self.finding.known is None


def retried_findings(
    several: Sequence[StoredModel], arms: Sequence[KernelArm]
) -> list[RetriedFinding]:
    """Try findings again, in their order.

    Args:
        several: their models.
        arms: the device first, then the host's kernel sets.

    Raises:
        InfrastructureError: an arm is lost.

    """
    alone = [one for one in several if len(one.draft.nodes) == 1]
    found = {id(one.stored): one for one in _of_one_operator(alone, arms)}
    return [found[id(one)] if id(one) in found else _joined(one, arms) for one in several]


def _of_one_operator(
    several: Sequence[StoredModel], arms: Sequence[KernelArm]
) -> list[RetriedFinding]:
    beside = [one for one in several if one.finding.symptom in BESIDE_OTHERS]
    models = [*several, *beside * _COPIES]
    nodes = [one.draft.nodes[0] for one in models]
    posed = [
        PosedModel(one.model.graph, one.files.operands, one.finding.smallest.rows) for one in models
    ]
    again = judge_again(nodes, posed, arms)
    return [
        RetriedFinding(one, JudgedDraft(one.draft, (judgement,)), answers)
        for one, (judgement, answers) in zip(several, again, strict=False)
    ]


def _joined(one: StoredModel, arms: Sequence[KernelArm]) -> RetriedFinding:
    """Try a graph of several operators: each of them, and then all of it."""
    posed = PosedDraft(one.draft, one.model, one.operands)
    answers: list[ModelAnswer | None] = []
    nodes: list[KernelJudgement | None] = []
    for at, node in enumerate(one.draft.nodes):
        model = posed.alone(at, answers)
        said = judge_packed([node], [model], arms) if model is not None else []
        nodes.append(said[0][0] if said else None)
        answers.append(said[0][1][DEVICE] if said else None)
    expected = posed.results(answers)
    judged = [] if expected is None else judge_wholes([posed.whole], [expected], arms)
    judgement, known = judged[0] if judged else (None, {})
    others = [arm for arm in arms if arm.name not in known]
    by_arm = {arm.name: arm.run([posed.whole])[0] for arm in others}
    return RetriedFinding(one, JudgedDraft(one.draft, tuple(nodes), judgement), {**known, **by_arm})
