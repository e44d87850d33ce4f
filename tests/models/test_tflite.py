"""The host's runner: its answers, its signature, what it refuses, and what the host is."""

from __future__ import annotations

import itertools
import os
import platform
import signal
from collections.abc import Callable
from contextlib import closing
from importlib.metadata import version
from pathlib import Path

import numpy as np
import pytest
from ai_edge_litert import schema_py_generated as schema

from edgeflare.core.tensor import dequantize, pack_rows, quantize, unpack_rows
from edgeflare.models.evaluator import ONCE, Invocation
from edgeflare.models.original import invocation_of
from edgeflare.models.run_host import describe_host
from edgeflare.models.tflite import open_tflite
from edgeflare_protos.kernel_sets import Kernels
from flattening import FlatteningModel
from graph_writer import GraphWriter, write_state_model
from processes import workers
from tampering import COMPRESSED, InterpreterProbe, run

Refusal = Callable[..., str]

KERNELS: tuple[Kernels, ...] = ("xnnpack", "builtin", "reference")
WEIGHTS = np.random.default_rng(5).normal(size=(3, 16)).astype(np.float32)
STATE = Invocation(state={"state": "next"}, frames=5)


def write_dense(path: Path, version: int = 1) -> Path:
    """Write a fully connected layer of three classes over images of (4, 4, 1)."""
    graph = GraphWriter()
    image, y = graph.tensor("x", (1, 4, 4, 1), "FLOAT32"), graph.tensor("y", (1, 3), "FLOAT32")
    inputs = [image, graph.constant("weights", WEIGHTS), -1]
    graph.operator("FULLY_CONNECTED", inputs, [y], schema.FullyConnectedOptionsT(), version)
    return graph.save(path, [image], [y])


@pytest.fixture
def dense(tmp_path: Path) -> Path:
    return write_dense(tmp_path / "dense.tflite")


@pytest.mark.parametrize("kernels", KERNELS)
def test_answers_what_the_formula_says(dense: Path, kernels: Kernels) -> None:
    images = np.random.default_rng(0).normal(size=(5, 4, 4, 1)).astype(np.float32)
    with closing(open_tflite(dense, kernels)) as model:
        batch = model.submit(images).result()
    expected = images.reshape(5, 16) @ WEIGHTS.T
    np.testing.assert_allclose(batch.outputs.astype(np.float32), expected, rtol=1e-4)
    assert batch.outputs.dtype == np.float32
    assert not batch.failures


def test_a_quantized_model_answers_as_a_direct_interpreter_does() -> None:
    images = np.random.default_rng(0).integers(-128, 128, (4, 28, 28, 1)).astype(np.int8)
    with closing(open_tflite(COMPRESSED, "xnnpack", threads=1)) as model:
        assert model.signature.input.dtype == model.signature.output.dtype == "int8"
        assert model.signature.output.scale == 1 / 256
        outputs = model.submit(images).result().outputs
    direct = [run(COMPRESSED.read_bytes(), [image[None]])[0][0].tolist() for image in images]
    assert outputs.tolist() == direct


def test_batches_are_answered_in_the_order_of_their_submission(dense: Path) -> None:
    with closing(open_tflite(dense)) as model:
        batches = [np.full((n, 4, 4, 1), n, np.float32) for n in range(5)]
        answers = [future.result().outputs for future in map(model.submit, batches)]
        assert [len(answer) for answer in answers] == [0, 1, 2, 3, 4]
        np.testing.assert_allclose(answers[4][0], 4 * answers[1][0], rtol=1e-5)
        assert model.operators == ("FULLY_CONNECTED",)
        model.close()


@pytest.mark.parametrize("dtype", ["BOOL", "INT64", "UINT16", "FLOAT16", "COMPLEX64", "BFLOAT16"])
def test_a_tensor_of_any_type_may_lie_inside(dtype: str, tmp_path: Path) -> None:
    with closing(open_tflite(write_casts(tmp_path, dtype), "builtin")) as model:
        assert model.operators == ("CAST", "CAST")
        answer = model.submit(np.array([[0, 1, 1]], np.float32)).result()
    assert not answer.failures
    assert answer.outputs.tolist() == [[0, 1, 1]]


