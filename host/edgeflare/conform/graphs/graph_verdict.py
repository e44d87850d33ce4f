"""Whether graphs answer as their operators one by one, however they are invoked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from edgeflare.conform.execution.kernel_arm import KernelArm, ModelAnswer, PosedModel, Turns
from edgeflare.conform.execution.packing_arm import run_padded
from edgeflare.conform.graphs.graph_arrangement import INVOKED
from edgeflare.conform.graphs.graph_trace import traced
from edgeflare.conform.graphs.kept_states import joined, joined_answer
from edgeflare.conform.graphs.turns_verdict import judge_turns
from edgeflare.conform.operator_graph import Values
from edgeflare.conform.verdict.arm_comparison import DEVICE
from edgeflare.conform.verdict.joint_operators import is_own_fault, judged_whole, wrong_outputs
from edgeflare.conform.verdict.kernel_judgement import LOST, KernelJudgement

Invocation = Literal[
    "",
    "in another order",
    "on another number of threads",
    "again without a reset of its state",
    "in two shapes in turn",
    "by two signatures in turn",
    "by a signature for each part in turn",
]
"""How a graph is invoked: its rows in their order, or backwards, or on other threads; or an
operator with a state, which goes on from row to row; or resized between two invocations, or by
another signature between two, which is the same graph, or has the rest of its operators."""

_BACKWARDS: Invocation = "in another order"
_THREADED: Invocation = "on another number of threads"
_KEPT: Invocation = "again without a reset of its state"

TURNS: Mapping[Invocation, Turns] = {
    "in two shapes in turn": "shapes",
    "by two signatures in turn": "signatures",
    "by a signature for each part in turn": "parts",
}
"""The invocations in which a graph takes turns."""

_LEAST: Mapping[Invocation, int] = {"": 0, _BACKWARDS: 3, _THREADED: 2, _KEPT: 1}
"""Operators of a graph from which on it is invoked so: no smaller one was ever seen to mind its
order, and on an accelerator that takes as long as another pair."""

INVOCATIONS: tuple[Invocation, ...] = (*_LEAST, *TURNS)


@dataclass(frozen=True, slots=True)
class JudgedGraph:
    """What is said of a graph.

    Attributes:
        judgement: whether it answers as its operators one by one; None where one of them gave no
            answer alone, or is wrong alone, and the graph not by far more.
        taken: whether the device took each operator alone; None of one that was not run.
        invocation: how it was invoked when it failed.
        answers: the answers of the arms that were asked, by their names.
        expected: what its operators answer one by one, (rows, *shape) for each result; of a graph
            that fails in turns what it answers opened anew in each of them.
        wrong: places of its outputs that are wrong; empty where that is not known.

    """

    judgement: KernelJudgement | None
    taken: tuple[bool | None, ...]
    invocation: Invocation = ""
    answers: Mapping[str, ModelAnswer] | None = None
    expected: tuple[Values, ...] = ()
    wrong: tuple[int, ...] = ()

    @property
    def fails(self) -> bool:
        """Whether its operators are right alone, and wrong together."""
        return self.judgement is not None and self.judgement.is_finding

    @property
    def is_right(self) -> bool:
        """Whether it answers as its operators one by one."""
        return self.judgement is not None and self.judgement.verdict in ("right", "rounding")


def invocation_told(arrangement: Sequence[str]) -> Invocation:
    """Return how a finding's graph is invoked, by what is said of how it hangs together."""
    told = {line.removeprefix(INVOKED) for line in arrangement if line.startswith(INVOKED)}
    return next((invocation for invocation in INVOCATIONS if invocation in told), "")


def judge_graphs(
    models: Sequence[PosedModel],
    arms: Sequence[KernelArm],
    in_turn: Sequence[int] | None = None,
) -> list[JudgedGraph]:
    """Run graphs on the device, their operators one by one and all of them.

    Args:
        models: the graphs, and what they are given.
        arms: the device first, then the twin, which is asked where a failure would count.
        in_turn: the places of graphs that take turns, too; None for all.

    Raises:
        InfrastructureError: an arm is lost.

    """
    found = _steady(models, _judged_once(models, arms), arms[0])
    taking = range(len(models)) if in_turn is None else in_turn
    places = [at for at in taking if found[at].is_right]
    judged = judge_turns([models[at] for at in places], arms, list(TURNS.values()))
    for at, by_turns in zip(places, judged, strict=True):
        for invocation, turns in TURNS.items():
            turn = by_turns.get(turns)
            if turn is not None and turn.said.is_finding:
                found[at] = JudgedGraph(
                    turn.said, found[at].taken, invocation, turn.answers, turn.expected
                )
                break
    return found


