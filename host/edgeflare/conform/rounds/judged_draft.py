"""Drafts run by all arms, and each of their operators judged on what it was really given."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from edgeflare.conform.drafts.cells import Cell
from edgeflare.conform.drafts.draft import Draft, DraftNode, DraftOutcome
from edgeflare.conform.execution.kernel_arm import KernelArm, ModelAnswer, PosedModel
from edgeflare.conform.operator_graph import OperatorGraph
from edgeflare.conform.rounds.judged_operators import judge_alone, judge_lost, judge_packed
from edgeflare.conform.rounds.judged_wholes import judge_wholes
from edgeflare.conform.rounds.posed_draft import PosedDraft, posed
from edgeflare.conform.verdict.arm_comparison import DEVICE
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
    whole = _judge_whole(several, answered, arms)
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

    Of what deviates on the device the first of each operator and type are run again alone, and the
    others where one of these depends on its neighbours.

    Raises:
        InfrastructureError: an arm is lost.

    """
    packed = judge_packed(nodes, models, arms)
    deviating = [at for at, (one, _) in enumerate(packed) if one.verdict == "device"]
    first = _first_of_each(deviating, nodes)
    found = judge_alone(nodes, models, packed, arms, first)
    depending = {nodes[at].cell for at in first if found[at][1][DEVICE].neighbours}
    others = [at for at in deviating if at not in first and nodes[at].cell in depending]
    shared = any(found[at][0].verdict == "shared" for at in first)
    found = judge_alone(nodes, models, found, arms if shared else arms[:1], others)
    found = judge_lost(nodes, models, found, arms)
    return [(one, answers[DEVICE]) for one, answers in found]


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
    arms: Sequence[KernelArm],
) -> dict[int, KernelJudgement]:
    """Run the graphs of several operators whole, where each of them answered alone."""
    expected = {
        number: results
        for number, one in enumerate(several)
        if len(one.draft.nodes) > 1 and (results := one.results(answered[number])) is not None
    }
    models = [several[number].whole for number in expected]
    judged = judge_wholes(models, list(expected.values()), arms)
    return {number: one for number, (one, _) in zip(expected, judged, strict=True)}
