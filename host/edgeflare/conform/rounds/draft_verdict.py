"""Drafts run by all arms, and each of their operators judged on what it was really given.

Models of one operator each are run beside each other, and alone. Graphs of several operators are
run whole, and judged by what their operators answer one by one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from edgeflare.conform.drafts.cells import Cell
from edgeflare.conform.drafts.draft import (
    FRESH,
    Draft,
    DraftedModel,
    DraftNode,
    DraftOutcome,
    drafted,
)
from edgeflare.conform.execution.kernel_arm import KernelArm, ModelAnswer, PosedModel
from edgeflare.conform.execution.packing_arm import run_padded
from edgeflare.conform.graphs.graph_verdict import judge_wholes
from edgeflare.conform.operator_graph import OperatorGraph, Values
from edgeflare.conform.operators.operator_catalogue import known_operators
from edgeflare.conform.specification.activation_tensors import OPERAND_STYLES
from edgeflare.conform.verdict.arm_comparison import DEVICE
from edgeflare.conform.verdict.kernel_judgement import LOST, KernelJudgement
from edgeflare.conform.verdict.operator_verdict import judged

ROWS = len(OPERAND_STYLES)
"""Each model is run on one input of each style."""

_OPERANDS = 1
"""Second part of the seed of a node's operands, which tells it from that of its constants."""


@dataclass(frozen=True, slots=True)
class PosedDraft:
    """The models of a draft with fresh values for all that they are given.

    Attributes:
        draft: the draft as it was drawn.
        model: the draft's graphs.
        operands: one array for each input of each node alone, (rows, *shape); those that another
            node feeds are to be replaced by its answer.

    """

    draft: Draft
    model: DraftedModel
    operands: tuple[tuple[Values, ...], ...]

    @property
    def whole(self) -> PosedModel:
        """The whole graph."""
        fresh = [
            values
            for node, operands in zip(self.draft.nodes, self.operands, strict=True)
            for source, values in zip(node.sources, operands, strict=True)
            if source == FRESH
        ]
        return PosedModel(self.model.graph, tuple(fresh))

    def alone(self, at: int, answers: Sequence[ModelAnswer | None]) -> PosedModel | None:
        """Return one node, with the answers of the nodes that feed it.

        Args:
            at: position of the node.
            answers: those of the nodes before it; None or without outputs where one gave none.

        Returns:
            None if what feeds it gave no answer.

        """
        operands = []
        for source, fresh in zip(self.draft.nodes[at].sources, self.operands[at], strict=True):
            if source == FRESH:
                operands.append(fresh)
                continue
            answer = answers[source]
            if answer is None or not answer.outputs:
                return None
            operands.append(answer.outputs[0])
        return PosedModel(self.model.alone[at], tuple(operands))

    def results(self, answers: Sequence[ModelAnswer | None]) -> tuple[Values, ...] | None:
        """Return what the whole graph answers if each node answers as it does alone.

        None if one of them gave no answer.
        """
        read = {source for node in self.draft.nodes for source in node.sources}
        found: list[Values] = []
        for at, answer in enumerate(answers):
            if answer is None or not answer.outputs:
                return None
            found.extend(answer.outputs[1:] if at in read else answer.outputs)
        return tuple(found)


def posed(draft: Draft, given: Mapping[int, OperatorGraph]) -> PosedDraft:
    """Return a draft's models with values, which depend on nothing but the draft.

    Args:
        draft: the draft as it was drawn.
        given: the operators of the model that the user named, by their place in it.

    """
    model = drafted(draft, given)
    operands = map(_operands, draft.nodes, model.alone)
    return PosedDraft(draft, model, tuple(operands))


def _operands(node: DraftNode, graph: OperatorGraph) -> tuple[Values, ...]:
    rng = np.random.default_rng([node.constants_seed, _OPERANDS])
    specification = known_operators()[node.operator]
    rows = [specification.operands(graph, style, rng) for style in OPERAND_STYLES]
    return tuple(np.stack(values) for values in zip(*rows, strict=True))


_AGAIN: Final = 2
"""Models of one operator and type that are run again alone, of those that deviate in one round. It
takes a worker process each."""


@dataclass(frozen=True, slots=True)
class JudgedDraft:
    """A draft, and what was said of it.

    Attributes:
        draft: the draft as it was drawn.
        nodes: what was said of each operator; None where what feeds it gave no answer.
        whole: whether all of a draft of several operators answers as they do one after the other;
            None for a draft of one.

    """

    draft: Draft
    nodes: tuple[KernelJudgement | None, ...]
    whole: KernelJudgement | None = None

    @property
    def outcome(self) -> DraftOutcome:
        """What drawing has to know of it: what the device took."""
        nodes = tuple(None if node is None else node.verdict != "refused" for node in self.nodes)
        whole = all(nodes) if self.whole is None else self.whole.verdict != "refused"
        return DraftOutcome(nodes, whole)


