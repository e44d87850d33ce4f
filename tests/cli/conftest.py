"""The command line called as a user calls it."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from ai_edge_litert import schema_py_generated as schema

from called_commands import EXAMPLE, SMALL, Said
from canary import Canary, canary
from edgeflare.models.tflite_file import read_model
from edgeflare.models.tflite_writer import written
from edgeflare.rank import model_measurements
from forked_commands import forked_edgeflare

Call = Callable[..., Said]


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


@pytest.fixture(scope="module", autouse=True)
def _few_timed_runs() -> Iterator[None]:
    """Have rankings take the latency of a model from 11 runs in place of 201."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(model_measurements, "TIMED_RUNS", model_measurements.LEAST_RUNS)
        yield


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


def edited(change: Callable[[Any], None]) -> bytes:
    """The example's compressed model, changed."""
    model = read_model((EXAMPLE / "compressed.tflite").read_bytes())
    change(model)
    return written(model)


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
