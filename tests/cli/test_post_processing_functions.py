"""Runs of a pair whose outputs a Python function reads, imported only where the user names it."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from edgeflare.tasks.task_registry import TASKS
from graph_writer import GraphWriter
from plugin_package import install_plugin

pytestmark = pytest.mark.slow

Call = Callable[..., Any]
TASK = Path(__file__).parents[1] / "tasks" / "object_seen.py"

DECODE = """
import numpy as np
from pathlib import Path

Path(__file__).with_name("imported").touch()

def decode(outputs):
    (score,) = outputs["y"].reshape(-1)
    return [[0.1, 0.1, 0.6, 0.6, score, 0]] if score > 0.2 else []
"""

TOML = """
name = "seen"
original = "original.tflite"
compressed = "compressed.tflite"
seeds = "seeds.npz"

[task]
name = "object-seen"
decoding = "decode.py:decode"
threshold = 0.55

[inputs.x]
domain = "array"
lowest = -4.0
highest = 4.0
"""
OPTIONS = ("--device", "emulated-builtin", "--max-queries", "20", "--fail-on", "none")


@pytest.fixture(scope="module", autouse=True)
def _installed(tmp_path_factory: pytest.TempPathFactory) -> Any:
    points = {"edgeflare.tasks": {"object-seen": "object_seen:ObjectSeen"}}
    folder = tmp_path_factory.mktemp("task")
    installed = install_plugin(folder, "object_seen", TASK.read_text(), points)
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(installed)
        patch.setenv("XDG_STATE_HOME", str(folder / "state"))
        vars(TASKS).pop("_entries", None)  # what was installed before
        yield
        vars(TASKS).pop("_entries", None)


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a pair whose models give the first seed .56 and .5."""
    folder = tmp_path_factory.mktemp("pair")
    for name, dtype in (("original", "FLOAT32"), ("compressed", "INT8")):
        coarse, fine = ((0.5, 0), (1 / 256, -128)) if dtype == "INT8" else (None, None)
        graph = GraphWriter()
        x = graph.tensor("x", (1, 1), dtype, coarse)
        y = graph.tensor("y", (1, 1), dtype, fine)
        graph.operator("LOGISTIC", [x], [y], None, 1 if coarse is None else 2)
        graph.save(folder / f"{name}.tflite", [x], [y])
    np.savez(folder / "seeds.npz", x=np.array([[0.24], [2.0], [-3.0]], np.float32))
    (folder / "decode.py").write_text(DECODE)
    (folder / "pair.toml").write_text(TOML)
    return folder


@pytest.fixture(scope="module")
def run(pair: Path, tmp_path_factory: pytest.TempPathFactory, call: Call) -> Path:
    run = tmp_path_factory.mktemp("run") / "run"
    ended = call("search", pair, "--trust", *OPTIONS, "--out", run)
    assert ended.code == 0, ended.err
    return run


def of(run: Path) -> dict[str, Any]:
    document: dict[str, Any] = json.loads((run / "run.json").read_text())
    return document


def test_a_search_reads_what_the_function_makes(run: Path, pair: Path) -> None:
    document = of(run)
    (seed,) = document["deviating_seeds"]
    assert seed["labels"] == {"original": 1, "twin": 0, "device": 0}
    assert seed["cause"] == "compression"
    assert document["pair"]["task_settings"]["decoding"] == f"{pair / 'decode.py'}:decode"
    assert len(document["pair"]["functions"]) == 1


def test_a_search_needs_trust(pair: Path, call: Call, tmp_path: Path) -> None:
    other = Path(shutil.copytree(pair, tmp_path / "other"))
    (other / "imported").unlink(missing_ok=True)
    (other / "decode.py").write_text(f"{DECODE}\n# {tmp_path}, which nobody has trusted yet\n")
    said = call("search", other, "--out", tmp_path / "run")
    assert said.code == 2
    assert f"names the Python function {other / 'decode.py'}:decode" in said.complaint()
    assert not (other / "imported").exists()
    assert not (tmp_path / "run").exists()


def test_a_run_is_read_without_the_function(run: Path, pair: Path, call: Call) -> None:
    (pair / "imported").unlink(missing_ok=True)
    (run / "run.json").rename(run / "kept.json")
    said = call("report", run, "--csv")
    assert said.code == 0, said.err
    (run / "kept.json").rename(run / "run.json")
    assert "something" in (run / "findings.csv").read_text()
    assert not (pair / "imported").exists()


