"""Models in one file answer as they do alone, and what stops a file is found in it."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from deadly_operators import deadly_launcher
from edgeflare.conform.execution.device_opener import DeviceOpener
from edgeflare.conform.execution.host_opener import HostOpener
from edgeflare.conform.execution.kernel_arm import ModelAnswer, PosedModel, RunFailure
from edgeflare.conform.execution.model_pack import ModelPack
from edgeflare.conform.execution.pack_runner import MOST_LOSSES, PackRunner
from edgeflare.conform.execution.packing_arm import PackingArm
from edgeflare.conform.graphs.operator_graph import GraphValue, OperatorGraph
from edgeflare.devices.connection import DeviceLost
from edgeflare.devices.device import Device, connect
from edgeflare.devices.profile_lookup import find_shipped_profile
from edgeflare.errors import InfrastructureError
from edgeflare.models.evaluator import Evaluator
from edgeflare_protos.kernel_sets import TFLITE_KERNEL_SETS, Kernels
from posed_models import NO_ACTIVATION, ROWS, addition, mixed_models, of_constants, posed, unary
from processes import children
from wrapped_evaluators import WrappedEvaluator

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


PACK = ModelPack(mixed_models(8))


class LostPlace:
    """The host's built-ins as a device that is lost on some loads, and on batches of the first."""

    name = "device"
    payload_limit_bytes = 1 << 20
    input_seconds = 10.0

    def __init__(self, loads: Collection[int] = (), batches: Collection[int] = ()) -> None:
        self._inner, self._loads, self._batches = HostOpener("builtin"), loads, batches
        self.log: list[str] = []

    def open(self, path: Path) -> Evaluator:
        self.log.append("open")
        number = self.log.count("open")
        if number in self._loads:
            raise DeviceLost("pulled the plug")
        return WrappedEvaluator(self._inner.open(path), self._batches if number == 1 else ())

    def recover(self) -> None:
        self.log.append("recover")


@pytest.fixture
def emulated() -> Iterator[Device]:
    with connect(find_shipped_profile("emulated-builtin")) as device:
        yield device


@pytest.mark.slow
@pytest.mark.parametrize("place", [LostPlace(loads=(1, 2)), LostPlace(batches=(2,))])
def test_a_pack_is_run_again_on_a_device_that_came_back(place: LostPlace) -> None:
    with closing(PackRunner(place)) as runner, closing(PackRunner(HostOpener("builtin"))) as host:
        answers, expected = runner.run(PACK, 10.0), host.run(PACK, 10.0)
    assert not isinstance(answers, RunFailure)
    assert not isinstance(expected, RunFailure)
    for answer, other in zip(answers, expected, strict=True):
        np.testing.assert_array_equal(answer.outputs[0], other.outputs[0])
    assert place.log in (
        ["open", "recover", "open", "recover", "open"],
        ["open", "recover", "open"],
    )


def test_a_pack_that_always_loses_the_device_is_given_up() -> None:
    place = LostPlace(loads=range(100))
    with closing(PackRunner(place)) as runner, pytest.raises(InfrastructureError, match="in a row"):
        runner.run(PACK, 10.0)
    assert place.log.count("recover") == MOST_LOSSES


@pytest.mark.slow
def test_an_agent_that_was_killed_costs_no_answer(emulated: Device) -> None:
    models = mixed_models(12)
    with closing(PackingArm(DeviceOpener(emulated))) as arm:
        before = arm.run(models)
        for pid in children(os.getpid()):
            if "edgeflare_agent" in Path(f"/proc/{pid}/cmdline").read_text():
                os.kill(pid, signal.SIGKILL)
        after = arm.run(models)
    for answer, other in zip(before, after, strict=True):
        np.testing.assert_array_equal(answer.outputs[0], other.outputs[0])


@pytest.mark.slow
def test_a_device_refuses_in_the_words_of_its_runtime(emulated: Device) -> None:
    models = [*mixed_models(3), posed(unary("LOGICAL_NOT"))]
    with closing(PackingArm(DeviceOpener(emulated))) as arm:
        answers = arm.run(models)
    failure = answers[3].failure
    assert failure is not None
    assert failure.kind == "refused"
    assert failure.detail.startswith("ai-edge-litert")
    assert [one.failure for one in answers[:3]] == [None] * 3