def judge_drafts(
    drafts: Sequence[Draft], arms: Sequence[KernelArm], given: Mapping[int, OperatorGraph]
) -> list[JudgedDraft]:
    """Run drafts on all arms, and judge each of their operators.

    Args:
        drafts: drafts to run.
        arms: the device first, then the host's kernel sets.
        given: the operators of the model that the user named, by their place in it.

    """
    several = [posed(draft, given) for draft in drafts]
    answered: list[list[ModelAnswer | None]] = [[] for _ in several]
    said: list[list[KernelJudgement | None]] = [[] for _ in several]
    for at in range(max((len(draft.nodes) for draft in drafts), default=0)):
        _judge_place(at, several, answered, said, arms)
    whole = _judge_whole(several, answered, arms)
    return [
        JudgedDraft(posed_draft.draft, tuple(nodes), whole.get(number))
        for number, (posed_draft, nodes) in enumerate(zip(several, said, strict=True))
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
        number: posed_draft.alone(at, answered[number])
        for number, posed_draft in enumerate(several)
        if at < len(posed_draft.draft.nodes)
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
    """
    packed = judge_packed(nodes, models, arms)
    deviating = [at for at, (judgement, _) in enumerate(packed) if judgement.verdict == "device"]
    first = _first_of_each(deviating, nodes)
    found = judge_alone(nodes, models, packed, arms, first)
    depending = {nodes[at].cell for at in first if found[at][1][DEVICE].neighbours}
    others = [at for at in deviating if at not in first and nodes[at].cell in depending]
    shared = any(found[at][0].verdict == "shared" for at in first)
    found = judge_alone(nodes, models, found, arms if shared else arms[:1], others)
    found = judge_lost(nodes, models, found, arms)
    return [(judgement, answers[DEVICE]) for judgement, answers in found]


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
        for number, posed_draft in enumerate(several)
        if len(posed_draft.draft.nodes) > 1
        and (results := posed_draft.results(answered[number])) is not None
    }
    models = [several[number].whole for number in expected]
    judged = judge_wholes(models, list(expected.values()), arms)
    pairs = zip(expected, judged, strict=True)
    return {number: judgement for number, (judgement, _) in pairs if judgement is not None}


JudgedOperator = tuple[KernelJudgement, Mapping[str, ModelAnswer]]
"""What is said of a model, and each arm's answer by its name."""


def judge_packed(
    nodes: Sequence[DraftNode], models: Sequence[PosedModel], arms: Sequence[KernelArm]
) -> list[JudgedOperator]:
    """Run models of one operator each beside each other; what is said, and each arm's answer."""
    answers = run_padded(arms, models)
    return [
        (_judged(node, model, answer), answer)
        for node, model, answer in zip(nodes, models, answers, strict=True)
    ]


def judge_alone(
    nodes: Sequence[DraftNode],
    models: Sequence[PosedModel],
    packed: Sequence[JudgedOperator],
    arms: Sequence[KernelArm],
    places: Sequence[int],
) -> list[JudgedOperator]:
    """Run some models again each by itself, and return what is said of all of them then.

    Where a kernel reads outside of its tensors, its answer depends on what it finds there. What
    depends on neighbours on the device is tried alone on the host, too, where it may as well.

    Args:
        nodes: the operators.
        models: the model of each node, in the same order.
        packed: what was said of them beside each other.
        arms: the device first, then the host's kernel sets.
        places: positions of the models to run alone on the device.

    """
    found = _run_alone(nodes, models, packed, arms[0], places)
    depending = [at for at in places if found[at][0].symptom == "neighbours"]
    for host in arms[1:]:
        found = _run_alone(nodes, models, found, host, depending)
    return found


def judge_lost(
    nodes: Sequence[DraftNode],
    models: Sequence[PosedModel],
    packed: Sequence[JudgedOperator],
    arms: Sequence[KernelArm],
) -> list[JudgedOperator]:
    """Run on the twin alone what the device does not survive, and return what is said then.

    Beside other models the twin may survive by what lies in memory there.

    Args:
        nodes: the operators.
        models: the model of each node, in the same order.
        packed: what was said of them beside each other.
        arms: the device first, then the host's kernel sets, the twin's first.

    """
    lost = [
        at
        for at, (judgement, _) in enumerate(packed)
        if judgement.counted and judgement.verdict in LOST
    ]
    return _run_alone(nodes, models, packed, arms[1], lost)


def judge_again(
    nodes: Sequence[DraftNode], models: Sequence[PosedModel], arms: Sequence[KernelArm]
) -> list[JudgedOperator]:
    """Run a few models beside each other, and alone each that deviates; what is said, and answers.

    Args:
        nodes: the operators.
        models: the model of each node, in the same order.
        arms: the device first, then the host's kernel sets, the twin's first.

    """
    packed = judge_packed(nodes, models, arms)
    deviating = [at for at, (judgement, _) in enumerate(packed) if judgement.verdict == "device"]
    alone = judge_alone(nodes, models, packed, arms, deviating)
    return judge_lost(nodes, models, alone, arms)


def _run_alone(
    nodes: Sequence[DraftNode],
    models: Sequence[PosedModel],
    judged: Sequence[JudgedOperator],
    arm: KernelArm,
    places: Sequence[int],
) -> list[JudgedOperator]:
    """Return what is said of models, some of which are run alone on one arm."""
    found = list(judged)
    before = [found[at][1][arm.name] for at in places]
    alone = arm.run_alone([models[at] for at in places], before)
    for at, answer in zip(places, alone, strict=True):
        answers = {**found[at][1], arm.name: answer}
        found[at] = (_judged(nodes[at], models[at], answers), answers)
    return found


def _judged(
    node: DraftNode, model: PosedModel, answers: Mapping[str, ModelAnswer]
) -> KernelJudgement:
    specification = known_operators()[node.operator]
    return judged(specification, node.type, model.graph, model.operands, answers)