@pytest.mark.parametrize("command", ["replay", "explain"])
def test_what_opens_the_models_needs_the_function_agreed_to(
    run: Path,
    pair: Path,
    call: Call,
    tmp_path: Path,
    command: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    function = f"{pair / 'decode.py'}:decode"
    options: tuple[Any, ...] = ("--out", tmp_path / "replay") if command == "replay" else ()
    (pair / "imported").unlink(missing_ok=True)
    refused = call(command, run, *options)
    assert refused.code == 2
    assert refused.complaint().endswith(f"name it again with --function {function}")
    assert not (pair / "imported").exists()
    named = call(command, run, *options, "--function", function)
    assert named.code == (1 if command == "replay" else 0), named.err
    assert (pair / "imported").exists()
    if command == "explain":
        found = json.loads((run / "explain.json").read_text())["findings"].values()
        assert {one["verdict"]["name"] for one in found} == {"compression"}


def test_a_function_that_changed_since_is_refused(run: Path, pair: Path, call: Call) -> None:
    function = f"{pair / 'decode.py'}:decode"
    (pair / "decode.py").write_text(DECODE.replace("0.2", "0.3"))
    try:
        said = call("explain", run, "--function", function)
        resumed = call("search", pair, "--trust", *OPTIONS, "--out", run, "--resume")
    finally:
        (pair / "decode.py").write_text(DECODE)
    assert said.code == resumed.code == 2
    assert f"the code of {function} is another" in said.complaint()
    assert "belongs to another pair" in resumed.complaint()


def test_an_export_says_that_its_script_cannot_run_the_function(
    run: Path, call: Call, tmp_path: Path
) -> None:
    said = call("export", run, "0", "--out", tmp_path / "0.zip")
    assert said.code == 2
    assert "pass on the run directory and the pair instead" in said.complaint()


@pytest.mark.parametrize(
    ("body", "says"),
    [
        ("raise ValueError('no anchors')", "raised ValueError: no anchors"),
        ("return [[1, 2, 3]]", "returned an array of shape (1, 3); expected rows of numbers"),
    ],
)
@pytest.mark.parametrize("when", ["at once", "in the search"])
def test_a_function_that_fails_is_one_line(
    pair: Path, call: Call, tmp_path: Path, body: str, says: str, when: str
) -> None:
    other = Path(shutil.copytree(pair, tmp_path / "other"))
    calls = 0 if when == "at once" else 30
    (other / "decode.py").write_text(
        "calls = []\n"
        "def decode(outputs):\n"
        "    calls.append(outputs)\n"
        f"    if len(calls) > {calls}:\n        {body}\n"
        "    return [[0, 0, 1, 1, outputs['y'].reshape(-1)[0], 0]]\n"
    )
    said = call("search", other, "--trust", *OPTIONS, "--out", tmp_path / "run")
    assert said.code == 2, said.err
    line = said.err.splitlines()[-1]
    assert line.startswith(f"edgeflare: {other / 'decode.py'}:decode {says}")
    assert "Traceback" not in said.err
    if body.startswith("raise"):
        file = Path(line.rpartition("its traceback is in ")[2])
        assert "in decode" in file.read_text()


def test_a_search_that_a_function_ended_goes_on_once_its_cause_is_mended(
    pair: Path, call: Call, tmp_path: Path
) -> None:
    other = Path(shutil.copytree(pair, tmp_path / "other"))
    (other / "least.txt").write_text("0.2")
    (other / "decode.py").write_text(
        "from pathlib import Path\n"
        "calls = []\n"
        "def decode(outputs):\n"
        "    calls.append(outputs)\n"
        "    table = Path(__file__).with_name('least.txt')\n"
        "    if len(calls) == 30 and table.read_text() == '0.2':\n        table.unlink()\n"
        "    least = float(table.read_text())\n"
        "    score = outputs['y'].reshape(-1)[0]\n"
        "    return [[0.1, 0.1, 0.6, 0.6, score, 0]] if score > least else []\n"
    )
    command = ("search", other, "--trust", *OPTIONS, "--out")
    ended = call(*command, tmp_path / "run")
    assert ended.code == 2
    assert "raised FileNotFoundError" in ended.err.splitlines()[-1]
    before = of(tmp_path / "run")
    assert before["stopped_by"] == "error"
    assert before["totals"]["queries"] < 40
    shown = call("report", tmp_path / "run")
    assert shown.code == 0
    assert "ended by an error before its end" in shown.out

    (other / "least.txt").write_text("0.20")
    resumed = call(*command, tmp_path / "run", "--resume")
    assert resumed.code == 0, resumed.err
    whole = call(*command, tmp_path / "whole")
    assert whole.code == 0, whole.err
    once, again = of(tmp_path / "whole"), of(tmp_path / "run")
    assert again["totals"]["queries"] == once["totals"]["queries"] > before["totals"]["queries"]
    for listed in ("deviating_seeds", "findings"):
        assert [one["sha256"] for one in again[listed]] == [one["sha256"] for one in once[listed]]