def _judged_once(models: Sequence[PosedModel], arms: Sequence[KernelArm]) -> list[JudgedGraph]:
    """Run graphs in all invocations in which nothing takes turns with them."""
    traces = traced(models, arms[0])
    found = [
        JudgedGraph(None, trace.taken(model.graph), expected=trace.expected(model.graph) or ())
        for model, trace in zip(models, traces, strict=True)
    ]
    for invocation in _LEAST:
        if invocation == _THREADED and arms[0].on_other_threads() is None:
            continue
        places = [
            at
            for at, trace in enumerate(traces)
            if trace.expected(models[at].graph) is not None
            and not found[at].fails
            and len(models[at].graph.nodes) >= _LEAST[invocation]
            and (invocation != _KEPT or joined(models[at]) is not None)
        ]
        several = [models[at] for at in places]
        expected = [found[at].expected for at in places]
        judged = judge_wholes(several, expected, arms, invocation)
        if invocation == _THREADED:
            judged = _confirmed_on_threads(several, judged, arms)
        for at, (said, answers) in zip(places, judged, strict=True):
            if said is None and found[at].judgement is not None:
                continue  # nothing is said of this invocation, and what was said before stands
            found[at] = replace(found[at], judgement=said, invocation=invocation, answers=answers)
            if found[at].fails and invocation != _KEPT:
                wrong = wrong_places(models[at], answers, found[at].expected)
                found[at] = replace(found[at], wrong=wrong)
    return found


def _steady(
    models: Sequence[PosedModel], judged: Sequence[JudgedGraph], device: KernelArm
) -> list[JudgedGraph]:
    """Return what is said of graphs, and nothing of those that fail by what varies.

    An operator that reads memory which nothing wrote answers otherwise each time: of its graph
    nobody knows what is right.
    """
    found = list(judged)
    failing = [at for at, graph in enumerate(found) if graph.fails]
    for at, again in zip(failing, traced([models[at] for at in failing], device), strict=True):
        if not _are_equal(found[at].expected, again.expected(models[at].graph)):
            found[at] = replace(found[at], judgement=None)
    return found


def _are_equal(one: Sequence[Values], other: Sequence[Values] | None) -> bool:
    return other is not None and all(
        values.tobytes() == same.tobytes() for values, same in zip(one, other, strict=True)
    )


def wrong_places(
    model: PosedModel, answers: Mapping[str, ModelAnswer], expected: Sequence[Values]
) -> tuple[int, ...]:
    """Return which outputs of a graph are wrong, by their places.

    Args:
        model: the graph, and what it is given.
        answers: the answers of the arms, by their names.
        expected: what its operators answer one by one, (rows, *shape) for each result.

    Returns:
        Nothing of a graph that gave no answer, or one of another shape.

    """
    answer = answers.get(DEVICE)
    if answer is None or [values.shape for values in answer.outputs] != [
        values.shape for values in expected
    ]:
        return ()
    return wrong_outputs(model, answer.outputs, expected)


def _confirmed_on_threads(
    models: Sequence[PosedModel], judged: Sequence[JudgedWhole], arms: Sequence[KernelArm]
) -> list[JudgedWhole]:
    """Hold graphs that fail on other threads to their operators one by one on as many threads.

    On several threads a kernel may add in another order, and what follows may cancel all but that.
    """
    threaded, found = arms[0].on_other_threads(), list(judged)
    if threaded is None:
        return found
    failing = [at for at, (said, _) in enumerate(found) if said is not None and said.is_finding]
    traces = traced([models[at] for at in failing], threaded)
    for at, trace in zip(failing, traces, strict=True):
        expected = trace.expected(models[at].graph)
        if expected is None:
            found[at] = None, {}
        else:
            (found[at],) = judge_wholes([models[at]], [expected], arms, _THREADED)
    return found


def judged_on(model: PosedModel, arm: KernelArm, invocation: Invocation = "") -> KernelJudgement:
    """Return whether a graph answers on some kernels as its operators one by one there.

    Args:
        model: the graph, and what it is given.
        arm: the kernels.
        invocation: how it is invoked.

    Raises:
        InfrastructureError: the arm is lost.

    """
    threaded = arm.on_other_threads() if invocation == _THREADED else None
    (trace,) = traced([model], threaded or arm)
    if (expected := trace.expected(model.graph)) is None:
        detail = next(iter(trace.failures.values())).detail
        return KernelJudgement("refused", "refused", wrong=(DEVICE,), detail=detail)
    if invocation == _KEPT:
        ((said, _),) = _judged_kept([model], (arm, arm))
        return said or _not_invoked(invocation)
    if invocation in TURNS:
        (by_turns,) = judge_turns([model], (arm, arm), (TURNS[invocation],))
        turn = by_turns.get(TURNS[invocation])
        return _not_invoked(invocation) if turn is None else turn.said
    if invocation == _THREADED and arm.on_other_threads() is None:
        return _not_invoked(invocation)
    (answer,) = _answers([model], arm, invocation)
    return judged_whole(model, answer, expected)


def _not_invoked(invocation: Invocation) -> KernelJudgement:
    """Return that nothing can be said of kernels which are not invoked as a finding was."""
    detail = f"it cannot be compared {invocation}"
    return KernelJudgement("refused", "refused", wrong=(DEVICE,), detail=detail)


JudgedWhole = tuple[KernelJudgement | None, Mapping[str, ModelAnswer]]
"""What is said of a whole graph, and the answers of the arms that were asked."""


