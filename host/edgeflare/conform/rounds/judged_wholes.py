"""Graphs of several operators, run whole and judged by what their operators answer one by one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from edgeflare.conform.execution.kernel_arm import KernelArm, ModelAnswer, PosedModel
from edgeflare.conform.execution.packing_arm import run_padded
from edgeflare.conform.operator_graph import Values
from edgeflare.conform.rounds.posed_draft import PosedDraft
from edgeflare.conform.verdict.arm_comparison import DEVICE
from edgeflare.conform.verdict.joined_operators import judged_whole
from edgeflare.conform.verdict.kernel_judgement import LOST, KernelJudgement

JudgedWhole = tuple[KernelJudgement, Mapping[str, ModelAnswer]]
"""What is said of a whole graph, and the answers of the arms that were asked."""


def judge_wholes(
    models: Sequence[PosedModel],
    expected: Sequence[Sequence[Values]],
    arms: Sequence[KernelArm],
) -> list[JudgedWhole]:
    """Run whole graphs on the device, and on the twin what would count.

    Args:
        models: the graphs with the values that they are given.
        expected: what their operators answer on the device one after the other.
        arms: the device first, then the twin.

    Raises:
        InfrastructureError: an arm is lost.

    """
    device, twin, *_ = arms
    found: list[JudgedWhole] = [
        (judged_whole(model, one[DEVICE], results), one)
        for model, results, one in zip(models, expected, run_padded([device], models), strict=True)
    ]

    def ask(places: Sequence[int], answers: Sequence[ModelAnswer]) -> None:
        for at, answer in zip(places, answers, strict=True):
            both = {**found[at][1], twin.name: answer}
            found[at] = (judged_whole(models[at], both[DEVICE], expected[at], answer), both)

    counted = [at for at, (one, _) in enumerate(found) if one.counted]
    beside = run_padded([twin], [models[at] for at in counted])
    ask(counted, [one[twin.name] for one in beside])
    # Beside other models the twin may survive by what lies in memory there.
    lost = [at for at in counted if found[at][0].counted and found[at][0].verdict in LOST]
    before = [found[at][1][twin.name] for at in lost]
    ask(lost, twin.run_alone([models[at] for at in lost], before))
    return found


def judge_joined(
    several: Sequence[PosedDraft], arms: Sequence[KernelArm]
) -> list[JudgedWhole | None]:
    """Run drafts on the device operator by operator, and then whole; see `judge_wholes`.

    Args:
        several: drafts of several operators.
        arms: the device first, then the twin.

    Returns:
        None for a draft of which an operator gave no answer.

    Raises:
        InfrastructureError: an arm is lost.

    """
    answered: list[list[ModelAnswer | None]] = [[] for _ in several]
    for at in range(max((len(one.draft.nodes) for one in several), default=0)):
        _answer_place(at, several, answered, arms[0])
    results = [one.results(answers) for one, answers in zip(several, answered, strict=True)]
    expected = {at: one for at, one in enumerate(results) if one is not None}
    judged = judge_wholes([several[at].whole for at in expected], list(expected.values()), arms)
    by_place = dict(zip(expected, judged, strict=True))
    return [by_place.get(at) for at in range(len(several))]


def _answer_place(
    at: int,
    several: Sequence[PosedDraft],
    answered: Sequence[list[ModelAnswer | None]],
    device: KernelArm,
) -> None:
    """Run the nodes at one place of all drafts that are so long."""
    models = {
        number: model
        for number, one in enumerate(several)
        if at < len(one.draft.nodes) and (model := one.alone(at, answered[number])) is not None
    }
    answers = dict(zip(models, run_padded([device], list(models.values())), strict=True))
    for number, one in enumerate(several):
        if at < len(one.draft.nodes):
            answered[number].append(answers[number][DEVICE] if number in answers else None)
