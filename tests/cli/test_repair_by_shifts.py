"""Tests of `edgeflare repair --method shifts`."""

from __future__ import annotations

import hashlib
import json
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from jsonschema import Draft202012Validator

from edgeflare.repair.shifts import shift_document

pytest.importorskip("sklearn")

Call = Callable[..., Any]
SHIFTS = ("--method", "shifts")


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory, example: Path, start: Call) -> Path:
    """A run with enough triggers for five folds."""
    folder = tmp_path_factory.mktemp("repair") / "run"
    devices = ("--device", "emulated-xnnpack", "--device", "emulated-builtin")
    options = (*devices, "--shrink", "0", "--fail-on", "none")
    assert start("search", example, *options, "--out", folder).code == 0
    return folder


@pytest.fixture(scope="module")
def fresh(tmp_path_factory: pytest.TempPathFactory, example: Path) -> Path:
    path = tmp_path_factory.mktemp("fresh") / "fresh.npz"
    with np.load(example / "seeds.npz") as arrays:
        np.savez(path, images=arrays["images"][100:], labels=arrays["labels"][100:])
    return path


@pytest.mark.slow
def test_a_repair_is_told_in_full_whatever_comes_of_it(
    run: Path, fresh: Path, call: Call, tmp_path: Path
) -> None:
    out = tmp_path / "repaired"

    said = call(
        *("repair", run, *SHIFTS, "--out", out, "--rounds", "2", "--test", fresh, "--search-again")
    )

    assert said.code == 0, said.err
    document = json.loads((out / "repair.json").read_text())
    schema = Path(shift_document.__file__).with_name("repair.schema.json")
    Draft202012Validator(json.loads(schema.read_bytes())).validate(document)
    assert document["inputs"]["triggers"] + document["inputs"]["not_reproduced"] == 200
    assert set(document["repairers"]) == {
        "perceptron", "perceptron-abstaining", "second-class", "shifts-mixture-only", "shifts",
    }  # fmt: skip
    assert document["repairers"]["second-class"]["inducing_ratio"] == 1.0
    assert document["test"]["inputs"] == 100
    assert document["test"]["before"]["deviations"] == 0
    assert document["queries"]["near_boundary"] > 500
    if document["written"]:
        assert (out / "repaired.tflite").is_file()
        assert document["again"]["before"]["findings"] == 200
        repaired = document["repaired"]
        assert repaired["same_labels"] == repaired["asked"]
        assert repaired["asked"] == 2 * 2 * document["inputs"]["triggers"]  # on both devices
        assert f"{repaired['asked']:,} of {repaired['asked']:,}" in said.out
        for one in (repaired, repaired["alone"]):
            assert hashlib.sha256((out / one["file"]).read_bytes()).hexdigest() == one["sha256"]
        assert call("search", out, "--limit", "2", "--dry-run").code == 0
    else:
        assert "No repairer is written" in said.out
        assert {path.name for path in out.iterdir()} == {"repair.json"}


def test_too_few_triggers(finished: Any, call: Call, tmp_path: Path) -> None:
    said = call("repair", finished.folder, *SHIFTS, "--out", tmp_path / "out")

    assert said.code == 2
    assert "triggering inputs to learn from, and 5 folds need at least 25" in said.complaint()
    assert not (tmp_path / "out").exists()


@pytest.mark.slow
def test_a_model_that_is_not_what_it_was(
    example: Path, biased: Path, call: Call, tmp_path: Path
) -> None:
    pair, run = tmp_path / "pair", tmp_path / "run"
    shutil.copytree(example, pair, ignore=shutil.ignore_patterns("*.py"))
    options = ("--limit", "1", "--shrink", "0", "--fail-on", "none")
    assert call("search", pair, *options, "--out", run).code == 0
    shutil.copy(biased, pair / "compressed.tflite")

    said = call("repair", run, *SHIFTS, "--out", tmp_path / "out")

    assert said.code == 2
    assert f"{pair / 'compressed.tflite'} is not the compressed model of {run}" in said.complaint()


@pytest.mark.slow
def test_a_run_without_an_original(example: Path, call: Call, tmp_path: Path) -> None:
    pair, run = tmp_path / "pair", tmp_path / "run"
    shutil.copytree(example, pair, ignore=shutil.ignore_patterns("*.py"))
    said = (pair / "pair.toml").read_text()
    kept = [line for line in said.splitlines() if not line.startswith("original")]
    (pair / "pair.toml").write_text("\n".join(kept))
    options = (
        *("--find", "kernel", "--limit", "1", "--max-queries", "20"),
        *("--shrink", "0", "--fail-on", "none"),
    )
    assert call("search", pair, *options, "--out", run).code == 0

    said = call("repair", run, *SHIFTS, "--out", tmp_path / "out")

    assert said.code == 2
    assert "has no original model to repair towards" in said.complaint()


@pytest.mark.parametrize("mixture", ["1,1", "1,1,-1", "0,0,0", "a,b,c", "nan,1,1"])
def test_a_mixture_that_is_none(mixture: str, finished: Any, call: Call, tmp_path: Path) -> None:
    out = tmp_path / "out"
    said = call("repair", finished.folder, *SHIFTS, "--out", out, "--mixture", mixture)
    assert said.code == 2
    assert f"--mixture {mixture!r}: expected three numbers" in said.complaint()


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["missing", "small"])
def test_bad_test_images_are_refused_before_anything_is_done(
    kind: str, run: Path, call: Call, tmp_path: Path
) -> None:
    path = tmp_path / "test.npz"
    if kind == "small":
        np.savez(path, images=np.zeros((3, 8, 8), np.uint8))

    said = call("repair", run, *SHIFTS, "--out", tmp_path / "out", "--test", path)

    assert said.code == 2
    assert str(path) in said.complaint()
    assert not (tmp_path / "out").exists()


def test_searching_again_elsewhere(finished: Any, call: Call, tmp_path: Path) -> None:
    device = ("--device", "emulated-reference", "--search-again")
    said = call("repair", finished.folder, *SHIFTS, "--out", tmp_path / "out", *device)
    assert said.code == 2
    assert "leave --device away" in said.complaint()


@pytest.mark.slow
def test_ctrl_c_leaves_nothing_half_done(run: Path, tmp_path: Path) -> None:
    arguments = ("repair", str(run), *SHIFTS, "--out", str(tmp_path / "out"))
    command = [sys.executable, "-m", "edgeflare", *arguments]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        assert process.stderr.readline().startswith("look")
        process.send_signal(signal.SIGINT)
        last = process.stderr.read().splitlines()[-1]
        assert process.wait(timeout=300) == 130
    assert last == f"edgeflare: stopped: nothing is written to {tmp_path / 'out'}"
    assert not (tmp_path / "out").exists()
