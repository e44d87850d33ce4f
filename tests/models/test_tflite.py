from __future__ import annotations

import itertools
import os
import signal
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
from ai_edge_litert import schema_py_generated as schema
from ai_edge_litert.interpreter import Interpreter

from edgeflare.models.invocation import Invocation
from edgeflare.models.tflite import open_tflite
from edgeflare_protos.kernel_sets import Kernels
from flattening import FlatteningModel
from graph_writer import GraphWriter
from processes import workers


@pytest.mark.parametrize("kernels", ["xnnpack", "builtin", "reference"])
def test_answers_what_the_formula_says(build_tflite: Callable[..., Path], kernels: Kernels) -> None:
    from_images = np.random.default_rng(0).normal(size=(5, 4, 4, 1)).astype(np.float32)
    model = open_tflite(build_tflite(), kernels)
    try:
        batch = model.submit(from_images).result()
    finally:
        model.close()
    known = np.random.default_rng(5).normal(size=(3, 16)).astype(np.float32)
    expected = from_images.reshape(5, 16) @ known.T
    np.testing.assert_allclose(batch.outputs.astype(np.float32), expected, rtol=1e-4)
    assert batch.outputs.dtype == np.float32
    assert not batch.failures


def test_a_quantized_model_answers_as_a_direct_interpreter_does(example: Path) -> None:
    path = example / "compressed.tflite"
    images = np.random.default_rng(0).integers(-128, 128, (4, 28, 28, 1)).astype(np.int8)
    model = open_tflite(path, "xnnpack", threads=1)
    try:
        assert model.signature.input.dtype == model.signature.output.dtype == "int8"
        assert model.signature.output.scale == 1 / 256
        outputs = model.submit(images).result().outputs
    finally:
        model.close()
    interpreter = Interpreter(str(path), num_threads=1)
    interpreter.allocate_tensors()
    for image, output in zip(images, outputs, strict=True):
        interpreter.set_tensor(interpreter.get_input_details()[0]["index"], image[None])
        interpreter.invoke()
        direct = interpreter.get_tensor(interpreter.get_output_details()[0]["index"])
        assert direct[0].tolist() == output.tolist()


def test_batches_are_answered_in_the_order_of_their_submission(
    build_tflite: Callable[..., Path],
) -> None:
    model = open_tflite(build_tflite())
    try:
        batches = [np.full((n, 4, 4, 1), n, np.float32) for n in range(5)]
        answers = [future.result().outputs for future in map(model.submit, batches)]
        assert [len(answer) for answer in answers] == [0, 1, 2, 3, 4]
        np.testing.assert_allclose(answers[4][0], 4 * answers[1][0], rtol=1e-5)
        assert model.operators == ("FULLY_CONNECTED",)
    finally:
        model.close()
        model.close()


@pytest.mark.parametrize("dtype", ["BOOL", "INT64", "UINT16", "FLOAT16", "COMPLEX64", "BFLOAT16"])
def test_a_tensor_of_any_type_may_lie_inside(dtype: str, tmp_path: Path) -> None:
    with closing(open_tflite(_through(tmp_path, dtype), "builtin")) as model:
        assert model.operators == ("CAST", "CAST")
        answer = model.submit(np.array([[0, 1, 1]], np.float32)).result()
    assert not answer.failures
    assert answer.outputs.tolist() == [[0, 1, 1]]


@pytest.mark.parametrize("dtype", ["STRING", "RESOURCE", "VARIANT", "BFLOAT16", "COMPLEX64"])
def test_what_cannot_be_given_or_compared_is_named_with_its_type_and_operator(
    dtype: str, tmp_path: Path, refusal: Callable[..., str]
) -> None:
    for end, at, role in (("x", 0, "an input"), ("y", 1, "an output")):
        path = _through(tmp_path, dtype, end)
        if (dtype, end) == ("COMPLEX64", "y"):  # which a task need not read
            open_tflite(path, "builtin").close()
            continue
        said = refusal(open_tflite, path)
        assert f"tensor '{end}' of CAST (operator {at}), {dtype.lower()}, is {role}" in said


def _through(folder: Path, dtype: str, end: str = "between") -> Path:
    """Write x → between → y, float32 (1, 3) but for one of them."""
    graph = GraphWriter()
    types = {name: dtype if name == end else "FLOAT32" for name in ("x", "between", "y")}
    tensors = [graph.tensor(name, (1, 3), kind) for name, kind in types.items()]
    for given, made in itertools.pairwise(range(3)):
        options = schema.CastOptionsT()
        kinds = list(types.values())
        options.inDataType = getattr(schema.TensorType, kinds[given])
        options.outDataType = getattr(schema.TensorType, kinds[made])
        graph.operator("CAST", [tensors[given]], [tensors[made]], options)
    return graph.save(folder / f"{end}.tflite", tensors[:1], tensors[2:])


def test_refuses_files_that_are_no_models(
    build_tflite: Callable[..., Path], refusal: Callable[..., str], tmp_path: Path
) -> None:
    missing = tmp_path / "missing.tflite"
    assert str(missing) in refusal(open_tflite, missing)
    assert str(tmp_path) in refusal(open_tflite, tmp_path)
    whole = build_tflite().read_bytes()
    for name, content in {
        "empty.tflite": b"",
        "text.tflite": b"this is not a model",
        "cut.tflite": whole[: len(whole) // 2],
    }.items():
        (tmp_path / name).write_bytes(content)
        assert name in refusal(open_tflite, tmp_path / name)


def write_dynamic(path: Path, *declared: int) -> Path:
    model = FlatteningModel(tuple(abs(size) for size in declared))
    made = model.logistic(model.x)
    for tensor in (model.x, made):
        model.graph.tensors[tensor].shapeSignature = list(declared)
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
    declared: tuple[int, ...], fixed: str, refusal: Callable[..., str], tmp_path: Path
) -> None:
    path = write_dynamic(tmp_path / "dynamic.tflite", *declared)
    message = refusal(open_tflite, path)
    assert message.endswith(fixed)
    assert "convert" not in message
    shape = tuple(4 if size == -1 else size for size in declared)
    with closing(open_tflite(path, invocation=Invocation(shapes={"x": shape}))) as model:
        assert model.signature.input.shape == shape


def test_a_dynamic_batch_is_one_input(tmp_path: Path) -> None:
    path = write_dynamic(tmp_path / "batch.tflite", -1, 5)
    with closing(open_tflite(path)) as model:
        assert model.signature.input.shape == (1, 5)


def test_an_operator_version_that_no_runtime_knows_is_named(
    build_tflite: Callable[..., Path], refusal: Callable[..., str]
) -> None:
    message = refusal(open_tflite, build_tflite("new.tflite", version=99))
    for word in ("new.tflite", "FULLY_CONNECTED", "99"):
        assert word in message


def test_closing_gives_up_what_is_under_way(build_tflite: Callable[..., Path]) -> None:
    model = open_tflite(build_tflite())
    futures = [model.submit(np.zeros((64, 4, 4, 1), np.float32)) for _ in range(50)]
    model.close()
    assert all(future.done() for future in futures)


def test_a_worker_killed_from_outside_costs_no_answer(build_tflite: Callable[..., Path]) -> None:
    images = np.random.default_rng(0).normal(size=(64, 4, 4, 1)).astype(np.float32)
    model = open_tflite(build_tflite())
    try:
        before = model.submit(images).result().outputs
        (worker,) = workers(os.getpid())
        os.kill(worker, signal.SIGKILL)
        after = model.submit(images).result()
    finally:
        model.close()
    np.testing.assert_array_equal(after.outputs, before)
    assert not after.failures
