"""`edgeflare export`: a zip that shows the deviation by itself, on either runtime."""

from __future__ import annotations

import ast
import importlib
import json
import re
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock

import cv2
import numpy as np
import pytest
from ai_edge_litert.interpreter import Interpreter
from ai_edge_litert.interpreter import OpResolverType as Resolver

from edgeflare.models.pair_interface import PairInterface
from edgeflare.replay.reproduction_archive import Reproduction
from reproductions import reproduce, unpacked

Call = Callable[..., Any]

MOST_LINES = 30
"""Of code: what somebody who gets a script from a stranger reads before running it."""


def seeds_of(run: Path) -> list[int]:
    document = json.loads((run / "run.json").read_bytes())
    return [entry["seed_id"] for entry in document["findings"]]


def test_it_shows_the_deviation_by_itself(finished: Any, call: Call, tmp_path: Path) -> None:
    for seed_id in seeds_of(finished.folder)[:2]:
        archive = tmp_path / f"{seed_id}.zip"
        said = call("export", finished.folder, seed_id, "--out", archive)
        assert said.code == 0
        assert str(archive) in said.out
        folder = unpacked(archive, tmp_path / str(seed_id))

        shown = reproduce(folder)

        assert shown.returncode == 0, shown.stderr
        arms = json.loads((folder / "finding.json").read_bytes())["arms"]
        assert [arm["kernels"] for arm in arms.values()] == ["xnnpack", "xnnpack", "builtin"]
        for name, arm in arms.items():
            label = arm["label"]
            assert f"{name}: {label} here, {label} when it was found" in shown.stdout
        assert "It deviates here too." in shown.stdout
        pixels = cv2.imread(str(folder / "input.png"), cv2.IMREAD_UNCHANGED)
        given = np.load(folder / "original_input.npy")
        assert pixels is not None
        assert np.corrcoef(pixels.ravel(), given.ravel())[0, 1] > 0.999  # one image, twice


@pytest.mark.old_board
def test_it_runs_on_the_other_runtime(
    finished: Any, call: Call, tmp_path: Path, old_board_python: Path
) -> None:
    call("export", finished.folder, seeds_of(finished.folder)[0], "--out", tmp_path / "f.zip")
    folder = unpacked(tmp_path / "f.zip", tmp_path / "f")

    shown = reproduce(folder, old_board_python)

    assert shown.returncode in (0, 1), shown.stderr
    assert ("It deviates here too." in shown.stdout) == (shown.returncode == 0)
    for name in json.loads((folder / "finding.json").read_bytes())["arms"]:
        assert re.search(rf"^{name}: \d+ here, ", shown.stdout, re.MULTILINE)


def test_the_script_is_short_and_needs_nothing_but_numpy_and_a_runtime(
    finished: Any, call: Call, tmp_path: Path
) -> None:
    call("export", finished.folder, seeds_of(finished.folder)[0], "--out", tmp_path / "f.zip")
    script = (unpacked(tmp_path / "f.zip", tmp_path / "f") / "reproduce.py").read_text()
    program = ast.parse(script)
    told = {
        line for node in program.body[1:] for line in range(node.lineno, (node.end_lineno or 0) + 1)
    }
    code = [line for line in told if script.splitlines()[line - 1].strip()]
    assert len(code) <= MOST_LINES
    assert ast.get_docstring(program)
    assert not re.search(r";\s*$|; \w+ =", script, re.MULTILINE)
    imported = {
        name.split(".")[0]
        for node in ast.walk(program)
        if isinstance(node, (ast.Import, ast.ImportFrom))
        for name in ([node.module] if isinstance(node, ast.ImportFrom) else [])
        + [alias.name for alias in node.names if isinstance(node, ast.Import)]
        if name
    }
    ours = {"numpy", "ai_edge_litert", "tflite_runtime"}
    assert imported - sys.stdlib_module_names == ours


@pytest.mark.parametrize("kernels", ["tpu", "\x1b[2J"])
def test_kernels_that_there_are_not_are_one_line(
    finished: Any, call: Call, tmp_path: Path, kernels: str
) -> None:
    run = shutil.copytree(finished.folder, tmp_path / "run")
    document = json.loads((run / "run.json").read_bytes())
    for device in document["devices"]:
        device["provenance"]["kernels"] = kernels
    (run / "run.json").write_text(json.dumps(document))
    said = call("export", run, seeds_of(run)[0], "--out", tmp_path / "f.zip")
    assert said.code == 2
    assert "which this edgeflare does not know; it knows xnnpack, builtin" in said.err
    assert said.err.rstrip("\n").isprintable()


