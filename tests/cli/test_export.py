"""`edgeflare export`: a zip that shows the deviation by itself, on either runtime."""

from __future__ import annotations

import ast
import importlib
import json
import re
import shutil
import sys
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock

import cv2
import numpy as np
import pytest
from ai_edge_litert.interpreter import Interpreter
from ai_edge_litert.interpreter import OpResolverType as Resolver

from called_commands import EXAMPLE, SMALL, call_here, completed, document_of, refused
from documents import run_pair
from edgeflare.models.tflite_graph import Graph
from edgeflare.replay.failing_operator import FailingOperator
from edgeflare.replay.reproduction_archive import Reproduction
from outside_buffers import with_buffers_outside
from reproductions import reproduce, unpacked
from small_pairs import write_clip_pair
from tampering import constant_of, with_constant

FAULTY = 2
"""The operator in whose biases a test plants a fault, a CONV_2D."""

MOST_LINES = 30
"""Of code: what somebody who gets a script from a stranger reads before running it."""

MOST_LINES_OF_FILES = 120
"""Likewise, of each of two files."""

RUNTIMES = {"numpy", "ai_edge_litert", "tflite_runtime"}


def first_of(run: Path) -> int:
    """The seed of a run's first finding."""
    seed_id: int = document_of(run)["findings"][0]["seed_id"]
    return seed_id


def exported(run: Path, folder: Path, *options: str) -> Path:
    """Export the first finding of a run, and unpack it."""
    completed("export", run, first_of(run), *options, "--out", folder / "f.zip")
    return unpacked(folder / "f.zip", folder / "f")


@pytest.fixture
def archive(finished: Any, tmp_path: Path) -> Path:
    """The first finding of a search, exported and unpacked."""
    return exported(finished.folder, tmp_path)


@pytest.fixture
def run(finished: Any, tmp_path: Path) -> Path:
    """A run, for the test to write into."""
    return Path(shutil.copytree(finished.folder, tmp_path / "run"))


def change(run: Path, **keys: Any) -> None:
    """Have the document of a run say something else, and leave out what is None."""
    document = document_of(run) | keys
    absent = {key for key, value in keys.items() if value is None}
    kept = {key: value for key, value in document.items() if key not in absent}
    (run / "run.json").write_text(json.dumps(kept))


def test_it_shows_the_deviation_by_itself(archive: Path) -> None:
    shown = reproduce(archive)
    assert shown.returncode == 0, shown.stderr
    told = document_of(archive, "finding.json")
    assert [arm["kernels"] for arm in told["arms"].values()] == ["xnnpack", "xnnpack", "builtin"]
    for name, arm in told["arms"].items():
        label = arm["label"]
        assert f"{name}: {label} here, {label} when it was found" in shown.stdout
    assert "It deviates here too." in shown.stdout
    pixels = cv2.imread(str(archive / "input.png"), cv2.IMREAD_UNCHANGED)
    given = np.load(archive / "original_input.npy")
    assert pixels is not None
    assert np.corrcoef(pixels.ravel(), given.ravel())[0, 1] > 0.999  # one image, twice
    host = told["run"]["host"]
    ran_on = f"the host: {host['machine']}, {host['runtime']} {host['runtime_version']}"
    assert told["arms"]["twin"]["ran_on"] == told["arms"]["original"]["ran_on"] == ran_on
    assert str(EXAMPLE) not in (archive / "finding.json").read_text()
    assert told["run"]["pair"]["compressed"] == "compressed.tflite"


@pytest.mark.old_board
def test_it_runs_on_the_other_runtime(archive: Path, old_board_python: Path) -> None:
    shown = reproduce(archive, old_board_python)
    assert shown.returncode in (0, 1), shown.stderr
    assert ("It deviates here too." in shown.stdout) == (shown.returncode == 0)
    for name in document_of(archive, "finding.json")["arms"]:
        assert re.search(rf"^{name}: \d+ here, ", shown.stdout, re.MULTILINE)


def test_the_script_is_short_and_needs_nothing_but_numpy_and_a_runtime(archive: Path) -> None:
    script = (archive / "reproduce.py").read_text()
    body = ast.parse(script).body[1:]
    told = {line for node in body for line in range(node.lineno, (node.end_lineno or 0) + 1)}
    code = [line for line in told if script.splitlines()[line - 1].strip()]
    assert len(code) <= MOST_LINES
    assert not re.search(r";\s*$|; \w+ =", script, re.MULTILINE)
    assert others_imported(archive / "reproduce.py") == RUNTIMES


