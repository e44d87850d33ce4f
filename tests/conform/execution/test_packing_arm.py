"""Models in one file answer as they do alone, and what stops a file, or corrupts it, is found."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import ExitStack, closing
from pathlib import Path
from typing import cast

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from deadly_operators import deadly_launcher
from edgeflare.conform.execution.culprit_search import MOST_TRIALS, Blame, CulpritSearch, blamed
from edgeflare.conform.execution.failure_history import FailureHistory
from edgeflare.conform.execution.kernel_arm import ModelAnswer, PosedModel, RunFailure
from edgeflare.conform.execution.model_opener import DeviceOpener, HostOpener
from edgeflare.conform.execution.model_pack import ModelPack, PackLimits
from edgeflare.conform.execution.pack_runner import MOST_LOSSES, PackRunner
from edgeflare.conform.execution.packing_arm import PackingArm
from edgeflare.conform.operator_graph import GraphValue, OperatorGraph
from edgeflare.devices.connection import DeviceLost
from edgeflare.devices.device import Device, connect
from edgeflare.devices.profile_lookup import find_shipped_profile
from edgeflare.errors import InfrastructureError
from edgeflare.models.evaluator import Evaluator, Step
from edgeflare_protos.kernel_sets import TFLITE_KERNEL_SETS, Kernels
from posed_models import NO_ACTIVATION, ROWS, addition, mixed_models, of_constants, posed, unary
from processes import agents, kill
from wrapped_evaluators import WrappedEvaluator

ArmOf = Callable[..., PackingArm]


@pytest.fixture
def arm_of() -> Iterator[ArmOf]:
    """Return a function that makes an arm of the host, which the test's end closes."""
    with ExitStack() as stack:

        def made(kernels: Kernels = "builtin", **effects: str) -> PackingArm:
            launcher = deadly_launcher(effects) if effects else None
            return stack.enter_context(closing(PackingArm(HostOpener(kernels, launcher))))

        yield made


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

    takes_steps = False

    def open(self, path: Path, steps: Sequence[Step] = ()) -> Evaluator:
        del steps
        self.log.append("open")
        number = self.log.count("open")
        if number in self._loads:
            raise DeviceLost("pulled the plug")
        return WrappedEvaluator(self._inner.open(path), self._batches if number == 1 else ())

    def on_other_threads(self) -> None:
        return None

    def for_clips(self, frames: int) -> LostPlace:
        raise NotImplementedError

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
@pytest.mark.usefixtures("own_agents")
def test_an_agent_that_was_killed_costs_no_answer(emulated: Device) -> None:
    models = mixed_models(12)
    with closing(PackingArm(DeviceOpener(emulated))) as arm:
        before = arm.run(models)
        kill(agents(os.getpid()))
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


@st.composite
def corruptions(draw: st.DrawFn) -> tuple[int, int, set[int]]:
    """Draw the number of models, the one that corrupts, and which of others that kills."""
    count = draw(st.integers(8, 200))
    guilty = draw(st.integers(0, count - 2))
    kills = {draw(st.integers(guilty + 1, count - 1)), draw(st.integers(0, count - 1))}
    return count, guilty, kills - {guilty}


@given(corruptions())
def test_the_model_that_corrupts_is_blamed_whoever_dies_of_it(
    corruption: tuple[int, int, set[int]],
) -> None:
    count, guilty, kills = corruption
    trials = 0

    def dies(models: Sequence[int]) -> bool:
        nonlocal trials
        trials += 1
        return guilty in models and bool(kills & set(models[models.index(guilty) :]))

    blame = blamed(range(count), range(count), dies)
    assert blame is not None
    assert blame.place == guilty
    assert blame.corrupts
    assert set(blame.others) <= kills
    # A second one that dies is needed for a proof.
    assert blame.certain == bool(kills - set(blame.others))
    assert trials <= MOST_TRIALS / 2


@given(st.integers(3, 200), st.data())
def test_what_dies_itself_behind_others_corrupts_nothing(count: int, data: st.DataObject) -> None:
    victim = data.draw(st.integers(1, count - 1))

    def dies(models: Sequence[int]) -> bool:
        return victim in models[1:]

    blame = blamed(range(count), range(count), dies)
    assert blame is not None
    assert (blame.place, blame.corrupts, blame.certain) == (victim, False, True)