def test_without_models_it_says_which_ones_to_put_there(
    finished: Any, example: Path, call: Call, tmp_path: Path
) -> None:
    archive = tmp_path / "f.zip"
    call("export", finished.folder, seeds_of(finished.folder)[0], "--no-models", "--out", archive)
    folder = unpacked(archive, tmp_path / "f")

    assert not list(folder.glob("*.tflite"))
    told = json.loads((folder / "finding.json").read_bytes())
    assert set(told["sha256"]) == {"original", "compressed"}
    assert told["compared"] == ["original", "device"]
    without = reproduce(folder)
    assert without.returncode == 2
    assert "device: not run here, " in without.stdout
    assert "It deviates here too." not in without.stdout
    assert "put compressed.tflite here" in without.stderr
    for name in ("original", "compressed"):
        (folder / f"{name}.tflite").write_bytes((example / f"{name}.tflite").read_bytes())
    assert "It deviates here too." in reproduce(folder).stdout


def test_an_input_that_does_not_deviate_is_not_said_to(
    finished: Any, call: Call, tmp_path: Path
) -> None:
    call("export", finished.folder, seeds_of(finished.folder)[0], "--out", tmp_path / "f.zip")
    folder = unpacked(tmp_path / "f.zip", tmp_path / "f")
    (folder / "original.tflite").write_bytes((folder / "compressed.tflite").read_bytes())
    (folder / "original_input.npy").write_bytes((folder / "compressed_input.npy").read_bytes())

    shown = reproduce(folder)

    assert shown.returncode == 1
    assert "It does not deviate here." in shown.stdout


@pytest.mark.slow
def test_the_operator_in_which_it_begins_stands_alone(
    example: Path, call: Call, tmp_path: Path
) -> None:
    run = tmp_path / "run"
    budget = (
        *("--first", "12", "--max-queries", "300"),
        *("--shrink", "0", "--fail-on", "none", "--find", "kernel"),
    )
    call("search", example, *budget, "--device", "emulated-reference", "--out", run)
    seed_id = seeds_of(run)[0]
    assert call("explain", run, seed_id).code == 0
    said = call("export", run, seed_id, "--out", tmp_path / "f.zip")
    folder = unpacked(tmp_path / "f.zip", tmp_path / "f")

    told = json.loads((folder / "finding.json").read_bytes())
    assert told["explanation"]["verdict"]["name"] == "kernel"
    parting, operator = told["explanation"]["device_and_twin"], told["operator"]
    assert {key: operator[key] for key in parting["onset"]} == parting["onset"]
    assert operator["what"].startswith("device and twin part here")
    assert operator["files"] == sorted(path.name for path in folder.glob("operator*"))
    named = f"{operator['name']} (operator {operator['operator']})"
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


def test_the_same_finding_is_the_same_file(finished: Any, call: Call, tmp_path: Path) -> None:
    seed_id = seeds_of(finished.folder)[0]
    for name in ("one.zip", "two.zip"):
        call("export", finished.folder, seed_id, "--out", tmp_path / name)

    assert (tmp_path / "one.zip").read_bytes() == (tmp_path / "two.zip").read_bytes()


def test_a_seed_that_led_to_nothing(finished: Any, call: Call, tmp_path: Path) -> None:
    said = call("export", finished.folder, "999", "--out", tmp_path / "f.zip")

    assert said.code == 2
    assert said.complaint().startswith(f"{finished.folder} has no finding from seed 999; it has")
    assert not (tmp_path / "f.zip").exists()


def test_a_finding_is_named_by_its_image_too(finished: Any, call: Call, tmp_path: Path) -> None:
    seed_id = seeds_of(finished.folder)[0]
    by_number, by_image = tmp_path / "number.zip", tmp_path / "image.zip"
    assert call("export", finished.folder, seed_id, "--out", by_number).code == 0
    image = f"findings/{seed_id:06d}.png"
    assert call("export", finished.folder, image, "--out", by_image).code == 0
    assert by_number.read_bytes() == by_image.read_bytes()
    said = call("export", finished.folder, "abc", "--out", tmp_path / "f.zip")
    assert said.code == 2
    assert said.complaint() == "abc is no finding: name it by its seed's id, or by its file"


def test_a_damaged_image_is_the_users_to_mend(finished: Any, call: Call, tmp_path: Path) -> None:
    run = Path(shutil.copytree(finished.folder, tmp_path / "run"))
    seed_id = seeds_of(run)[0]
    image = run / f"findings/{seed_id:06d}.png"
    image.write_bytes(image.read_bytes()[:40])
    said = call("export", run, seed_id)
    assert said.code == 2
    assert f"{image} is not what was stored there" in said.complaint()


