"""Drafts run by all arms, and each of their operators judged on what it was really given."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from edgeflare.conform.drafts.cells import Cell
from edgeflare.conform.drafts.draft import Draft, DraftNode
from edgeflare.conform.drafts.draft_source import DraftOutcome
from edgeflare.conform.execution.kernel_arm import KernelArm, ModelAnswer, PosedModel
from edgeflare.conform.execution.packing_arm import run_on_all
from edgeflare.conform.graphs.operator_graph import OperatorGraph
from edgeflare.conform.operators.known_operators import known_operators
from edgeflare.conform.rounds.posed_draft import PosedDraft, posed
from edgeflare.conform.verdict.arm_comparison import DEVICE
from edgeflare.conform.verdict.joined_operators import judged_whole
from edgeflare.conform.verdict.judging import judged
from edgeflare.conform.verdict.kernel_judgement import KernelJudgement

_AGAIN: Final = 2
"""Models of one operator and type that are run again alone, of those that deviate in one round. It
takes a worker process each."""


@dataclass(frozen=True, slots=True)
class JudgedDraft:
    """A draft, and what was said of it.

    Attributes:
        draft: it.
        nodes: of each operator; None where what feeds it gave no answer.
        whole: of a draft of several operators, whether all of it answers as its operators do one
            after the other; None of a draft of one.

    """

    draft: Draft
    nodes: tuple[KernelJudgement | None, ...]
    whole: KernelJudgement | None = None

    @property
    def outcome(self) -> DraftOutcome:
        """What drawing has to know of it: what the device took."""
        nodes = tuple(None if one is None else one.verdict != "refused" for one in self.nodes)
        whole = all(nodes) if self.whole is None else self.whole.verdict != "refused"
        return DraftOutcome(nodes, whole)


def taken(draft: Draft) -> DraftOutcome:
    """Return the outcome of a draft that is known to be taken without being run again."""
    return DraftOutcome((True,) * len(draft.nodes), whole=True)


def judge_drafts(
    drafts: Sequence[Draft], arms: Sequence[KernelArm], given: Mapping[int, OperatorGraph]
) -> list[JudgedDraft]:
    """Run drafts on all arms, and judge each of their operators.

    Args:
        drafts: to run.
        arms: the device first, then the host's kernel sets.
        given: the operators of the model that the user named, by their place in it.

    Raises:
        InfrastructureError: an arm is lost.

    """
    several = [posed(draft, given) for draft in drafts]
    answered: list[list[ModelAnswer | None]] = [[] for _ in several]
    said: list[list[KernelJudgement | None]] = [[] for _ in several]
    for at in range(max((len(draft.nodes) for draft in drafts), default=0)):
        _judge_place(at, several, answered, said, arms)
    whole = _judge_whole(several, answered, arms[0])
    return [
        JudgedDraft(one.draft, tuple(nodes), whole.get(number))
        for number, (one, nodes) in enumerate(zip(several, said, strict=True))
    ]


def _judge_place(
    at: int,
    several: Sequence[PosedDraft],
    answered: Sequence[list[ModelAnswer | None]],
    said: Sequence[list[KernelJudgement | None]],
    arms: Sequence[KernelArm],
) -> None:
    """Run and judge the nodes at one place of all drafts that are so long."""
    places = {
        number: one.alone(at, answered[number])
        for number, one in enumerate(several)
        if at < len(one.draft.nodes)
    }
    models = {number: model for number, model in places.items() if model is not None}
    judged = judge_operators(
        [several[number].draft.nodes[at] for number in models], list(models.values()), arms
    )
    by_number = dict(zip(models, judged, strict=True))
    for number in places:
        judgement, answer = by_number.get(number, (None, None))
        answered[number].append(answer)
        said[number].append(judgement)


def judge_operators(
    nodes: Sequence[DraftNode], models: Sequence[PosedModel], arms: Sequence[KernelArm]
) -> list[tuple[KernelJudgement, ModelAnswer]]:
    """Run models of one operator each, and return what is said of each and the device's answer.

    What deviates on the device is run there again alone, the first of each operator and type, so
    that an answer that depends on neighbours in the same file is known as such.

    Raises:
        InfrastructureError: an arm is lost.

    """
    judged = judge_packed(nodes, models, arms)
    deviating = [at for at, (one, _) in enumerate(judged) if one.verdict == "device"]
    again = _first_of_each(deviating, nodes)
    by_arm = [judged[at][1] for at in again]
    alone = arms[0].run_alone([models[at] for at in again], [one[DEVICE] for one in by_arm])
    for at, answers, answer in zip(again, by_arm, alone, strict=True):
        answers[DEVICE] = answer
        judged[at] = (_judged(nodes[at], models[at], answers), answers)
    return [(one, answers[DEVICE]) for one, answers in judged]


def judge_packed(
    nodes: Sequence[DraftNode], models: Sequence[PosedModel], arms: Sequence[KernelArm]
) -> list[tuple[KernelJudgement, dict[str, ModelAnswer]]]:
    """Run models of one operator each beside each other; what is said, and each arm's answer.

    Raises:
        InfrastructureError: an arm is lost.

    """
    if not models:
        return []
    rows = [model.rows for model in models]
    by_arm = run_on_all(arms, [_padded(model, max(rows)) for model in models])
    answers = [
        {name: _first_rows(several[at], count) for name, several in by_arm.items()}
        for at, count in enumerate(rows)
    ]
    return [
        (_judged(node, model, one), one)
        for node, model, one in zip(nodes, models, answers, strict=True)
    ]


def _padded(model: PosedModel, rows: int) -> PosedModel:
    """Return a model with as many rows as others have, the last one repeated."""
    if model.rows == rows:
        return model
    if not model.operands:
        return replace(model, constant_rows=rows)
    operands = (
        np.concatenate([one, np.repeat(one[-1:], rows - len(one), axis=0)])
        for one in model.operands
    )
    return replace(model, operands=tuple(operands))


def _first_rows(answer: ModelAnswer, rows: int) -> ModelAnswer:
    """Return an answer to the rows that were not added."""
    if not answer.outputs or len(answer.outputs[0]) == rows:
        return answer
    return replace(answer, outputs=tuple(one[:rows] for one in answer.outputs))


def _judged(
    node: DraftNode, model: PosedModel, answers: Mapping[str, ModelAnswer]
) -> KernelJudgement:
    specification = known_operators()[node.operator]
    return judged(specification, node.type, model.graph, model.operands, answers)


def _first_of_each(places: Sequence[int], nodes: Sequence[DraftNode]) -> list[int]:
    """Return the first places of each operator and type."""
    times: Counter[Cell] = Counter()
    found = []
    for at in places:
        times[nodes[at].cell] += 1
        if times[nodes[at].cell] <= _AGAIN:
            found.append(at)
    return found


def _judge_whole(
    several: Sequence[PosedDraft],
    answered: Sequence[Sequence[ModelAnswer | None]],
    device: KernelArm,
) -> dict[int, KernelJudgement]:
    """Run the graphs of several operators whole, where each of them answered alone."""
    expected = {
        number: results
        for number, one in enumerate(several)
        if len(one.draft.nodes) > 1 and (results := one.results(answered[number])) is not None
    }
    answers = device.run([several[number].whole for number in expected]) if expected else []
    return {
        number: judged_whole(several[number].whole, answer, expected[number])
        for number, answer in zip(expected, answers, strict=True)
    }
