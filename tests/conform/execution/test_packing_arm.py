"""Models in one file answer as they do alone, and what stops a file is found in it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import closing

import numpy as np
import pytest

from deadly_operators import deadly_launcher
from edgeflare.conform.execution.host_opener import HostOpener
from edgeflare.conform.execution.kernel_arm import ModelAnswer, PosedModel
from edgeflare.conform.execution.packing_arm import PackingArm, run_on_all
from edgeflare.conform.graphs.operator_graph import GraphValue, OperatorGraph
from edgeflare_protos.kernel_sets import TFLITE_KERNEL_SETS, Kernels
from posed_models import NO_ACTIVATION, ROWS, addition, mixed_models, of_constants, posed, unary

ArmOf = Callable[..., PackingArm]

MARKED = posed(unary("FLOOR"))


def unusual_models() -> list[PosedModel]:
    """Models whose tensors are few, empty, scalars, or of other types."""
    cast = OperatorGraph.of_operator(
        "CAST",
        [GraphValue("int64", (1, 3))],
        [GraphValue("float32", (1, 3))],
        {"inDataType": "INT64", "outDataType": "FLOAT32"},
    )
    graphs = [
        of_constants(),
        unary("ABS", ()),
        unary("NEG", (0, 3)),
        unary("LOGICAL_NOT", (1, 5), "bool"),
        cast,
        unary("ABS", (1, 1, 2)),
    ]
    return [posed(graph, at) for at, graph in enumerate(graphs)]


def failures(answers: Sequence[ModelAnswer]) -> dict[int, str]:
    return {at: one.failure.kind for at, one in enumerate(answers) if one.failure is not None}


@pytest.mark.slow
@pytest.mark.parametrize("kernels", TFLITE_KERNEL_SETS)
def test_models_answer_in_a_pack_as_they_do_alone(arm_of: ArmOf, kernels: Kernels) -> None:
    models = [*unusual_models(), *mixed_models(8)]
    arm = arm_of(kernels)
    packed = arm.run(models)
    assert arm.processes == 2  # what has no values is apart
    alone = arm.run_alone(models, packed)
    for model, one, other in zip(models, packed, alone, strict=True):
        assert not other.neighbours
        for values, same, at in zip(one.outputs, other.outputs, model.graph.outputs, strict=True):
            declared = model.graph.values[at]
            assert values.shape == (ROWS, *declared.shape)
            assert values.dtype == declared.dtype
            np.testing.assert_array_equal(values, same)
    negated = packed[2 + len(unusual_models()) + 1]
    np.testing.assert_array_equal(
        negated.outputs[0], -models[2 + len(unusual_models()) + 1].operands[0]
    )


@pytest.mark.slow
def test_the_outputs_are_those_of_the_model_whose_place_they_have(arm_of: ArmOf) -> None:
    models = [posed(unary("NEG", (1 + at % 3, 2)), at) for at in range(40)]
    for model, answer in zip(models, arm_of().run(models), strict=True):
        np.testing.assert_array_equal(answer.outputs[0], -model.operands[0])
        assert len(answer.outputs[0]) == ROWS


def refused_models() -> list[PosedModel]:
    shapes = OperatorGraph.of_operator(
        "ADD",
        [GraphValue("float32", (3,)), GraphValue("float32", (4,))],
        [GraphValue("float32", (4,))],
        NO_ACTIVATION,
    )
    return [posed(shapes), posed(addition(version=77)), posed(addition((2, 2), version=77))]


@pytest.mark.slow
@pytest.mark.parametrize("kernels", TFLITE_KERNEL_SETS)
def test_what_the_runtime_refuses_is_found(arm_of: ArmOf, kernels: Kernels) -> None:
    models = mixed_models(30)
    for at, one in zip((4, 11, 27), refused_models(), strict=True):
        models[at] = one
    arm = arm_of(kernels)
    answers = arm.run(models)
    assert failures(answers) == {4: "refused", 11: "refused", 27: "refused"}
    reason = answers[27].failure
    assert reason is not None
    assert "has no operator ADD version 77" in reason.detail
    assert all(answer.outputs for answer in answers if answer.failure is None)
    spent = arm.processes
    assert failures(arm.run(models[27:28])) == {0: "refused"}
    assert arm.processes == spent  # a version that is missing stays so


@pytest.mark.slow
def test_an_answer_that_is_an_error_is_found_by_the_message(arm_of: ArmOf) -> None:
    beyond = GraphValue("int32", ()).constant(np.array([7]))
    gather = OperatorGraph.of_operator(
        "GATHER", [GraphValue("float32", (3, 2)), beyond], [GraphValue("float32", (1, 2))], {}
    )
    models = mixed_models(40)
    models[21] = posed(gather)
    arm = arm_of()
    answers = arm.run(models)
    assert failures(answers) == {21: "error"}
    assert answers[21].failure is not None
    assert "GATHER" in answers[21].failure.detail
    assert arm.processes == 3


@pytest.mark.slow
def test_a_result_of_another_shape_is_that_of_its_model(arm_of: ArmOf) -> None:
    wrong = OperatorGraph.of_operator(
        "ABS", [GraphValue("float32", (3,))], [GraphValue("float32", (4,))]
    )
    models = mixed_models(5)
    models[3] = posed(wrong)
    answers = arm_of().run(models)
    assert failures(answers) == {3: "misshapen"}
    assert answers[3].failure is not None
    assert "(3,), and should be float32 (4,)" in answers[3].failure.detail


@pytest.mark.slow
@pytest.mark.parametrize(
    ("effect", "kind", "detail"),
    [
        ("crash", "crash", "SIGSEGV"),
        ("crash loading", "crash", "on loading: SIGFPE"),
        ("error", "error", "not in the mood"),
    ],
)
def test_what_stops_a_pack_is_found(arm_of: ArmOf, effect: str, kind: str, detail: str) -> None:
    models = mixed_models(30)
    models[9] = models[20] = MARKED
    arm = arm_of(FLOOR=effect)
    answers = arm.run(models)
    assert failures(answers) == {9: kind, 20: kind}
    assert all(one.failure is None or detail in one.failure.detail for one in answers)
    # Alone thereafter, since such operators failed before.
    spent = arm.processes
    arm.run([*mixed_models(30), MARKED])
    assert arm.processes == spent + 2


@pytest.mark.slow
def test_what_hangs_has_all_its_time_alone() -> None:
    opener = HostOpener("builtin", deadly_launcher({"FLOOR": "hang"}), input_seconds=2.5)
    with closing(PackingArm(opener)) as arm:
        answers = arm.run([*mixed_models(5), MARKED, *mixed_models(2)])
    assert failures(answers) == {5: "hang"}
    assert answers[5].failure is not None
    assert answers[5].failure.detail == "no answer within 2.5 s"


@pytest.mark.slow
def test_an_answer_that_depends_on_neighbours_is_that_alone(arm_of: ArmOf) -> None:
    arm = arm_of(FLOOR="read beside")
    models = [*mixed_models(4), MARKED]
    packed = arm.run(models)
    assert np.array_equal(packed[4].outputs[0], np.floor(MARKED.operands[0]) + 1)
    alone = arm.run_alone(models[3:], packed[3:])
    assert [one.neighbours for one in alone] == [False, True]
    np.testing.assert_array_equal(alone[1].outputs[0], np.floor(MARKED.operands[0]))


@pytest.mark.slow
def test_a_model_whose_values_another_one_overwrote_depends_on_nobody(arm_of: ArmOf) -> None:
    arm = arm_of(FLOOR="write beside")
    victim = posed(unary("ABS", (4, 4)))
    models = [*mixed_models(6), MARKED, victim]
    packed = arm.run(models)
    assert np.array_equal(packed[7].outputs[0], np.abs(victim.operands[0]) + 1)
    (alone,) = arm.run_alone([victim], [packed[7]])
    assert not alone.neighbours
    np.testing.assert_array_equal(alone.outputs[0], np.abs(victim.operands[0]))


@pytest.mark.slow
def test_all_arms_run_the_same_models(arm_of: ArmOf) -> None:
    models = mixed_models(12)
    arms = [arm_of(kernels) for kernels in TFLITE_KERNEL_SETS]
    answers = run_on_all(arms, models)
    assert list(answers) == list(TFLITE_KERNEL_SETS)
    assert all(not failures(one) and len(one) == 12 for one in answers.values())
