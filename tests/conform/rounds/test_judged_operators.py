"""Models of one operator each, judged by what arms answer beside each other and alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import pytest

from conforming import CLAMPED, an_addition, faulty_arms
from edgeflare.conform.drafts.draft import Draft
from edgeflare.conform.execution.kernel_arm import ModelAnswer, PosedModel, RunFailure
from edgeflare.conform.rounds.judged_operators import (
    JudgedOperator,
    judge_alone,
    judge_lost,
    judge_packed,
)
from edgeflare.conform.rounds.posed_draft import posed
from exact_arm import ExactArm, PlantedFault

NODES = [an_addition(), an_addition(activation="RELU6"), an_addition()]
MODELS = [posed(Draft((node,)), {}).whole for node in NODES]
DIES = PlantedFault("ADD", lambda one: one["activation"] == "RELU6", failure="crash")
DEAD = ModelAnswer(failure=RunFailure("crash", "planted, alone"))


@dataclass
class ArmAlone(ExactArm):
    """An arm that answers exactly beside others, and otherwise alone."""

    otherwise: ModelAnswer | None = None
    depends: bool = False
    asked: list[PosedModel] = field(default_factory=list)

    def run_alone(
        self, models: Sequence[PosedModel], packed: Sequence[ModelAnswer]
    ) -> list[ModelAnswer]:
        self.asked += models
        if self.otherwise is not None:
            return [self.otherwise for _ in models]
        answers = super().run_alone(models, packed)
        return [replace(one, neighbours=self.depends) for one in answers]


def _judged(device: ExactArm, *hosts: ExactArm) -> list[JudgedOperator]:
    arms = (device, *hosts)
    packed = judge_packed(NODES, MODELS, arms)
    deviating = [at for at, (one, _) in enumerate(packed) if one.verdict == "device"]
    alone = judge_alone(NODES, MODELS, packed, arms, deviating)
    return judge_lost(NODES, MODELS, alone, arms)


def test_models_of_other_numbers_of_rows_are_run_beside_each_other() -> None:
    fewer = tuple(values[:1] for values in MODELS[1].operands)
    models = [MODELS[0], replace(MODELS[1], operands=fewer), MODELS[2]]
    # `ExactArm.run` refuses models of unequal rows, as a file of many models does.
    judged = judge_packed(NODES, models, faulty_arms(CLAMPED))
    assert [one.verdict for one, _ in judged] == ["right", "device", "right"]
    assert [len(answers["device"].outputs[0]) for _, answers in judged] == [4, 1, 4]
    assert judge_packed([], [], faulty_arms()) == []


@pytest.mark.parametrize(("otherwise", "counted"), [(None, True), (DEAD, False)])
def test_a_crash_counts_where_the_twin_survives_alone_too(
    otherwise: ModelAnswer | None, counted: bool
) -> None:
    twin = ArmAlone("xnnpack", otherwise=otherwise)
    verdicts = [one for one, _ in _judged(ExactArm(faults=[DIES]), twin, ExactArm("builtin"))]
    assert [one.verdict for one in verdicts] == ["right", "crash", "right"]
    assert verdicts[1].counted == counted
    assert verdicts[1].wrong == (("device",) if counted else ("device", "xnnpack"))
    assert twin.asked == [MODELS[1]]


@pytest.mark.parametrize("depends", [False, True])
def test_what_depends_on_neighbours_counts_where_the_hosts_do_not(depends: bool) -> None:
    (right,) = ExactArm().run([MODELS[1]])
    device = ArmAlone(faults=[CLAMPED], otherwise=replace(right, neighbours=True))
    hosts = ArmAlone("xnnpack", depends=depends), ArmAlone("builtin")
    verdicts = [one for one, _ in _judged(device, *hosts)]
    assert [one.symptom for one in verdicts] == ["", "neighbours", ""]
    assert verdicts[1].counted == (not depends)
    assert verdicts[1].verdict == ("shared" if depends else "device")
    assert [one.asked for one in (device, *hosts)] == [[MODELS[1]]] * 3


@pytest.mark.parametrize("depends", [False, True])
def test_what_is_wrong_alone_is_wrong_whatever_it_depends_on(depends: bool) -> None:
    device, twin = ArmAlone(faults=[CLAMPED], depends=depends), ArmAlone("xnnpack")
    verdicts = [one for one, _ in _judged(device, twin)]
    assert [one.symptom for one in verdicts] == ["", "wrong values", ""]
    assert device.asked == [MODELS[1]]
    assert twin.asked == []