@pytest.mark.parametrize("dtype", ["STRING", "RESOURCE", "VARIANT", "BFLOAT16", "COMPLEX64"])
def test_what_cannot_be_given_or_compared_is_named_with_its_type_and_operator(
    dtype: str, tmp_path: Path, refusal: Refusal
) -> None:
    for end, at, role in (("x", 0, "an input"), ("y", 1, "an output")):
        path = write_casts(tmp_path, dtype, end)
        if (dtype, end) == ("COMPLEX64", "y"):  # which a task need not read
            open_tflite(path, "builtin").close()
            continue
        said = refusal(open_tflite, path)
        assert f"tensor '{end}' of CAST (operator {at}), {dtype.lower()}, is {role}" in said


def write_casts(folder: Path, dtype: str, end: str = "between") -> Path:
    """Write x → between → y, float32 (1, 3) but for one of them."""
    graph = GraphWriter()
    types = {name: dtype if name == end else "FLOAT32" for name in ("x", "between", "y")}
    tensors = [graph.tensor(name, (1, 3), kind) for name, kind in types.items()]
    numbers = [getattr(schema.TensorType, kind) for kind in types.values()]
    for given, made in itertools.pairwise(range(3)):
        options = schema.CastOptionsT(numbers[given], numbers[made])
        graph.operator("CAST", [tensors[given]], [tensors[made]], options)
    return graph.save(folder / f"{end}.tflite", tensors[:1], tensors[2:])


