"""An input that is several invocations of an interpreter, in other shapes and by signatures."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from edgeflare.conform.graph_file import graph_file
from edgeflare_agent.runtime import Invocation, IsolatedModel, ModelRejected, Options, Step
from edgeflare_protos.kernel_sets import KERNEL_SETS, TFLITE_KERNEL_SETS, Kernels
from posed_models import unary

SIZES = (1, 4, 1, 2)


@pytest.fixture(autouse=True)
def driver(request: pytest.FixtureRequest) -> None:
    """Have the driver in software where a test is of the GPU."""
    if request.node.get_closest_marker("gpu") is not None:
        request.getfixturevalue("gpu")


RESIZED = Invocation(steps=tuple(Step(shapes={"x": (rows, 3)}) for rows in SIZES))
IN_TURN = Invocation(steps=tuple(map(Step, ("negate", "double", "negate", "double"))))


def _run(
    path: Path, invocation: Invocation, kernels: Kernels, inputs: NDArray[np.float32]
) -> bytes:
    with IsolatedModel.open(path, Options(kernels, warmup=1, invocation=invocation)) as model:
        batch = model.run(inputs.tobytes(), len(inputs))
    assert batch.failures == ()
    return batch.outputs


STEPPED = [
    *(pytest.param(kernels) for kernels in (*TFLITE_KERNEL_SETS, "compiled-cpu")),
    pytest.param("gpu", marks=pytest.mark.gpu),
]


@pytest.mark.parametrize("kernels", TFLITE_KERNEL_SETS)
def test_each_step_answers_as_a_model_opened_in_its_shapes(
    kernels: Kernels, dynamic_model: Path
) -> None:
    inputs = np.random.default_rng(1).normal(size=(3, 3 * sum(SIZES))).astype(np.float32)
    right = b""
    for row in inputs:
        for rows, part in zip(SIZES, np.split(row, np.cumsum(SIZES)[:-1] * 3), strict=True):
            alone = Invocation(shapes={"x": (rows, 3)})
            right += _run(dynamic_model, alone, kernels, part[np.newaxis])
    assert _run(dynamic_model, RESIZED, kernels, inputs) == right


@pytest.mark.parametrize("kernels", STEPPED[len(TFLITE_KERNEL_SETS) :])
def test_a_compiled_model_is_resized_between_steps(kernels: Kernels, tmp_path: Path) -> None:
    path = tmp_path / "model.tflite"
    path.write_bytes(graph_file(unary("EXP", (1, 3)), unary("EXP", (4, 3))))
    steps = Invocation(steps=tuple(Step(shapes={"t0": (rows, 3)}) for rows in SIZES))
    inputs = np.random.default_rng(3).normal(size=(2, 3 * sum(SIZES))).astype(np.float32)
    answered = np.frombuffer(_run(path, steps, kernels, inputs), np.float32)
    np.testing.assert_allclose(answered, np.exp(inputs).ravel(), rtol=1e-6)


def test_the_tensors_are_those_of_all_steps(dynamic_model: Path) -> None:
    with IsolatedModel.open(dynamic_model, Options("builtin", invocation=RESIZED)) as model:
        assert [spec.shape for spec in model.inputs] == [(rows, 3) for rows in SIZES]
        assert [spec.shape for spec in model.outputs] == [(rows, 3) for rows in SIZES for _ in "yz"]


@pytest.mark.parametrize("kernels", STEPPED)
def test_signatures_take_turns(kernels: Kernels, two_signature_model: Path) -> None:
    inputs = np.random.default_rng(2).normal(size=(3, 10)).astype(np.float32)
    factors = np.array([-1, -1, 2, 2, 2] * 2, np.float32)
    assert _run(two_signature_model, IN_TURN, kernels, inputs) == (factors * inputs).tobytes()


def test_what_a_variable_has_is_kept_from_step_to_step_and_no_further(resource_model: Path) -> None:
    steps = Invocation(steps=(Step(),) * 3)
    totals = _run(resource_model, steps, "builtin", np.ones((2, 3), np.float32))
    assert np.frombuffer(totals, np.float32).tolist() == [1, 2, 3, 1, 2, 3]


def test_kernels_without_steps_say_so(two_signature_model: Path) -> None:
    assert {name for name, known in KERNEL_SETS.items() if not known.steps} == {"micro", "npu"}
    with pytest.raises(ModelRejected, match="leave the steps out, or take kernels of TFLite's"):
        IsolatedModel.open(two_signature_model, Options("micro", invocation=IN_TURN))


@pytest.mark.parametrize(
    ("step", "words"),
    [
        (Step(shapes={"x": (2, 4)}), "only dimensions of -1 can be given a size"),
        (Step(shapes={"z": (2, 3)}), "there is no input 'z': its inputs are x"),
        (Step("double"), "there is no signature 'double': it has no signatures"),
        (Step(outputs={"w": (1, 3)}), "there is no output 'w': its outputs are doubled, sevens"),
    ],
)
def test_a_step_that_does_not_fit_is_refused(step: Step, words: str, dynamic_model: Path) -> None:
    options = Options("builtin", invocation=Invocation(steps=(Step(), step)))
    with pytest.raises(ModelRejected, match=words) as refused:
        IsolatedModel.open(dynamic_model, options)
    assert "\n" not in str(refused.value)


def test_shapes_of_outputs_are_those_that_are_told_and_held_to_that(dynamic_model: Path) -> None:
    told = {"doubled": (2, 3), "sevens": (4, 3)}
    steps = (Step(shapes={"x": (2, 3)}, outputs=told),)
    with IsolatedModel.open(
        dynamic_model, Options("builtin", invocation=Invocation(steps=steps))
    ) as model:
        assert [spec.shape for spec in model.outputs] == [(2, 3), (4, 3)]
        (failure,) = model.run(bytes(24), 1).failures
    assert failure.detail == "output sevens has shape (2, 3), declared (4, 3)"


def test_steps_are_not_captured(dynamic_model: Path) -> None:
    options = Options("builtin", capture=True, invocation=RESIZED)
    with pytest.raises(ModelRejected, match="several steps cannot be captured"):
        IsolatedModel.open(dynamic_model, options)