def others_imported(script: Path) -> set[str]:
    """The packages that a documented script imports, beside the standard library's."""
    program = ast.parse(script.read_text())
    assert ast.get_docstring(program)
    names: set[str] = set()
    for node in ast.walk(program):
        if isinstance(node, ast.ImportFrom):
            names.add(str(node.module))
        elif isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
    return {name.split(".")[0] for name in names} - sys.stdlib_module_names


@pytest.mark.parametrize("kernels", ["tpu", "\x1b[2J"])
def test_kernels_that_there_are_not_are_one_line(run: Path, tmp_path: Path, kernels: str) -> None:
    devices = document_of(run)["devices"]
    devices[0]["provenance"]["kernels"] = kernels
    change(run, devices=devices)
    said = refused("export", run, first_of(run), "--out", tmp_path / "f.zip")
    assert "which this edgeflare does not know; it knows xnnpack, builtin" in said
    assert said.isprintable()


def test_without_models_it_says_which_ones_to_put_there(finished: Any, tmp_path: Path) -> None:
    folder = exported(finished.folder, tmp_path, "--no-models")

    assert not list(folder.glob("*.tflite"))
    told = document_of(folder, "finding.json")
    assert set(told["sha256"]) == {"original", "compressed"}
    assert told["compared"] == ["original", "device"]
    without = reproduce(folder)
    assert without.returncode == 2
    assert "device: not run here, " in without.stdout
    assert "It deviates here too." not in without.stdout
    assert "put compressed.tflite here" in without.stderr
    for name in ("original", "compressed"):
        (folder / f"{name}.tflite").write_bytes((EXAMPLE / f"{name}.tflite").read_bytes())
    assert "It deviates here too." in reproduce(folder).stdout


def test_what_does_not_deviate_is_not_said_to(archive: Path) -> None:
    """Nor are arms that may differ, since they are not compared."""
    told = document_of(archive, "finding.json")
    arms = told["arms"]
    arms["device"]["op_resolver"] = arms["twin"]["op_resolver"]
    (archive / "finding.json").write_text(json.dumps(told | {"compared": ["twin", "device"]}))
    shown = reproduce(archive)
    assert shown.returncode == 1, shown.stderr
    assert "It does not deviate here." in shown.stdout


@pytest.mark.slow
def test_the_operator_in_which_it_begins_stands_alone(tmp_path: Path) -> None:
    run = tmp_path / "run"
    budget = (
        *("--seed-ids", "11", "--max-queries", "700"),
        *("--shrink", "0", "--fail-on", "none", "--find", "kernel"),
    )
    call_here("search", EXAMPLE, *budget, "--device", "emulated-reference", "--out", run)
    seed_id = first_of(run)
    completed("explain", run, seed_id)
    said = call_here("export", run, seed_id, "--out", tmp_path / "f.zip")
    folder = unpacked(tmp_path / "f.zip", tmp_path / "f")

    told = document_of(folder, "finding.json")
    assert told["explanation"]["verdict"]["name"] == "kernel"
    parting, operator = told["explanation"]["device_and_twin"], told["operator"]
    assert {key: operator[key] for key in parting["onset"]} == parting["onset"]
    assert operator["what"].startswith("device and twin part here")
    assert operator["files"] == sorted(path.name for path in folder.glob("operator*"))
    named = f"{operator['name']} (operator {operator['operator_index']})"
    assert f"operator.tflite is {named}: {operator['what']}" in said.out
    by_kernels = {}
    for kernels in (Resolver.AUTO, Resolver.BUILTIN_REF):
        model = Interpreter(
            str(folder / "operator.tflite"), experimental_op_resolver_type=kernels, num_threads=1
        )
        model.allocate_tensors()
        for k, tensor in enumerate(model.get_input_details()):
            model.set_tensor(tensor["index"], np.load(folder / f"operator_input_{k}.npy"))
        model.invoke()
        by_kernels[kernels] = model.get_tensor(model.get_output_details()[0]["index"])
    on_the_host, on_the_device = by_kernels.values()
    assert np.array_equal(on_the_host, np.load(folder / "operator_output_0.npy"))
    assert not np.array_equal(on_the_host, on_the_device)


def test_the_same_finding_is_the_same_file_however_it_is_named(
    finished: Any, tmp_path: Path
) -> None:
    seed_id = first_of(finished.folder)
    by_number, by_file = tmp_path / "number.zip", tmp_path / "file.zip"
    completed("export", finished.folder, seed_id, "--out", by_number)
    completed("export", finished.folder, f"findings/{seed_id:06d}.png", "--out", by_file)
    assert by_number.read_bytes() == by_file.read_bytes()