def test_refuses_files_that_are_no_models(dense: Path, refusal: Refusal, tmp_path: Path) -> None:
    whole = dense.read_bytes()
    for content in (b"", b"this is not a model", whole[: len(whole) // 2]):
        dense.write_bytes(content)
        assert dense.name in refusal(open_tflite, dense)
    assert str(tmp_path) in refusal(open_tflite, tmp_path)


def write_dynamic(path: Path, *declared: int) -> Path:
    model = FlatteningModel(tuple(abs(size) for size in declared))
    made = model.logistic(model.x)
    model.declare(list(declared), model.x, made)
    return model.save(path, [model.x], [made])


@pytest.mark.parametrize(
    ("declared", "fixed"),
    [
        ((-1, -1, -1, 3), 'shapes = {"x" = [1, …, …, 3]}'),
        ((1, -1), 'shapes = {"x" = [1, …]}'),
        ((-1,), 'shapes = {"x" = […]}'),
    ],
)
def test_a_size_that_the_file_leaves_open_has_to_be_said(
    declared: tuple[int, ...], fixed: str, refusal: Refusal, tmp_path: Path
) -> None:
    path = write_dynamic(tmp_path / "dynamic.tflite", *declared)
    assert refusal(open_tflite, path).endswith(fixed)
    shape = tuple(4 if size == -1 else size for size in declared)
    with closing(open_tflite(path, invocation=Invocation(shapes={"x": shape}))) as model:
        assert model.signature.input.shape == shape


def test_a_dynamic_batch_is_one_input(tmp_path: Path) -> None:
    with closing(open_tflite(write_dynamic(tmp_path / "batch.tflite", -1, 5))) as model:
        assert model.signature.input.shape == (1, 5)


def test_an_operator_version_that_no_runtime_knows_is_named(
    tmp_path: Path, refusal: Refusal
) -> None:
    message = refusal(open_tflite, write_dense(tmp_path / "new.tflite", version=99))
    for word in ("new.tflite", "FULLY_CONNECTED", "99"):
        assert word in message


def test_closing_gives_up_what_is_under_way(dense: Path) -> None:
    model = open_tflite(dense)
    futures = [model.submit(np.zeros((64, 4, 4, 1), np.float32)) for _ in range(50)]
    model.close()
    assert all(future.done() for future in futures)


@pytest.mark.usefixtures("own_agents")
def test_a_worker_killed_from_outside_costs_no_answer(dense: Path) -> None:
    images = np.random.default_rng(0).normal(size=(64, 4, 4, 1)).astype(np.float32)
    with closing(open_tflite(dense)) as model:
        before = model.submit(images).result().outputs
        (worker,) = workers(os.getpid())
        os.kill(worker, signal.SIGKILL)
        after = model.submit(images).result()
    np.testing.assert_array_equal(after.outputs, before)
    assert not after.failures


# Several inputs and outputs, and a state.


@pytest.mark.parametrize("kernels", KERNELS)
@pytest.mark.parametrize("dtype", ["FLOAT32", "INT8"])
def test_a_clip_is_what_the_plain_interpreter_answers_step_by_step(
    dtype: str, kernels: Kernels, tmp_path: Path
) -> None:
    path = write_state_model(tmp_path / "state.tflite", dtype)
    plain = InterpreterProbe(path.read_bytes(), kernels)
    with closing(open_tflite(path, kernels)) as model:
        state, x = model.signature.inputs
        once = [np.asarray(quantize(np.full((1, 1, 3), 0.3), one)) for one in (state, x)]
        batch = model.submit(pack_rows((state, x), once)).result()
        found = unpack_rows(model.signature.outputs, batch.outputs)
        for got, wanted in zip(found, plain.run([one[0] for one in once]), strict=True):
            assert np.array_equal(got[0], wanted)
    with closing(open_tflite(path, kernels, STATE)) as model:
        (given,), (following, y) = model.signature.inputs, model.signature.outputs
        clips = quantize(np.random.default_rng(0).uniform(-1, 1, (2, 5, 1, 3)), given)
        batch = model.submit(pack_rows([given], [clips])).result()
    assert not batch.failures
    states, answers = unpack_rows((following, y), batch.outputs)
    for at, clip in enumerate(clips):
        held = quantize(np.zeros((1, 3)), state)
        for step, frame in enumerate(clip):
            made, answer = plain.run([held, frame])
            assert np.array_equal(states[at, step], made)
            assert np.array_equal(answers[at, step], answer)
            held = quantize(dequantize(made, following), state)


def test_a_state_without_its_output_is_refused(tmp_path: Path, refusal: Refusal) -> None:
    path = write_state_model(tmp_path / "state.tflite", "FLOAT32")
    words = refusal(open_tflite, path, invocation=Invocation(state={"state": "out"}, frames=2))
    assert words.startswith(f"{path}: there is no output 'out' for a state: its outputs are next")


def test_names_of_the_original_are_its_own_or_found_by_the_only_like_shape(
    tmp_path: Path, refusal: Refusal
) -> None:
    """The frame and the state of `compressed` have one shape, those of this original two."""
    compressed = write_state_model(tmp_path / "compressed.tflite", "INT8")
    original = write_state_model(tmp_path / "original.tflite", "FLOAT32")
    assert invocation_of(STATE, original, compressed) == STATE
    assert invocation_of(ONCE, original, compressed) == ONCE
    graph = GraphWriter()
    x = graph.tensor("a", (1, 1), "FLOAT32")
    state, following = (graph.tensor(name, (1, 1, 3), "FLOAT32") for name in "bc")
    graph.operator("ADD", [x, state], [following], schema.AddOptionsT())
    graph.save(original, [x, state], [following])
    assert invocation_of(STATE, original, compressed).state == {"b": "c"}
    shapes = Invocation(shapes={"state": (1, 3)})
    assert invocation_of(shapes, original, compressed).shapes == {"b": (1, 3)}
    message = refusal(invocation_of, STATE, original, original)
    assert "has no input 'state', and its shape does not tell which it is" in message


# The host.


def test_the_host_is_described_as_a_device_is() -> None:
    told = describe_host(None)
    assert told.machine == platform.machine()
    assert told.python == platform.python_version()
    assert told.cores > 0
    assert told.os
    assert version(told.runtime) == told.runtime_version
    assert told.original_runtime is None
    runtimes = {
        "models/a.TFLITE": f"{told.runtime} {told.runtime_version}",
        "a.py:net": f"Python {told.python}",
        "a.onnx": f"onnxruntime {pytest.importorskip('onnxruntime').__version__}",
    }
    for original, runtime in runtimes.items():
        assert describe_host(original).original_runtime == runtime