@given(st.sets(st.integers(0, 99), min_size=3, max_size=4))
def test_models_that_die_only_all_together_are_found(least: set[int]) -> None:
    blame = blamed(range(100), range(100), least.issubset)
    assert blame == Blame(min(least), tuple(sorted(least)[1:]), corrupts=True, certain=False)


def test_nobody_is_blamed_for_what_does_not_happen_again() -> None:
    assert blamed(range(20), range(20), lambda _: False) is None


class ForgetfulRunner:
    """Runs a model alone once; it dies ever after, as one may that reads what nothing wrote."""

    processes = 0

    def __init__(self) -> None:
        self._lived: list[PosedModel] = []

    def run(self, pack: ModelPack, _seconds: float) -> tuple[ModelAnswer, ...] | RunFailure:
        (first, *others) = pack.models
        if others or any(first is model for model in self._lived):
            return RunFailure("crash", "SIGSEGV")
        self._lived.append(first)
        return (ModelAnswer(first.operands),)


def test_of_models_each_of_which_dies_alone_in_the_end_all_are_answered_for() -> None:
    runner = cast("PackRunner", ForgetfulRunner())
    search = CulpritSearch(runner, FailureHistory(), mixed_models(2), PackLimits(), 1.0)
    beside, alone = (answer.failure for answer in search.answers())
    assert beside is not None
    assert beside.detail == "dies beside other models, and not alone (SIGSEGV)"
    assert alone == RunFailure("crash", "SIGSEGV")


def test_a_search_that_does_not_end_is_given_up() -> None:
    asked: list[Sequence[int]] = []

    def dies(models: Sequence[int]) -> bool:
        asked.append(models)
        return len(models) > 150

    assert blamed(range(200), range(200), dies) is None
    assert len(asked) == MOST_TRIALS


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_memory_that_is_overwritten_is_traced_to_the_model_that_does_it(
    arm_of: ArmOf, seed: int
) -> None:
    """The worker dies in the next model, or in the next of some operator."""
    rng = np.random.default_rng(seed)
    models = mixed_models(20, seed)
    at = int(rng.integers(0, 15))
    models[at] = MARKED
    victim = ("", " CONV_2D", " NEG")[seed]
    arm = arm_of(FLOOR=f"overwrite{victim}")
    answers = arm.run(models)
    assert [place for place, one in enumerate(answers) if one.corrupts] == [at]
    assert [place for place, one in enumerate(answers) if one.failure] == [at]
    failure = answers[at].failure
    assert failure is not None
    assert (failure.kind, failure.detail) == (
        "crash",
        "models that run after it in the same process die (SIGSEGV)",
    )
    (alone,) = arm.run_alone([MARKED], [answers[at]])
    assert alone.corrupts


@pytest.mark.slow
def test_what_is_like_a_model_that_corrupts_is_tried_with_witnesses(arm_of: ArmOf) -> None:
    arm = arm_of(FLOOR="overwrite", CEIL="crash")
    models = [*mixed_models(8), MARKED, *mixed_models(3)]
    assert arm.run(models)[8].corrupts
    # Also where nothing runs after it that it could kill, as when it is made smaller.
    spent = arm.processes
    answers = arm.run([posed(unary("FLOOR", (1,))), posed(unary("CEIL"))])
    assert [one.corrupts for one in answers] == [True, False]
    assert arm.processes == spent + 3


@pytest.mark.slow
def test_a_model_that_dies_beside_others_is_told_from_one_that_kills(arm_of: ArmOf) -> None:
    models = mixed_models(24)
    models[13] = MARKED
    answers = arm_of(FLOOR="crash beside").run(models)
    assert [place for place, one in enumerate(answers) if one.failure] == [13]
    assert (answers[13].corrupts, answers[13].neighbours) == (False, True)


@pytest.mark.slow
def test_on_a_device_too(monkeypatch: pytest.MonkeyPatch) -> None:
    launcher = " ".join(f"'{part}'" for part in deadly_launcher({"FLOOR": "overwrite"}))
    monkeypatch.setenv("EDGEFLARE_AGENT_LAUNCHER", launcher)
    models = mixed_models(24)
    models[7] = MARKED
    with (
        connect(find_shipped_profile("emulated-builtin")) as device,
        closing(PackingArm(DeviceOpener(device))) as arm,
    ):
        answers = arm.run(models)
    assert [place for place, one in enumerate(answers) if one.failure or one.corrupts] == [7]
