"""Models of one operator each, run by all arms and judged: beside each other, and alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from edgeflare.conform.drafts.draft import DraftNode
from edgeflare.conform.execution.kernel_arm import KernelArm, ModelAnswer, PosedModel
from edgeflare.conform.execution.packing_arm import run_on_all
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
    found = _again(nodes, models, packed, arms[0], places)
    depending = [at for at in places if found[at][0].symptom == "neighbours"]
    for host in arms[1:]:
        found = _again(nodes, models, found, host, depending)
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
    return _again(nodes, models, packed, arms[1], lost)


def _again(
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
