"""What a run stored, each input as a finding of the document, sorted by what became of it."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import inf, isfinite
from typing import Any

from msgspec import UNSET, UnsetType, structs

from edgeflare.core.answer import Answer
from edgeflare.core.goal import Goal, cause
from edgeflare.core.joint_answer import JointAnswer
from edgeflare.core.query import Arm, Outcome, same_decisions
from edgeflare.pages.answers.answer_forms import RecordedAnswer, recorded_views
from edgeflare.run.answer_rows import from_rows
from edgeflare.run.harm import harm_of
from edgeflare.run.journal_rows import (
    REPETITIONS,
    ChainRow,
    RefinementRow,
    TriggerRow,
    white_box_spent,
)
from edgeflare.run.nearness import is_near, is_strong
from edgeflare.run.run_document import Distortion, Finding, Refined
from edgeflare.run.run_header import RunHeader
from edgeflare.run.run_journal import RunJournal
from edgeflare.run.seed_ids import device_of


@dataclass(frozen=True, slots=True)
class SortedFindings:
    """The lists of a document, each in the order in which the inputs were found.

    Attributes:
        deviating_seeds: seeds that deviate themselves.
        findings: verified ones.
        flaky: those that did not show in each repetition, or not always alike.
        unverified: those that were not evaluated often enough yet.
        mended: inputs of a replay that deviate in no repetition.

    """

    deviating_seeds: list[Finding] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)
    flaky: list[Finding] = field(default_factory=list)
    unverified: list[Finding] = field(default_factory=list)
    mended: list[Finding] = field(default_factory=list)


def sort_findings(journal: RunJournal, header: RunHeader) -> SortedFindings:
    """Return all stored inputs of a run, by what became of them.

    Args:
        journal: journal of the run.
        header: header of the run.

    """
    found = SortedFindings()
    replayed = "replay" in journal.about()
    chains, refinements = journal.chains(), journal.refinements()
    verifications, triggers = journal.answers("verify"), journal.triggers()
    on_seeds = _seed_views(header, journal, triggers)
    for seed_id, trigger in triggers.items():
        chain = chains.get(seed_id)
        goal = header.plan.goal if chain else header.plan.goal.unmutated
        rows = verifications.get(seed_id, [])
        outcomes = [query.outcome for query in from_rows(header.reading, rows)]
        # Of a replay it is to be steady here; of which kind it was elsewhere does not matter.
        here = goal.met(outcomes[0]) if replayed and outcomes else None
        stored = replace(trigger, kind=here or trigger.kind)
        value = trigger.nearness_db if trigger.l2 else inf
        known = value if value is not None and isfinite(value) else None
        distance = {"nearness_db": known, "within": is_near(header.plan, value)}
        finding = _finding(header, stored, chain, refinements.get(seed_id), outcomes, distance)
        finding = structs.replace(finding, seed_answers=on_seeds.get(seed_id, UNSET))
        if len(rows) < REPETITIONS:
            found.unverified.append(finding)
        elif replayed and not any(map(goal.met, outcomes)):
            found.mended.append(finding)
        elif not finding.verified:
            found.flaky.append(finding)
        else:
            (found.deviating_seeds if chain is None else found.findings).append(finding)
    return found


def _finding(
    header: RunHeader,
    trigger: TriggerRow,
    chain: ChainRow | None,
    refinement: RefinementRow | None,
    outcomes: Sequence[Outcome],
    distance: Mapping[str, Any],
) -> Finding:
    """Return a stored input as the document has it; `distance` has the fields of its nearness."""
    outcome = outcomes[0] if outcomes else None
    plan, answers = header.plan, {} if outcome is None else outcome.answers
    labels, views = labels_of(outcomes), _views(header, answers)
    truth = header.truths[trigger.seed_id]
    goal = plan.goal if chain else plan.goal.unmutated
    found = None if outcome is None else cause(outcome, plan.goal.find)
    confidence = None if outcome is None else plan.goal.strength(outcome)
    return Finding(
        seed_id=trigger.seed_id,
        seed_name=header.seed_name(trigger.seed_id),
        seed_label=header.seed_label(trigger.seed_id),
        seed_target=_target(header, truth),
        kind=trigger.kind,
        device=header.devices[device_of(trigger.seed_id, len(header.devices))].name,
        queries=0 if chain is None else chain.queries,
        device_queries=0 if chain is None else chain.device_queries,
        **white_box_spent(() if chain is None else (chain,)),
        seconds=0.0 if chain is None else chain.seconds,
        labels=labels[0] if labels else {},
        tied={arm.value: answer.tied for arm, answer in answers.items()},
        by_tie=outcome is not None and goal.tied_deviation(outcome),
        probabilities={
            arm.value: () if views else tuple(round(p, 9) for p in answer.probabilities.tolist())
            for arm, answer in answers.items()
        },
        answers=views or UNSET,
        cause=found,
        device_sides_with_original=_sides_with_original(outcome) if found == "kernel" else None,
        strength=confidence,
        harm=harm_of(plan.goal, outcome, truth),
        distortion=_distortion(trigger),
        refined=None if refinement is None else _refined(refinement),
        operators=trigger.operators,
        file=trigger.image,
        sha256=trigger.sha256,
        seed_file=trigger.seed_image,
        verified=_reproduced(goal, trigger.kind, outcomes),
        seen=labels,
        strong=is_strong(plan, confidence),
        **distance,
    )


def _target(header: RunHeader, truth: Answer | None) -> str | UnsetType:
    """Return what a seed's target says, as people read it; nothing where there is none."""
    if header.targets is None or truth is None:
        return UNSET
    return header.arms[Arm.TWIN].describe_answer(truth, header.classes)


