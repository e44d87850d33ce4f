"""The command line called as a user calls it, and what a user may bring to it by mistake."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest
from ai_edge_litert import schema_py_generated as schema

from called_commands import Said, call_here
from canary import Canary, canary
from forked_commands import forked_edgeflare

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples" / "fashion_lenet4"
SMALL = (
    *("--first", "6", "--max-queries", "150", "--chains", "8"),
    *("--shrink", "0", "--within", "none"),
)


Call = Callable[..., Said]


@pytest.fixture(scope="session")
def example() -> Path:
    return EXAMPLE


@pytest.fixture(scope="session")
def small() -> tuple[str, ...]:
    """Options that make a search of the example short."""
    return SMALL


@pytest.fixture(scope="session")
def call() -> Call:
    """Call the command within this process, which saves the start of another."""
    return call_here


@pytest.fixture(scope="session")
def start() -> Call:
    """Call the command as a process of its own, forked where no other one is named."""
    return start_process


def start_process(
    *arguments: str | Path, cwd: Path | None = None, command: Sequence[str] = ()
) -> Said:
    program = [sys.executable, *command] if command else [forked_edgeflare()]
    done = subprocess.run(
        [*program, *map(str, arguments)],
        cwd=cwd,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    return Said(done.returncode, done.stdout, done.stderr)


@dataclass(frozen=True)
class Finished:
    """A search that came to its end, and what it said."""

    folder: Path
    said: Said


@pytest.fixture(scope="session")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Finished:
    folder = tmp_path_factory.mktemp("finished") / "run"
    return Finished(folder, start_process("search", EXAMPLE, *SMALL, "--out", folder))


@pytest.fixture(scope="session")
def mistakes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of things that are not what they should be."""
    folder = tmp_path_factory.mktemp("mistakes")
    _bad_models(folder)
    _bad_seeds(folder)
    _bad_pairs(folder)
    (folder / "a-file").write_text("precious")
    (folder / "thesis").mkdir()
    (folder / "thesis" / "chapter-1.txt").write_text("precious")
    return folder


@pytest.fixture(scope="session")
def newer_than_the_old_board(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The example's compressed model with an operator version that tflite-runtime 2.14 lacks."""
    path = tmp_path_factory.mktemp("newer") / "newer.tflite"
    path.write_bytes(edited(_convolution(8)))
    return path


@pytest.fixture(scope="session")
def constant(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The example's compressed model with a last layer that gives every image the same scores."""
    path = tmp_path_factory.mktemp("constant") / "constant.tflite"
    path.write_bytes(edited(_no_weights_in_the_last_layer))
    return path


@pytest.fixture(scope="session")
def biased(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The example's compressed model with a last layer that prefers class 3, whatever it sees."""
    path = tmp_path_factory.mktemp("biased") / "biased.tflite"
    path.write_bytes(edited(_prefer_class_3))
    return path


def _bad_models(folder: Path) -> None:
    whole = (EXAMPLE / "compressed.tflite").read_bytes()
    (folder / "empty.tflite").touch()
    (folder / "truncated.tflite").write_bytes(whole[: len(whole) // 2])
    (folder / "text.tflite").write_text("no model at all")
    (folder / "future.tflite").write_bytes(edited(_convolution(99)))
    (folder / "two-inputs.tflite").write_bytes(edited(_second_input))


def edited(change: Callable[[Any], None]) -> bytes:
    """The example's compressed model, changed."""
    model = schema.ModelT.InitFromPackedBuf((EXAMPLE / "compressed.tflite").read_bytes())
    change(model)
    builder = schema.flatbuffers.Builder(1024)
    builder.Finish(model.Pack(builder), file_identifier=b"TFL3")
    return bytes(builder.Output())


def _convolution(version: int) -> Callable[[Any], None]:
    def change(model: Any) -> None:
        for code in model.operatorCodes:
            if code.builtinCode == schema.BuiltinOperator.CONV_2D:
                code.version = version

    return change


def _no_weights_in_the_last_layer(model: Any) -> None:
    buffer = _input_of_the_last_layer(model, 1)
    buffer.data = [0] * len(buffer.data)


def _prefer_class_3(model: Any) -> None:
    buffer = _input_of_the_last_layer(model, 2)
    bias = np.frombuffer(bytes(buffer.data), np.int32).copy()
    bias[3] += 10**5
    buffer.data = list(bias.tobytes())


def _input_of_the_last_layer(model: Any, position: int) -> Any:
    (graph,) = model.subgraphs
    last = next(
        operator
        for operator in reversed(graph.operators)
        if model.operatorCodes[operator.opcodeIndex].builtinCode
        == schema.BuiltinOperator.FULLY_CONNECTED
    )
    return model.buffers[graph.tensors[last.inputs[position]].buffer]


def _second_input(model: Any) -> None:
    (graph,) = model.subgraphs
    mask = schema.TensorT()
    mask.name, mask.shape, mask.type = "mask", [1, 4], schema.TensorType.FLOAT32
    graph.tensors.append(mask)
    graph.inputs = [*graph.inputs, len(graph.tensors) - 1]


def _bad_seeds(folder: Path) -> None:
    with np.load(EXAMPLE / "seeds.npz") as arrays:
        images = arrays["images"][:4]
    np.savez(folder / "float.npz", images=images / np.float32(255))
    np.savez(folder / "small.npz", images=images[:, :8, :8])
    np.savez(folder / "nameless.npz", images)
    np.savez(folder / "none.npz", images=images[:0])
    (folder / "text.npz").write_text("no arrays")
    (folder / "no-images").mkdir()
    (folder / "no-images" / "read.me").write_text("nothing")
    (folder / "not-images").mkdir()
    (folder / "not-images" / "cat.png").write_text("miaow")
    (folder / "large-images").mkdir()
    cv2.imwrite(str(folder / "large-images" / "cat.png"), np.zeros((40, 40, 3), np.uint8))


def _bad_pairs(folder: Path) -> None:
    said = (EXAMPLE / "pair.toml").read_text()
    for name in ("compressed.tflite", "original.tflite", "seeds.npz"):
        said = said.replace(f'"{name}"', f'"{EXAMPLE / name}"')
    pairs = {
        "unknown-key": said.replace("classes =", "clases ="),
        "no-preprocess": said.partition("[preprocess]")[0],
        "eleven-classes": said.replace('"Ankle boot"', '"Ankle boot", "Hat"'),
        "no-toml": said.replace("[preprocess]", "[preprocess"),
        "fewer-means": said.replace("mean = [0.0]", "mean = [0.0, 0.0]"),
        "other": said.replace("255.0", "254.0"),
    }
    for name, text in pairs.items():
        (folder / name).mkdir()
        (folder / name / "pair.toml").write_text(text)


@pytest.fixture
def bait(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Canary]:
    """A canary, of whose machine the working directory, the home and whatever reaches devices are.

    Whatever is reached by a shell is reached through programs on PATH.
    """
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    monkeypatch.setenv("COLUMNS", "300")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("EDGEFLARE_TOKEN", "the-users-token")
    monkeypatch.setenv("ANDROID_ADB_SERVER_PORT", "1")
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}")
    with canary(tmp_path / "bait") as one:
        for name in ("ssh", "scp", "adb"):
            one.program(tmp_path / "bin" / name)
        yield one


@pytest.fixture
def put_profile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str, str], None]:
    """Write profiles into a working directory, and a home, of the test's own."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))

    def put(name: str, text: str) -> None:
        (tmp_path / "device_profiles").mkdir(exist_ok=True)
        (tmp_path / "device_profiles" / f"{name}.toml").write_text(text)

    return put
