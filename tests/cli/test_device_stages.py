"""Pairs whose device encodes inputs or reads outputs otherwise: every command says which stage."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

from called_commands import call_here, completed, document_of
from graph_writer import write_logistic_models
from reproductions import reproduce, unpacked

pytestmark = pytest.mark.slow

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
    write_logistic_models(folder, 1, (STEP, 0))
    np.savez(folder / "seeds.npz", x=np.array([[first], [2.0], [-1.5]], np.float32))
    (folder / "pair.toml").write_text(toml)
    return folder


@pytest.fixture(scope="module")
def run(pair: Path) -> Path:
    run = pair.with_name(f"{pair.name}-run")
    limit = ("--max-queries", "1", "--shrink", "0", "--fail-on", "none")
    completed("search", pair, *DEVICE, *limit, "--out", run)
    (deviating,) = document_of(run)["deviating_seeds"]
    assert deviating["labels"]["twin"] != deviating["labels"]["device"]
    return run


def test_explain_names_the_stage_and_no_kernel(run: Path, planted: Planted) -> None:
    said = completed("explain", run)
    (found,) = document_of(run, "explain.json")["findings"].values()
    assert found["verdict"]["name"] == planted.verdict
    assert found["verdict"]["which"] is None
    assert "then what is left" not in found["verdict"]["why"]
    assert all(word in said.out for word in planted.where.split())
    shipped = found["evidence"]["stages"]["shipped"]
    device = next(one for one in found["evidence"]["votes"] if one["arm"] == "device")
    assert shipped["labels"] != device["labels"]
    assert (shipped["outputs_crc32"] == device["outputs_crc32"]) == (planted.own == OUTPUT)
    completed("report", run, "--html")
    assert f"It begins {planted.where}" in (run / "report.html").read_text()


def explained(pair: Path) -> tuple[Path, dict[str, Any]]:
    """Search a pair whose device has an input stage of its own; return the run and its finding."""
    run = pair / "run"
    limit = ("--max-queries", "1", "--shrink", "0", "--fail-on", "none")
    completed("search", pair, *DEVICE, *limit, "--out", run)
    completed("explain", run)
    (found,) = document_of(run, "explain.json")["findings"].values()
    assert found["verdict"]["name"] == "input-stage"
    return run, found


def test_explain_names_the_key_of_the_input_stage_that_decides(tmp_path: Path) -> None:
    own = '[device.inputs.x]\nrounding = "truncate"\nstd = 1.01\n'
    toml = TOML.replace("threshold = 0.5\n", "threshold = 0.504\n") + own
    run, found = explained(write_pair(tmp_path, toml, 0.6 * STEP))
    assert found["verdict"]["why"].endswith("input stage, of which x.rounding alone decides")
    completed("report", run, "--html")
    assert "device, the pair&#39;s x.rounding alone" in (run / "report.html").read_text()


def test_a_stage_decides_by_features_that_are_quantized_alike(tmp_path: Path) -> None:
    """Of x = 0 the model makes 0.5, which is 0.25 from it, and 0.2601 from -0.01."""
    own = "[device.inputs.x]\nmean = 0.01\nstd = 1.001\n"
    toml = TOML.replace("threshold = 0.5\n", 'threshold = 0.255\nscore = "reconstruction"\n') + own
    _, found = explained(write_pair(tmp_path, toml, 0.0))
    assert found["verdict"]["why"].endswith("input stage, of which x.mean alone decides")
    stages = found["evidence"]["stages"]
    assert stages["shipped"]["outputs_crc32"][0] == stages["pair_inputs"]["outputs_crc32"][0]


@pytest.mark.parametrize("planted", ["output", "input"], indirect=True)
def test_a_search_meets_what_the_stage_changes(pair: Path, tmp_path: Path) -> None:
    bounds = ("--find", "kernel", "--max-queries", "60", "--shrink", "0")
    completed("search", pair, *DEVICE, *bounds, "--fail-on", "none", "--out", tmp_path / "run")
    document = document_of(tmp_path / "run")
    assert {one["seed_id"] for one in document["findings"]} == {1, 2}


def test_the_dry_run_says_what_each_stage_changes(pair: Path, planted: Planted) -> None:
    said = " ".join(call_here("search", pair, *DEVICE, "--dry-run").out.split())
    assert f"the same raw outputs changes the decision on {planted.decided} of 3 seeds" in said
    assert f"the model's inputs on the device {planted.inputs} " in said
    assert ("on the device, task: threshold, threshold 0.55" in said) == (OUTPUT in planted.own)
    assert ("mean 0.3" in said) == (INPUT in planted.own)


def test_a_replay_and_the_exported_script_have_the_devices_stages(
    run: Path, tmp_path: Path
) -> None:
    completed("replay", run, "--out", tmp_path / "replay", code=1)
    replayed = document_of(tmp_path / "replay")
    assert len(replayed["deviating_seeds"]) + len(replayed["findings"]) == 1

    archive = tmp_path / "0.zip"
    completed("export", run, "0", "--out", archive)
    shown = reproduce(unpacked(archive, tmp_path / "export"))
    assert shown.returncode == 0, shown.stdout + shown.stderr
    assert "It deviates here too" in shown.stdout
    arms = document_of(tmp_path / "export", "finding.json")["arms"]
    assert arms["device"]["input"] == "device_input.npz"


@pytest.mark.parametrize("planted", ["both"], indirect=True)
def test_other_stages_are_another_run(run: Path, pair: Path) -> None:
    told = (pair / "pair.toml").read_text()
    (pair / "pair.toml").write_text(TOML)
    try:
        limit = ("--max-queries", "20", "--shrink", "0", "--fail-on", "none")
        said = call_here("search", pair, *DEVICE, *limit, "--out", run, "--resume")
    finally:
        (pair / "pair.toml").write_text(told)
    assert said.code == 2
    assert "belongs to another pair" in said.complaint()