def test_what_is_damaged_or_mended_is_not_exported(run: Path) -> None:
    image = run / f"findings/{first_of(run):06d}.png"
    image.write_bytes(image.read_bytes()[:40])
    assert f"{image} is not what was stored there" in refused("export", run, first_of(run))
    change(run, findings=[], deviating_seeds=[])
    said = refused("export", run, "0")
    assert said == f"{run} has no finding that still deviates: none to export"


def test_an_answer_that_is_not_finite_is_no_label(archive: Path) -> None:
    given = np.load(archive / "original_input.npy")
    np.save(archive / "original_input.npy", np.full_like(given, np.nan))
    assert "original: None here" in reproduce(archive).stdout


def test_a_delegate_that_the_script_does_not_load_is_named(run: Path, tmp_path: Path) -> None:
    devices = document_of(run)["devices"]
    devices[0]["provenance"]["delegate"] = "/vendor/lib/libnpu.so"
    change(run, devices=devices)
    shown = reproduce(exported(run, tmp_path))
    (line,) = [line for line in shown.stdout.splitlines() if line.startswith("device: ")]
    assert "with delegate /vendor/lib/libnpu.so, which this script does not load" in line


@pytest.mark.slow
def test_the_script_of_frames_has_a_short_file_beside_it_that_reads_outputs(tmp_path: Path) -> None:
    """Each frame of a clip is compared by itself."""
    pair = write_clip_pair(tmp_path / "pair")
    with (pair / "pair.toml").open("a") as file:
        file.write('[task]\nname = "classification"\nframes = "any"\n')
    short = ("--first", "6", "--max-queries", "200", "--shrink", "0", "--fail-on", "none")
    completed("search", pair, *short, "--out", tmp_path / "run")
    folder = exported(tmp_path / "run", tmp_path)
    shown = reproduce(folder)
    assert shown.returncode == 0, shown.stderr
    *arms, said = shown.stdout.splitlines()
    assert said == "It deviates here too."
    for line in arms:
        here, found = re.findall(r"(?:: |, )(\S.*?) (?:here|when it was found)", line)
        assert here == found
    scripts = list(folder.glob("*.py"))
    assert {path.name for path in scripts} == {"reproduce.py", "outputs.py"}
    for path in scripts:
        assert len(path.read_text().splitlines()) < MOST_LINES_OF_FILES
        assert others_imported(path) <= RUNTIMES
    (folder / "original.tflite").write_bytes((folder / "compressed.tflite").read_bytes())
    assert "It does not deviate here." in reproduce(folder).stdout


def test_the_name_of_an_operator_commands_no_terminal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    module = importlib.import_module("edgeflare.cli.export")
    operator = FailingOperator(1, "CONV\x1b[2J", "", "it \x1b]0;title\x07 begins")
    run = MagicMock()
    run.open.return_value.header.pair = run_pair()
    monkeypatch.setattr(module, "PastRun", run)
    monkeypatch.setattr(module, "load_explanations", lambda *_: None)
    made = Reproduction({}, operator)
    monkeypatch.setattr(module, "write_reproduction", lambda *_, **__: made)
    module.export(MagicMock(), tmp_path, "1")
    said = capsys.readouterr().out
    assert r"CONV\x1b[2J" in said
    assert "\x1b" not in said


@pytest.mark.slow
def test_a_pair_with_its_constants_behind_the_flatbuffer_is_searched_explained_and_exported(
    tmp_path: Path,
) -> None:
    pair = Path(shutil.copytree(EXAMPLE, tmp_path / "pair"))
    original, compressed = pair / "original.tflite", pair / "compressed.tflite"
    original.write_bytes(with_buffers_outside(original.read_bytes()))
    faulty = with_constant(
        compressed.read_bytes(),
        constant_of(compressed.read_bytes(), FAULTY, 2),
        lambda biases: biases + np.abs(biases).max() // 4,
    )
    compressed.write_bytes(with_buffers_outside(faulty))
    run, options = tmp_path / "run", ("--device", "emulated-xnnpack", "--fail-on", "none")
    completed("search", pair, *SMALL, *options, "--out", run)
    found = document_of(run)
    seed_id = (found["findings"] + found["deviating_seeds"])[0]["seed_id"]

    completed("explain", run, seed_id)
    (said,) = document_of(run, "explain.json")["findings"].values()
    assert said["twin_and_original"]["most"]["operator_index"] == FAULTY
    completed("export", run, seed_id, "--out", tmp_path / "f.zip")
    folder = unpacked(tmp_path / "f.zip", tmp_path / "f")
    (operator,) = Graph((folder / "operator.tflite").read_bytes()).operators
    assert operator.name == "CONV_2D"
    assert reproduce(folder).returncode == 0
