"""Pairs whose device encodes inputs or reads outputs otherwise: every command says which stage."""

from __future__ import annotations

import json
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

from graph_writer import GraphWriter

pytestmark = pytest.mark.slow

Call = Callable[..., Any]

TOML = """
name = "lamp"
original = "original.tflite"
compressed = "compressed.tflite"
seeds = "seeds.npz"

[task]
name = "threshold"
threshold = 0.5

[inputs.x]
domain = "array"
lowest = -4.0
highest = 4.0
"""
OUTPUT = """
[device.task]
threshold = 0.55
"""
INPUT = """
[device.inputs.x]
mean = 0.3
"""
STEP = 8 / 255
"""Of the compressed model's input."""
APART = f"differ from the pair's by at most {10 * STEP:.4g}"


class Planted(NamedTuple):
    """What the device has of its own, and the words that say so."""

    own: str
    verdict: str
    where: str
    decided: int
    inputs: str


PLANTED = {
    "output": Planted(OUTPUT, "output-stage", "behind the model", 1, "are those of the pair"),
    "input": Planted(INPUT, "input-stage", "before the model", 0, APART),
    "both": Planted(OUTPUT + INPUT, "both-stages", "before and behind the model", 0, APART),
}
DEVICE = ("--device", "emulated-builtin")


@pytest.fixture(scope="module", params=PLANTED)
def planted(request: pytest.FixtureRequest) -> Planted:
    return PLANTED[request.param]


