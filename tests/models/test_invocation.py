"""The host's runner with several inputs, outputs and a state, beside the plain interpreter.

Pairs that lie beside the repository are driven as their own `check_tasks.py` drives them.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from ai_edge_litert.interpreter import Interpreter, OpResolverType
from numpy.typing import NDArray

from edgeflare.core.tensor import Tensor, dequantize
from edgeflare.core.tensor_rows import pack_rows, unpack_rows
from edgeflare.models.invocation import Invocation
from edgeflare.models.tflite import open_tflite
from edgeflare_protos.kernel_sets import Kernels
from graph_writer import write_state_model

PAIRS = Path(__file__).parents[3] / "shared" / "pairs"
KERNELS: tuple[Kernels, ...] = ("xnnpack", "builtin", "reference")
RESOLVERS = {
    "xnnpack": OpResolverType.AUTO,
    "builtin": OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES,
    "reference": OpResolverType.BUILTIN_REF,
}
Arrays = list[NDArray[Any]]


def imported(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"{path.stem}_of_pairs", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def check_tasks() -> ModuleType:
    if not (PAIRS / "check_tasks.py").is_file():
        pytest.skip(f"needs the pairs of {PAIRS.parent.name}/{PAIRS.name} beside the repository")
    return imported(PAIRS / "check_tasks.py")


def plain(check_tasks: ModuleType, path: Path, kernels: Kernels) -> Any:
    """Return the `Model` of check_tasks.py, on other kernels than its own."""
    model = check_tasks.Model.__new__(check_tasks.Model)
    model.it = Interpreter(
        str(path), num_threads=1, experimental_op_resolver_type=RESOLVERS[kernels]
    )
    model.it.allocate_tensors()
    model.inputs, model.outputs = model.it.get_input_details(), model.it.get_output_details()
    return model


def quantized(values: NDArray[Any], tensor: Tensor) -> NDArray[Any]:
    """Return floats as an input takes them, by the formula of check_tasks.py."""
    if tensor.dtype == "float32":
        return values.astype(np.float32)
    raw = np.round(values.astype(np.float32) / tensor.scale + tensor.zero_point)
    return np.clip(raw, -128, 127).astype(tensor.dtype)


def real(raw: NDArray[Any], tensor: Tensor) -> NDArray[np.float32]:
    if tensor.dtype == "float32":
        return raw.astype(np.float32)
    real_values = (raw.astype(np.float32) - tensor.zero_point) * np.float32(tensor.scale)
    return np.asarray(real_values, np.float32)


def gru(check_tasks: ModuleType) -> tuple[Arrays, Any]:
    folder = PAIRS / "kws_digits_gru_state"
    features = imported(folder / "logmel_features.py").features
    waves = np.load(folder / "seeds.npz")["waves"][:4]
    clips = [features(wave).reshape(49, 1, 64) for wave in waves]

    def drive(model: Any, clip: NDArray[Any]) -> Arrays:
        state, steps = np.zeros(64, np.float32), []
        for frame in clip:
            steps.append(model(frame, state))
            state = check_tasks.pick(steps[-1], 64)
        return [np.stack(outputs) for outputs in zip(*steps, strict=True)]

    return clips, drive


def denoiser(check_tasks: ModuleType) -> tuple[Arrays, Any]:
    folder = PAIRS / "denoise_dtln1_state"
    masks = imported(folder / "drive.py").masks
    waves = np.load(folder / "seeds.npz")["waves"][:2]

    def spectra(wave: NDArray[Any]) -> NDArray[Any]:
        seen: Arrays = []

        def step(magnitude: NDArray[Any], state: NDArray[Any]) -> tuple[NDArray[Any], Any]:
            seen.append(magnitude)
            return np.zeros(257, np.float32), state

        masks(wave, step)
        return np.stack(seen)

    def drive(model: Any, clip: NDArray[Any]) -> Arrays:
        state, steps = np.zeros((1, 2, 128, 2), np.float32), []
        for frame in clip:
            steps.append(model(frame, state))
            state = check_tasks.pick(steps[-1], 512)
        return [np.stack(outputs) for outputs in zip(*steps, strict=True)]

    return [spectra(wave) for wave in waves], drive


@pytest.mark.parametrize("kernels", KERNELS)
@pytest.mark.parametrize("file", ["original.tflite", "compressed.tflite"])
@pytest.mark.parametrize(
    ("pair", "task", "state"),
    [
        ("kws_digits_gru_state", gru, {"state": "Identity_1"}),
        ("denoise_dtln1_state", denoiser, {"input_3": "Identity_1"}),
    ],
)
def test_a_clip_is_what_the_plain_interpreter_answers_step_by_step(
    kernels: Kernels,
    file: str,
    pair: str,
    task: Callable[[ModuleType], tuple[Arrays, Any]],
    state: dict[str, str],
    check_tasks: ModuleType,
) -> None:
    clips, drive = task(check_tasks)
    path = PAIRS / pair / file
    direct = plain(check_tasks, path, kernels)
    invocation = Invocation(state=state, frames=len(clips[0]))
    with closing(open_tflite(path, kernels, invocation)) as model:
        (given,), made = model.signature.inputs, model.signature.outputs
        rows = pack_rows([given], [quantized(np.stack(clips), given)])
        batch = model.submit(rows).result()
    assert not batch.failures
    answers = unpack_rows(made, batch.outputs)
    for index, clip in enumerate(clips):
        for answer, tensor, right in zip(answers, made, drive(direct, clip), strict=True):
            assert np.array_equal(real(answer[index], tensor), right)


@pytest.mark.parametrize("kernels", KERNELS)
def test_two_inputs_and_two_outputs(kernels: Kernels, check_tasks: ModuleType) -> None:
    folder = PAIRS / "tabular_cancer_2in_2out"
    seeds = np.load(folder / "seeds.npz")
    for file in ("original.tflite", "compressed.tflite"):
        direct = plain(check_tasks, folder / file, kernels)
        with closing(open_tflite(folder / file, kernels)) as model:
            given, made = model.signature.inputs, model.signature.outputs
            values = [seeds[tensor.name][:20, np.newaxis] for tensor in given]
            raw = [quantized(*pair) for pair in zip(values, given, strict=True)]
            answers = unpack_rows(made, model.submit(pack_rows(given, raw)).result().outputs)
        for index in range(20):
            right = direct(*(value[index] for value in values))
            for answer, tensor, one in zip(answers, made, right, strict=True):
                assert np.array_equal(real(answer[index], tensor), one)


def test_a_state_of_a_small_model(tmp_path: Path) -> None:
    path = write_state_model(tmp_path / "state.tflite", "INT8")
    invocation = Invocation(state={"state": "next"}, frames=3)
    with closing(open_tflite(path, "builtin", invocation)) as model:
        following, y = model.signature.outputs
        clips = np.full((2, 3, 1, 3), 57, np.int8)  # one, in each frame
        states, answers = unpack_rows(model.signature.outputs, model.submit(clips).result().outputs)
    sums = dequantize(states, following)[:, :, 0]
    assert np.allclose(sums, np.array([1, 2, 3])[:, np.newaxis], atol=0.12)
    assert np.allclose(dequantize(answers, y)[:, :, 0], 1 / (1 + np.exp(-sums)), atol=1 / 128)


def test_what_does_not_fit_is_one_line(tmp_path: Path, refusal: Callable[..., str]) -> None:
    path = write_state_model(tmp_path / "state.tflite", "FLOAT32")
    words = refusal(open_tflite, path, invocation=Invocation(state={"state": "out"}, frames=2))
    assert words.startswith(f"{path}: there is no output 'out' for a state: its outputs are next")
