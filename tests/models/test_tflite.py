from __future__ import annotations

import os
import signal
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from ai_edge_litert.interpreter import Interpreter

from edgeflare.models.tflite import open_tflite
from edgeflare_protos.kernel_sets import Kernels
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