@pytest.fixture(scope="module")
def pair(planted: Planted, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a pair whose first seed has the score 0.54, and the others are far from 0.5."""
    return write_pair(tmp_path_factory.mktemp("pair"), TOML + planted.own, 0.16)


def write_pair(folder: Path, toml: str, first: float) -> Path:
    """Write a pair with a first seed, and two that are far from the threshold."""
    for name, dtype in (("original", "FLOAT32"), ("compressed", "INT8")):
        quantized = dtype == "INT8"
        graph = GraphWriter()
        x = graph.tensor("x", (1, 1), dtype, (STEP, 0) if quantized else None)
        y = graph.tensor("y", (1, 1), dtype, (1 / 256, -128) if quantized else None)
        graph.operator("LOGISTIC", [x], [y], None, 2 if quantized else 1)
        graph.save(folder / f"{name}.tflite", [x], [y])
    np.savez(folder / "seeds.npz", x=np.array([[first], [2.0], [-1.5]], np.float32))
    (folder / "pair.toml").write_text(toml)
    return folder


@pytest.fixture(scope="module")
def run(pair: Path, call: Call) -> Path:
    run = pair.with_name(f"{pair.name}-run")
    limit = ("--max-queries", "1", "--fail-on", "none")
    ended = call("search", pair, *DEVICE, *limit, "--out", run)
    assert ended.code == 0, ended.err
    (deviating,) = json.loads((run / "run.json").read_text())["deviating_seeds"]
    assert deviating["labels"]["twin"] != deviating["labels"]["device"]
    return run


def test_explain_names_the_stage_and_no_kernel(run: Path, planted: Planted, call: Call) -> None:
    said = call("explain", run)
    assert said.code == 0, said.err
    (found,) = json.loads((run / "explain.json").read_text())["findings"].values()
    assert found["verdict"]["name"] == planted.verdict
    assert found["verdict"]["which"] is None
    assert "then what is left" not in found["verdict"]["why"]
    assert all(word in said.out for word in planted.where.split())
    shipped, device = (
        found["evidence"]["stages"]["shipped"],
        next(one for one in found["evidence"]["votes"] if one["arm"] == "device"),
    )
    assert shipped["labels"] != device["labels"]
    assert (shipped["outputs_crc32"] == device["outputs_crc32"]) == (planted.own == OUTPUT)
    html = call("report", run, "--html")
    assert html.code == 0, html.err
    assert f"It begins {planted.where}" in (run / "report.html").read_text()


def test_explain_names_the_key_of_the_input_stage_that_decides(tmp_path: Path, call: Call) -> None:
    own = '[device.inputs.x]\nrounding = "truncate"\nstd = 1.01\n'
    toml = TOML.replace("threshold = 0.5\n", "threshold = 0.504\n") + own
    pair, run = write_pair(tmp_path, toml, 0.6 * STEP), tmp_path / "run"
    limit = ("--max-queries", "1", "--fail-on", "none")
    assert call("search", pair, *DEVICE, *limit, "--out", run).code == 0
    assert call("explain", run).code == 0
    (found,) = json.loads((run / "explain.json").read_text())["findings"].values()
    assert found["verdict"]["name"] == "input-stage"
    assert found["verdict"]["why"].endswith("input stage, of which x.rounding alone decides")
    assert call("report", run, "--html").code == 0
    assert "device, the pair&#39;s x.rounding alone" in (run / "report.html").read_text()


def test_a_stage_decides_by_features_that_are_quantized_alike(tmp_path: Path, call: Call) -> None:
    """Of x = 0 the model makes 0.5, which is 0.25 from it, and 0.2601 from -0.01."""
    own = "[device.inputs.x]\nmean = 0.01\nstd = 1.001\n"
    toml = TOML.replace("threshold = 0.5\n", 'threshold = 0.255\nscore = "reconstruction"\n') + own
    pair, run = write_pair(tmp_path, toml, 0.0), tmp_path / "run"
    limit = ("--max-queries", "1", "--fail-on", "none")
    assert call("search", pair, *DEVICE, *limit, "--out", run).code == 0
    assert call("explain", run).code == 0
    (found,) = json.loads((run / "explain.json").read_text())["findings"].values()
    assert found["verdict"]["name"] == "input-stage"
    assert found["verdict"]["why"].endswith("input stage, of which x.mean alone decides")
    shipped = found["evidence"]["stages"]["shipped"]
    assert (
        shipped["outputs_crc32"][0]
        == found["evidence"]["stages"]["pair_inputs"]["outputs_crc32"][0]
    )


@pytest.mark.parametrize("planted", ["output", "input"], indirect=True)
def test_a_search_meets_what_the_stage_changes(pair: Path, call: Call, tmp_path: Path) -> None:
    bounds = ("--find", "kernel", "--max-queries", "60", "--shrink", "0")
    said = call("search", pair, *DEVICE, *bounds, "--fail-on", "none", "--out", tmp_path / "run")
    assert said.code == 0, said.err
    document = json.loads((tmp_path / "run" / "run.json").read_text())
    assert {one["seed_id"] for one in document["findings"]} == {1, 2}


def test_the_dry_run_says_what_each_stage_changes(pair: Path, planted: Planted, call: Call) -> None:
    said = " ".join(call("search", pair, *DEVICE, "--dry-run").out.split())
    assert f"the same raw outputs changes the decision on {planted.decided} of 3 seeds" in said
    assert f"the model's inputs on the device {planted.inputs} " in said
    assert ("on the device, task: threshold, threshold 0.55" in said) == (OUTPUT in planted.own)
    assert ("mean 0.3" in said) == (INPUT in planted.own)


def test_a_replay_and_the_exported_script_have_the_devices_stages(
    run: Path, call: Call, tmp_path: Path
) -> None:
    again = call("replay", run, "--out", tmp_path / "replay")
    assert again.code == 1, again.err
    replayed = json.loads((tmp_path / "replay" / "run.json").read_text())
    assert len(replayed["deviating_seeds"]) + len(replayed["findings"]) == 1

    archive = tmp_path / "0.zip"
    assert call("export", run, "0", "--out", archive).code == 0
    with zipfile.ZipFile(archive) as packed:
        packed.extractall(tmp_path / "export")
    done = subprocess.run(
        [sys.executable, "reproduce.py"],
        cwd=tmp_path / "export",
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "It deviates here too" in done.stdout
    arms = json.loads((tmp_path / "export" / "finding.json").read_text())["arms"]
    assert arms["device"]["input"] == "device_input.npz"


@pytest.mark.parametrize("planted", ["both"], indirect=True)
def test_other_stages_are_another_run(run: Path, pair: Path, call: Call) -> None:
    told = (pair / "pair.toml").read_text()
    (pair / "pair.toml").write_text(TOML)
    try:
        limit = ("--max-queries", "20", "--fail-on", "none")
        said = call("search", pair, *DEVICE, *limit, "--out", run, "--resume")
    finally:
        (pair / "pair.toml").write_text(told)
    assert said.code == 2
    assert "belongs to another pair" in said.complaint()
