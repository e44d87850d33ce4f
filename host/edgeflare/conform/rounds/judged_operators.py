"""Models of one operator each, run by all arms and judged: beside each other, and alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from edgeflare.conform.drafts.draft import DraftNode
from edgeflare.conform.execution.kernel_arm import KernelArm, ModelAnswer, PosedModel
from edgeflare.conform.execution.packing_arm import run_padded
from edgeflare.conform.operators.known_operators import known_operators
from edgeflare.conform.verdict.judging import judged
from edgeflare.conform.verdict.kernel_judgement import LOST, KernelJudgement

JudgedOperator = tuple[KernelJudgement, Mapping[str, ModelAnswer]]
"""What is said of a model, and each arm's answer by its name."""


def judge_packed(
    nodes: Sequence[DraftNode], models: Sequence[PosedModel], arms: Sequence[KernelArm]
) -> list[JudgedOperator]:
    """Run models of one operator each beside each other; what is said, and each arm's answer.

    Raises:
        InfrastructureError: an arm is lost.

    """
    answers = run_padded(arms, models)
    return [
        (_judged(node, model, one), one)
        for node, model, one in zip(nodes, models, answers, strict=True)
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
        models: of them.
        packed: what was said of them beside each other.
        arms: the device first, then the host's kernel sets.
        places: of the models to run alone on the device.

    Raises:
        InfrastructureError: an arm is lost.

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
        models: of them.
        packed: what was said of them beside each other.
        arms: the device first, then the host's kernel sets, the twin's first.

    Raises:
        InfrastructureError: the twin is lost.

    """
    lost = [at for at, (one, _) in enumerate(packed) if one.counted and one.verdict in LOST]
    return _run_alone(nodes, models, packed, arms[1], lost)


def judge_again(
    nodes: Sequence[DraftNode], models: Sequence[PosedModel], arms: Sequence[KernelArm]
) -> list[JudgedOperator]:
    """Run a few models beside each other, and alone each that deviates; what is said, and answers.

    Args:
        nodes: the operators.
        models: of them.
        arms: the device first, then the host's kernel sets, the twin's first.

    Raises:
        InfrastructureError: an arm is lost.

    """
    packed = judge_packed(nodes, models, arms)
    deviating = [at for at, (one, _) in enumerate(packed) if one.verdict == "device"]
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
