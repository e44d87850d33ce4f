"""Whether a graph that takes turns answers as the graph and what takes turns with it, opened anew.

What is wrong opened anew, too, is a fault of the graph by itself, and nothing is said of it here.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from edgeflare.conform.execution.kernel_arm import KernelArm, ModelAnswer, PosedModel, Turns
from edgeflare.conform.execution.packing_arm import run_padded
from edgeflare.conform.graphs.graph_turns import turn_pairs
from edgeflare.conform.operator_graph import Values
from edgeflare.conform.verdict.arm_comparison import DEVICE
from edgeflare.conform.verdict.joint_operators import is_own_fault, judged_whole
from edgeflare.conform.verdict.kernel_judgement import KernelJudgement

_NOT_IN_TURN: Final = " cannot be run in these steps: "
"""How the agent says that a compiled model is refused in the turns that it is to take."""

_DETAIL: Final = "it answers otherwise in turn with another than opened anew"


@dataclass(frozen=True, slots=True)
class JudgedTurns:
    """What is said of a graph that takes turns.

    Attributes:
        said: whether it answers as opened anew.
        answers: the answers of the arms that were asked, by their names: its own, those of the
            other, and its own again.
        expected: what both answer opened anew on the device, likewise: (rows, *shape) each.

    """

    said: KernelJudgement
    answers: Mapping[str, ModelAnswer]
    expected: tuple[Values, ...]


def judge_turns(
    models: Sequence[PosedModel], arms: Sequence[KernelArm], several: Collection[Turns]
) -> list[dict[Turns, JudgedTurns]]:
    """Run graphs that take turns on the device, and on the twin what would count.

    Args:
        models: the graphs, and what they are given.
        arms: the device first, then the twin.
        several: how they may take turns.

    Returns:
        What is said of each graph, by how it takes turns; nothing where it cannot, or one of the
        two gives no answer opened anew.

    """
    device, twin, *_ = arms
    known = [turns for turns in several if device.taking_turns(turns) and twin.taking_turns(turns)]
    found: list[dict[Turns, JudgedTurns]] = [{} for _ in models]
    if not known:
        return found
    pairs = [turn_pairs(model, known) for model in models]
    expected = _opened_anew([pair for by_turns in pairs for pair in by_turns.values()], device)
    for turns in known:
        places = [at for at, by_turns in enumerate(pairs) if id(by_turns.get(turns)) in expected]
        chosen = [pairs[at][turns] for at in places]
        judged = _judged_as(turns, chosen, [expected[id(pair)] for pair in chosen], device, twin)
        for at, turn in zip(places, judged, strict=True):
            found[at][turns] = turn
    return found


def _judged_as(
    turns: Turns,
    pairs: Sequence[PosedModel],
    expected: Sequence[tuple[Values, ...]],
    device: KernelArm,
    twin: KernelArm,
) -> list[JudgedTurns]:
    device_in_turn, twin_in_turn = device.taking_turns(turns), twin.taking_turns(turns)
    if device_in_turn is None or twin_in_turn is None:
        return []
    found = []
    answers = (by_arm[device_in_turn.name] for by_arm in run_padded([device_in_turn], pairs))
    for pair, right, answer in zip(pairs, expected, answers, strict=True):
        said, by_arm = _said(pair, answer, right, None), {DEVICE: answer}
        if said.counted:
            (theirs,) = twin_in_turn.run([pair])
            said, by_arm = _said(pair, answer, right, theirs), {**by_arm, twin.name: theirs}
        found.append(JudgedTurns(said, by_arm, right))
    return found


def answers_in_turn(
    pair: PosedModel, arms: Sequence[KernelArm], turns: Turns
) -> dict[str, ModelAnswer]:
    """Return the answers of kernels to a graph with what takes turns with it, by their names."""
    found = {}
    for arm in arms:
        if (in_turn := arm.taking_turns(turns)) is not None:
            (found[arm.name],) = in_turn.run([pair])
    return found


def _opened_anew(pairs: Sequence[PosedModel], device: KernelArm) -> dict[int, tuple[Values, ...]]:
    """Return what graphs answer, those that take turns with them, and themselves again.

    Returns:
        By the identity of the graph with the other; nothing where one of the two gives no answer.

    """
    distinct = {id(pair): pair for pair in pairs}
    others = {at: pair.other for at, pair in distinct.items() if pair.other is not None}
    answers = iter(run_padded([device], [*distinct.values(), *others.values()]))
    own = {at: next(answers)[device.name] for at in distinct}
    found = {}
    for at in others:
        theirs = next(answers)[device.name]
        if own[at].failure is None and theirs.failure is None:
            found[at] = (*own[at].outputs, *theirs.outputs, *own[at].outputs)
    return found


def _said(
    pair: PosedModel, answer: ModelAnswer, expected: Sequence[Values], twin: ModelAnswer | None
) -> KernelJudgement:
    """Return what is said of the first turn that is wrong."""
    if answer.failure is not None and _NOT_IN_TURN in answer.failure.detail:
        detail = answer.failure.detail
        return KernelJudgement("refused", "refused", wrong=(DEVICE,), detail=detail)
    if answer.failure is not None:
        return judged_whole(pair, answer, expected, twin)
    begin = 0
    for model in (pair, pair.other, pair):
        if model is None:
            continue
        part = slice(begin, begin + len(model.graph.outputs))
        begin = part.stop
        theirs = twin
        if twin is not None and twin.failure is None:
            theirs = ModelAnswer(twin.outputs[part])
        right = expected[part]
        said = judged_whole(model, ModelAnswer(answer.outputs[part]), right, theirs)
        if said.is_finding and is_own_fault(said, model, right):
            return replace(said, detail=_DETAIL)
    return KernelJudgement("right")