def test_a_run_of_which_all_is_mended_has_nothing_to_export(
    finished: Any, call: Call, tmp_path: Path
) -> None:
    run = Path(shutil.copytree(finished.folder, tmp_path / "run"))
    document = json.loads((run / "run.json").read_bytes())
    (run / "run.json").write_text(json.dumps(document | {"findings": [], "deviating_seeds": []}))
    said = call("export", run, "0")
    assert said.code == 2
    assert said.complaint() == f"{run} has no finding that still deviates: none to export"


def test_where_it_ran_is_said_of_the_host_too(finished: Any, call: Call, tmp_path: Path) -> None:
    seed_id, archive = seeds_of(finished.folder)[0], tmp_path / "f.zip"
    call("export", finished.folder, seed_id, "--out", archive)
    told = json.loads((unpacked(archive, tmp_path / "f") / "finding.json").read_bytes())
    host = told["run"]["host"]
    ran_on = f"the host: {host['machine']}, {host['runtime']} {host['runtime_version']}"
    assert told["arms"]["twin"]["ran_on"] == told["arms"]["original"]["ran_on"] == ran_on


def test_a_run_that_does_not_know_its_host_is_exported_all_the_same(
    finished: Any, call: Call, tmp_path: Path
) -> None:
    run = Path(shutil.copytree(finished.folder, tmp_path / "run"))
    document = json.loads((run / "run.json").read_bytes())
    del document["host"]
    (run / "run.json").write_text(json.dumps(document))
    assert call("export", run, seeds_of(run)[0], "--out", tmp_path / "f.zip").code == 0
    told = json.loads((unpacked(tmp_path / "f.zip", tmp_path / "f") / "finding.json").read_bytes())
    assert told["arms"]["twin"]["ran_on"] == "the host"


def test_arms_that_are_not_compared_may_differ(finished: Any, call: Call, tmp_path: Path) -> None:
    call("export", finished.folder, seeds_of(finished.folder)[0], "--out", tmp_path / "f.zip")
    folder = unpacked(tmp_path / "f.zip", tmp_path / "f")
    told = json.loads((folder / "finding.json").read_bytes())
    told["compared"] = ["twin", "device"]
    told["arms"]["device"]["op_resolver"] = told["arms"]["twin"]["op_resolver"]
    (folder / "finding.json").write_text(json.dumps(told))

    shown = reproduce(folder)

    assert shown.returncode == 1, shown.stderr
    assert "It does not deviate here." in shown.stdout


def test_an_answer_that_is_not_finite_is_no_label(
    finished: Any, call: Call, tmp_path: Path
) -> None:
    call("export", finished.folder, seeds_of(finished.folder)[0], "--out", tmp_path / "f.zip")
    folder = unpacked(tmp_path / "f.zip", tmp_path / "f")
    given = np.load(folder / "original_input.npy")
    np.save(folder / "original_input.npy", np.full_like(given, np.nan))

    assert "original: None here" in reproduce(folder).stdout


def test_a_delegate_that_the_script_does_not_load_is_named(
    finished: Any, call: Call, tmp_path: Path
) -> None:
    run = tmp_path / "run"
    shutil.copytree(finished.folder, run)
    document = json.loads((run / "run.json").read_bytes())
    document["devices"][0]["provenance"]["delegate"] = "/vendor/lib/libnpu.so"
    (run / "run.json").write_text(json.dumps(document))
    call("export", run, seeds_of(run)[0], "--out", tmp_path / "f.zip")

    shown = reproduce(unpacked(tmp_path / "f.zip", tmp_path / "f"))

    (line,) = [line for line in shown.stdout.splitlines() if line.startswith("device: ")]
    assert "with delegate /vendor/lib/libnpu.so, which this script does not load" in line


def test_no_path_of_the_user_is_in_it(
    finished: Any, example: Path, call: Call, tmp_path: Path
) -> None:
    call("export", finished.folder, seeds_of(finished.folder)[0], "--out", tmp_path / "f.zip")
    folder = unpacked(tmp_path / "f.zip", tmp_path / "f")
    told = (folder / "finding.json").read_text()

    assert str(example) not in told
    assert json.loads(told)["run"]["pair"]["compressed"] == "compressed.tflite"


def test_the_name_of_an_operator_commands_no_terminal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    module = importlib.import_module("edgeflare.cli.export")
    operator = {"name": "CONV\x1b[2J", "operator": 1, "what": "it \x1b]0;title\x07 begins"}
    run = MagicMock()
    run.open.return_value.header.pair = {**PairInterface().to_json(), "fingerprint": ""}
    monkeypatch.setattr(module, "PastRun", run)
    monkeypatch.setattr(module, "load_explanations", lambda *_: None)
    made = Reproduction({}, operator)
    monkeypatch.setattr(module, "write_reproduction", lambda *_, **__: made)
    module.export(MagicMock(), tmp_path, "1")
    said = capsys.readouterr().out
    assert r"CONV\x1b[2J" in said
    assert "\x1b" not in said
