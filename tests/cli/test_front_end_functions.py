"""Runs of a pair whose front end is a Python function, imported only where the user names it."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from graph_writer import GraphWriter

pytestmark = pytest.mark.slow

Call = Callable[..., Any]
SAMPLES = 60

FRONT_END = """
import numpy as np
from pathlib import Path

Path(__file__).with_name("imported").touch()

def features(wave):
    return (wave.reshape(3, -1).mean(axis=1) / 8000.0)[None]
"""

TOML = """
name = "features"
original = "original.tflite"
compressed = "compressed.tflite"
seeds = "seeds.npz"

[task]
name = "regression"
tolerance = 0.001

[inputs.x]
domain = "audio"
sample_rate = 8000
samples = 60

[inputs.x.front_end]
name = "front.py:features"
"""


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("pair")
    for name, dtype in (("original", "FLOAT32"), ("compressed", "INT8")):
        quantized = dtype == "INT8"
        graph = GraphWriter()
        x = graph.tensor("x", (1, 3), dtype, (0.02, 7) if quantized else None)
        y = graph.tensor("y", (1, 3), dtype, (1 / 256, -128) if quantized else None)
        graph.operator("LOGISTIC", [x], [y], None, 2 if quantized else 1)
        graph.save(folder / f"{name}.tflite", [x], [y])
    waves = np.random.default_rng(6).integers(-9000, 9000, (3, SAMPLES), np.int16)
    np.savez(folder / "seeds.npz", waves=waves, sample_rate=np.int64(8000))
    (folder / "front.py").write_text(FRONT_END)
    (folder / "pair.toml").write_text(TOML)
    return folder


@pytest.fixture(scope="module")
def run(pair: Path, tmp_path_factory: pytest.TempPathFactory, call: Call) -> Path:
    options = ("--strategy", "climb", "--max-queries", "10", "--device", "emulated-builtin")
    run = tmp_path_factory.mktemp("run") / "run"
    ended = call("search", pair, "--trust", *options, "--fail-on", "none", "--out", run)
    assert ended.code == 0, ended.err
    return run


def test_a_search_needs_trust(pair: Path, call: Call, tmp_path: Path) -> None:
    other = Path(shutil.copytree(pair, tmp_path / "other"))
    (other / "imported").unlink(missing_ok=True)
    (other / "front.py").write_text(f"{FRONT_END}\n# {tmp_path}, which nobody has trusted yet\n")
    said = call("search", other, "--strategy", "climb", "--out", tmp_path / "run")
    assert said.code == 2
    assert f"names the Python function {other / 'front.py'}:features" in said.complaint()
    assert not (other / "imported").exists()
    assert not (tmp_path / "run").exists()


@pytest.fixture
def nobody(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Somebody who has agreed to nothing yet."""
    monkeypatch.setenv("HOME", str(tmp_path / "home"))


@pytest.mark.usefixtures("nobody")
@pytest.mark.parametrize("command", ["replay", "explain", "export"])
def test_what_a_run_names_is_imported_only_where_the_user_has_named_it(
    run: Path, pair: Path, call: Call, tmp_path: Path, command: str
) -> None:
    function = f"{pair / 'front.py'}:features"
    options: tuple[Any, ...] = {
        "replay": ("--out", tmp_path / "replay"),
        "explain": (),
        "export": ("0", "--out", tmp_path / "0.zip"),
    }[command]
    (pair / "imported").unlink(missing_ok=True)

    refused = call(command, run, *options)

    assert refused.code == 2
    assert refused.complaint().endswith(f"name it again with --function {function}")
    other = call(command, run, *options, "--function", "elsewhere.py:features")
    assert other.code == 2
    assert not (pair / "imported").exists()
    named = call(command, run, *options, "--function", function)
    assert named.code == (1 if command == "replay" else 0), named.err
    assert (pair / "imported").exists()
    again = call("explain", run, "0")
    assert again.code == 0, again.err


@pytest.mark.usefixtures("nobody")
def test_what_a_trusted_pair_names_stays_trusted_as_long_as_it_is_that_code(
    run: Path, pair: Path, call: Call, tmp_path: Path
) -> None:
    looked = call("search", pair, "--strategy", "climb", "--trust", "--dry-run")
    assert looked.code == 0, looked.err
    for command in (("explain", run), ("export", run, "0", "--out", tmp_path / "0.zip")):
        said = call(*command)
        assert said.code == 0, said.err
    assert call("replay", run, "--out", tmp_path / "replay").code == 1
    (pair / "imported").unlink()
    (pair / "front.py").write_text(FRONT_END.replace("8000.0", "7000.0"))
    try:
        changed = call("explain", run)
    finally:
        (pair / "front.py").write_text(FRONT_END)
    assert changed.code == 2
    assert "its code is another than you agreed to: if you trust it, name it" in changed.complaint()
    assert not (pair / "imported").exists()


def test_a_front_end_that_changed_since_is_refused(run: Path, pair: Path, call: Call) -> None:
    function = f"{pair / 'front.py'}:features"
    (pair / "front.py").write_text(FRONT_END.replace("8000.0", "9000.0"))
    try:
        said = call("explain", run, "--function", function)
    finally:
        (pair / "front.py").write_text(FRONT_END)
    assert said.code == 2
    assert f"the code of {function} is another" in said.complaint()
