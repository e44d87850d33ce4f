"""What bad input of `edgeflare conform` gets: one line that says what to type, and exit code 2."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from ai_edge_litert import schema_py_generated as schema

from conformed_runs import conformed_run
from edgeflare.models.tflite_writer import written

Call = Callable[..., Any]

KNOWN = '[[known]]\noperator = "ADD"\ntype = "int8"\nverdict = "device"\nsymptom = "crash"\n'
REASON = 'reason = "a vendor\'s"\n'

BAD: dict[str, tuple[str, tuple[str, ...]]] = {
    # {m} is the folder of mistakes, {e} the example's folder.
    "unknown operator": (
        "--ops CONV_2",
        ("there is no operator CONV_2 (did you mean 'CONV_2D'?)", "`edgeflare conform --list`"),
    ),
    "unknown type": ("--dtype int9", ("there is no type int9", "int8", "--list")),
    "operator in no such type": ("--ops FLOOR --dtype int8", ("in int8", "the types float32")),
    "type of no operator": ("--ops ADD,FLOOR --dtype uint8", ("FLOOR does not exist in uint8",)),
    "no operator": ("--ops ADD,,MUL", ("--ops 'ADD,,MUL'", "separated by commas")),
    "no operator to list": ("--list --ops AD", ("there is no operator AD",)),
    "damaged model": (
        "--from {m}/half.tflite",
        ("half.tflite: its graph cannot be read", "name a .tflite file that is whole"),
    ),
    "no model": ("--from {m}/text.tflite", ("text.tflite", "name a .tflite file that is whole")),
    "a folder that is no pair": (
        "--from {m}",
        ("holds no pair.toml", "give the path of a .tflite file"),
    ),
    "no such model": ("--from {m}/hal.tflite", ("there is no model file", "half.tflite")),
    "a model of unknown operators": (
        "--from {m}/unknown.tflite",
        ("none of its operators is known", "`edgeflare conform --list`"),
    ),
    "a model without its weights": (
        "--from {m}/outside.tflite",
        ("are not in the file", "name a file that has them"),
    ),
    "a model without the operators": (
        "--from {e}/compressed.tflite --ops FLOOR",
        ("has none of the operators and types that --ops and --dtype name", "CONV_2D int8"),
    ),
    "no known.toml": ("--known {m}/know.toml", ("cannot be read", "known.toml")),
    "known that is no TOML": ("--known {m}/no.toml", ("is not valid TOML",)),
    "known of an unknown operator": (
        "--known {m}/operator.toml",
        ("table 1: operator is 'AD'", "`edgeflare conform --list`"),
    ),
    "known with an unknown key": (
        "--known {m}/key.toml",
        ("unknown key know", "begin each table by [[known]]"),
    ),
    "known with no condition": (
        "--known {m}/condition.toml",
        ("condition: 'wide' is no predicate: write one as",),
    ),
    "known with too little": ("--known {m}/known.toml", ("reason is missing: add it",)),
    "known with another verdict": ("--known {m}/verdict.toml", ("verdict is 'wrong'", "device")),
    "unknown device": ("--device emulated-bultin", ("emulated-builtin",)),
    "no time": ("--time-limit 0", ("--time-limit '0'", "above 0", "10m")),
    "no length of time": ("--time-limit soon", ("--time-limit 'soon'", "90s")),
    "no models": ("--models 0", ("--models", "1 or more")),
    "unknown drawing": ("--draw evenly", ("--draw", "uniform", "memo")),
    "resume without a run": ("--resume", ("add --out RUN",)),
    "resume of nothing": ("--resume --out {m}/nothing", ("there is no run directory",)),
    "resume of a folder": ("--resume --out {m}", ("is no run directory",)),
    "a folder of other things": ("--out {m}", ("is neither empty nor a run",)),
    "resume and overwrite": (
        "--resume --overwrite --out {m}",
        ("--resume goes on with a run and --overwrite replaces it",),
    ),
}


@pytest.fixture(scope="module")
def mistaken(tmp_path_factory: pytest.TempPathFactory, example: Path) -> Path:
    """A folder of models and tables that are not what they should be."""
    folder = tmp_path_factory.mktemp("mistaken")
    whole = (example / "compressed.tflite").read_bytes()
    (folder / "half.tflite").write_bytes(whole[: len(whole) // 2])
    (folder / "text.tflite").write_text("no model at all")
    (folder / "unknown.tflite").write_bytes(_of_unknown_operators(whole))
    (folder / "outside.tflite").write_bytes(_without_weights(whole))
    tables = {
        "no": "[[known]",
        "operator": (KNOWN + REASON).replace('"ADD"', '"AD"'),
        "key": (KNOWN + REASON).replace("[[known]]", "[[know]]"),
        "condition": f'{KNOWN}{REASON}condition = ["wide"]\n',
        "known": KNOWN,
        "verdict": (KNOWN + REASON).replace('"device"', '"wrong"'),
    }
    for name, text in tables.items():
        (folder / f"{name}.toml").write_text(text)
    return folder


@pytest.mark.parametrize("case", BAD)
def test_bad_input_is_answered_by_one_line(
    case: str, mistaken: Path, example: Path, call: Call, tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.chdir(tmp_path)
    text, said = BAD[case]
    answer = call("conform", *text.format(m=mistaken, e=example).split())
    assert answer.code == 2, answer
    complaint = answer.complaint()
    for part in said:
        assert part in complaint
    assert not list(tmp_path.iterdir())


@pytest.mark.slow
def test_a_device_without_a_runtime(
    call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for package in ("ai_edge_litert", "tflite_runtime"):
        (tmp_path / "hidden" / package).mkdir(parents=True)
        (tmp_path / "hidden" / package / "__init__.py").write_text("raise ImportError('hidden')")
    python = tmp_path / "python"
    python.write_text(
        f'#!/bin/sh\nexport PYTHONPATH="{tmp_path / "hidden"}"\nexec {sys.executable} "$@"\n'
    )
    python.chmod(0o755)
    (tmp_path / "device_profiles").mkdir()
    profile = f'description = "bare"\ntransport = "emulated"\npython = "{python}"\n'
    (tmp_path / "device_profiles" / "bare.toml").write_text(profile)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.chdir(tmp_path)
    said = call("conform", "--device", "bare", "--trust", "--out", tmp_path / "run")
    assert said.code == 2, said
    assert "no TFLite runtime is installed: pip install ai-edge-litert" in said.complaint()
    assert not (tmp_path / "run").exists()


@pytest.mark.slow
def test_a_run_is_gone_on_with_as_it_was_begun(
    call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = ("conform", "--ops", "FLOOR", "--models", "16")
    out = ("--out", tmp_path / "run")
    assert call(*run, *out).code == 0
    kept = {path.name: path.read_bytes() for path in (tmp_path / "run").glob("*.json")}
    assert kept

    def refused(said: str, *command: Any) -> None:
        answer = call(*command, *out, "--resume")
        assert (answer.code, said in answer.complaint()) == (2, True), answer
        assert "name the same again, or begin another run" in answer.complaint()

    refused("with --rng-seed 0, and this is --rng-seed 1", *run, "--rng-seed", "1")
    refused("with --models 16, and this is --models 17", *run[:-1], "17")
    refused("with --draw uniform, and this is --draw memo", *run, "--draw", "memo")
    refused(
        "with FLOOR in float32 (--ops, --dtype), and this is ABS",
        "conform",
        "--ops",
        "ABS",
        "--models",
        "16",
    )
    refused(
        "with a device with kernels builtin, and this is a device with kernels reference",
        *run,
        "--device",
        "emulated-reference",
    )
    shorter = call(*run, "--time-limit", "1m", *out, "--resume")
    assert (shorter.code, "leave out --time-limit" in shorter.complaint()) == (2, True), shorter
    monkeypatch.setattr(
        "edgeflare.cli.requested_conformance.specification_digest", lambda: "another"
    )
    refused("other declarations of the operators", *run)
    monkeypatch.undo()
    (tmp_path / "run" / "conform.json").write_text("{")
    damaged = call("report", tmp_path / "run")
    assert (damaged.code, "--resume writes it anew" in damaged.complaint()) == (2, True), damaged
    for path, content in kept.items():
        (tmp_path / "run" / path).write_bytes(content)
    again = call(*run, *out)
    assert (again.code, "holds a run already" in again.complaint()) == (2, True)
    assert kept == {path.name: path.read_bytes() for path in (tmp_path / "run").glob("*.json")}
    assert call(*run, *out, "--resume").code == 0


COMMANDS: dict[str, str] = {
    "explain": "explain {r}",
    "compare": "compare {r} {r}",
    "repair": "repair {r} --out {t}",
    "search": "search {e} --resume --out {r}",
    "survey": "survey {e} --resume --out {r}",
    "survey against it": "survey {e} --baseline {r} --out {t}",
}


@pytest.mark.parametrize("case", COMMANDS)
def test_commands_about_models_refuse_a_conformance_run(
    case: str, call: Call, tmp_path: Path, example: Path
) -> None:
    run = conformed_run(tmp_path / "run").path
    text = COMMANDS[case].format(r=run, e=example, t=tmp_path / "out")
    answer = call(*text.split())
    assert answer.code == 2, answer
    assert f"{run} holds a conformance run: type `edgeflare report {run}`" in answer.complaint()
    assert {one.name for one in tmp_path.iterdir()} == {"run"}


def test_a_conformance_run_does_not_go_on_with_a_search(
    call: Call, finished: Any, tmp_path: Path
) -> None:
    run = shutil.copytree(finished.folder, tmp_path / "run")
    answer = call("conform", "--ops", "FLOOR", "--models", "16", "--out", run, "--resume")
    assert (answer.code, "holds no conformance run" in answer.complaint()) == (2, True)


def test_a_conformance_run_does_not_go_on_with_a_replay(call: Call, tmp_path: Path) -> None:
    run = conformed_run(tmp_path / "run").path
    answer = call("conform", "--ops", "FLOOR", "--models", "16", "--out", run, "--resume")
    assert (answer.code, "holds a replay of a conformance run" in answer.complaint()) == (2, True)


def test_a_replay_has_no_conformance_run_as_its_baseline(
    call: Call, finished: Any, tmp_path: Path
) -> None:
    run = conformed_run(tmp_path / "run").path
    answer = call("replay", finished.folder, "--baseline", run, "--out", tmp_path / "out")
    assert (answer.code, "holds a conformance run" in answer.complaint()) == (2, True)
    assert not (tmp_path / "out").exists()


def _of_unknown_operators(whole: bytes) -> bytes:
    """Return a model all of whose operators are custom ones."""
    model = schema.ModelT.InitFromPackedBuf(whole)
    for code in model.operatorCodes:
        code.builtinCode, code.customCode = schema.BuiltinOperator.CUSTOM, b"Mfcc"
        code.deprecatedBuiltinCode = schema.BuiltinOperator.CUSTOM
    return written(model)


def _without_weights(whole: bytes) -> bytes:
    """Return a model whose constants lie in files of their own."""
    model = schema.ModelT.InitFromPackedBuf(whole)
    for tensor in model.subgraphs[0].tensors:
        if model.buffers[tensor.buffer].data is not None:
            tensor.buffer, tensor.externalBuffer = 0, 1
    return written(model)