def judge_wholes(
    models: Sequence[PosedModel],
    expected: Sequence[Sequence[Values]],
    arms: Sequence[KernelArm],
    invocation: Invocation = "",
) -> list[JudgedWhole]:
    """Run whole graphs on the device, and on the twin what would count.

    Args:
        models: the graphs, and what they are given.
        expected: what their operators answer on the device one by one, (rows, *shape) each.
        arms: the device first, then the twin.
        invocation: how they are invoked.

    """
    if invocation == _KEPT:
        return _judged_kept(models, arms)
    if invocation in TURNS:
        turns = TURNS[invocation]
        judged = (by_turns.get(turns) for by_turns in judge_turns(models, arms, (turns,)))
        return [(None, {}) if turn is None else (turn.said, turn.answers) for turn in judged]
    device, twin, *_ = arms
    found: list[JudgedWhole] = [
        (_judged(model, answer, results, None), {DEVICE: answer})
        for model, results, answer in zip(
            models, expected, _answers(models, device, invocation), strict=True
        )
    ]
    counted = [at for at, (said, _) in enumerate(found) if said is not None and said.counted]
    theirs = _answers([models[at] for at in counted], twin, invocation)
    for at, answer in zip(counted, theirs, strict=True):
        both = {**found[at][1], twin.name: answer}
        found[at] = _judged(models[at], both[DEVICE], expected[at], answer), both
    return _lost_again(models, expected, found, twin)


def _judged_kept(models: Sequence[PosedModel], arms: Sequence[KernelArm]) -> list[JudgedWhole]:
    """Run operators with a state that goes on from row to row, and with all rows as one sequence.

    Nothing is said of other graphs.
    """
    device, twin, *_ = arms
    found: list[JudgedWhole] = [(None, {})] * len(models)
    long = {at: other for at, model in enumerate(models) if (other := joined(model)) is not None}
    whole = run_padded([device], list(long.values()))
    expected = {at: by_arm[device.name].outputs for at, by_arm in zip(long, whole, strict=True)}
    for at, model in long.items():
        answers: dict[str, ModelAnswer] = {}
        for arm in (device, twin):
            keeping = arm.without_reset(models[at].rows)
            if keeping is None or not expected[at]:
                break
            (answers[arm.name],) = keeping.run([models[at]])
            one = joined_answer(models[at], answers[arm.name])
            theirs = None if arm is device else one
            mine = joined_answer(models[at], answers[device.name])
            said = _judged(model, mine, expected[at], theirs)
            found[at] = said, answers
            if said is None or not said.counted:
                break
    return found


def _lost_again(
    models: Sequence[PosedModel],
    expected: Sequence[Sequence[Values]],
    found: Sequence[JudgedWhole],
    twin: KernelArm,
) -> list[JudgedWhole]:
    """Run on the twin alone what the device does not survive.

    Beside other models the twin may survive by what lies in memory there.
    """
    again = list(found)
    lost = [
        at
        for at, (said, _) in enumerate(found)
        if said is not None and said.counted and said.verdict in LOST
    ]
    before = [found[at][1][twin.name] for at in lost]
    for at, answer in zip(lost, twin.run_alone([models[at] for at in lost], before), strict=True):
        both = {**found[at][1], twin.name: answer}
        again[at] = _judged(models[at], both[DEVICE], expected[at], answer), both
    return again


def _judged(
    model: PosedModel, answer: ModelAnswer, expected: Sequence[Values], twin: ModelAnswer | None
) -> KernelJudgement | None:
    said = judged_whole(model, answer, expected, twin)
    return said if not said.is_finding or is_own_fault(said, model, expected) else None


def _answers(
    models: Sequence[PosedModel], arm: KernelArm, invocation: Invocation
) -> list[ModelAnswer]:
    """Return an arm's answers to graphs, in the order of their rows however they are invoked."""
    if invocation == _THREADED:
        arm = arm.on_other_threads() or arm
    backwards = invocation == _BACKWARDS
    asked = [_backwards(model) if backwards else model for model in models]
    answers = _parted_answers(asked, arm)
    if not backwards:
        return answers
    return [
        replace(answer, outputs=tuple(values[::-1].copy() for values in answer.outputs))
        for answer in answers
    ]


def _parted_answers(models: Sequence[PosedModel], arm: KernelArm) -> list[ModelAnswer]:
    """Return answers to graphs, those apart that answer an input.

    Beside one of these others are wrong on an accelerator, and none is then told from another.
    """
    found: dict[int, ModelAnswer] = {}
    for answers_input in (False, True):
        places = [
            at
            for at, model in enumerate(models)
            if bool(set(model.graph.inputs) & set(model.graph.outputs)) == answers_input
        ]
        several = run_padded([arm], [models[at] for at in places])
        found |= {at: by_arm[arm.name] for at, by_arm in zip(places, several, strict=True)}
    return [found[at] for at in range(len(models))]


def _backwards(model: PosedModel) -> PosedModel:
    return replace(model, operands=tuple(values[::-1].copy() for values in model.operands))