def _distortion(row: TriggerRow | RefinementRow) -> Distortion:
    return Distortion(row.l2, row.linf, row.mean_abs, row.changed)


def _refined(row: RefinementRow) -> Refined:
    return Refined(
        queries=row.queries,
        device_queries=row.device_queries,
        **white_box_spent((row,)),
        strength_before=row.strength,
        distortion_before=_distortion(row),
        file_before=row.image,
    )


def _sides_with_original(outcome: Outcome | None) -> bool | None:
    """Whether the device decided as the original; None without one."""
    original = None if outcome is None else outcome.answers.get(Arm.ORIGINAL)
    if outcome is None or original is None:
        return None
    return not original.differs(outcome[Arm.DEVICE])


def _views(header: RunHeader, answers: Mapping[Arm, Answer]) -> tuple[RecordedAnswer, ...]:
    """Return how answers are shown, by the compressed model's decoder."""
    if not answers:
        return ()
    return recorded_views(header.arms[Arm.DEVICE], answers, header.plan.goal.compared)


def _seed_views(
    header: RunHeader, journal: RunJournal, wanted: Collection[int]
) -> Mapping[int, tuple[RecordedAnswer, ...]]:
    """Return how the answers to some seeds are shown, by seed id; none where the task does not."""
    if not header.arms[Arm.DEVICE].shows_seeds:
        return {}
    views = {}
    for seed_id, rows in journal.answers("seed").items():
        if seed_id in wanted:
            (one,) = from_rows(header.reading, rows[:1])
            views[seed_id] = _views(header, one.outcome.answers)
    return views


def labels_of(outcomes: Sequence[Outcome]) -> tuple[Mapping[str, int | None], ...]:
    """Return the decisions of each repetition.

    Those that have no number of their own, and joint ones that are too many to be told apart by
    scores, are numbered as they first appear.
    """
    numbered: list[Answer] = []

    def label(answer: Answer) -> int | None:
        counted = answer.counted and (len(answer.scores) or not isinstance(answer, JointAnswer))
        if answer.decision is None or not answer.chooses or counted:
            return answer.decision
        for at, other in enumerate(numbered):
            if not answer.differs(other):
                return at
        numbered.append(answer)
        return len(numbered) - 1

    return tuple({arm.value: label(given) for arm, given in o.answers.items()} for o in outcomes)


def _reproduced(goal: Goal, kind: str, outcomes: Sequence[Outcome]) -> bool:
    """Whether a finding showed in every repetition, of its kind and with the same decisions."""
    return len(outcomes) >= REPETITIONS and all(
        goal.met(outcome) == kind and same_decisions(outcome, outcomes[0]) for outcome in outcomes
    )
