"""Tests of `edgeflare repair --method shifts`."""

from __future__ import annotations

import hashlib
import shutil
import signal
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

from brief_commands import brief_repairs
from called_commands import EXAMPLE, Said, completed, document_of, refused
from edgeflare.models.tflite_graph import Graph
from interrupted_commands import started
from tampering import COMPRESSED, constant_of, with_constant

pytestmark = pytest.mark.skipif(find_spec("sklearn") is None, reason="needs the extra repair")

SHIFTS = ("--method", "shifts")
DEVICES = ("emulated-xnnpack", "emulated-builtin")

NETWORK = """
from pathlib import Path

from ai_edge_litert.interpreter import Interpreter

interpreter = Interpreter(str(Path(__file__).with_name("original.tflite")))
interpreter.allocate_tensors()


def predict(image):
    interpreter.set_tensor(interpreter.get_input_details()[0]["index"], image)
    interpreter.invoke()
    return interpreter.get_tensor(interpreter.get_output_details()[0]["index"])
"""
"""An original that is no `.tflite` file."""


def moved_boundaries(content: bytes) -> bytes:
    """The example's compressed model with biases of its logits that prefer class 6 to class 2."""
    bias = constant_of(content, 9, 2)
    graph = Graph(content)
    (scale,) = {one.scales[0] for one in graph.tensors if one.name == bias}
    more = np.zeros(10)
    more[[6, 2]] = 0.8, -0.8
    return with_constant(content, bias, lambda steps: steps + np.rint(more / scale))


@pytest.fixture(scope="module", autouse=True)
def _brief() -> Iterator[None]:
    with brief_repairs(judged=120):
        yield


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A pair with moved boundaries and half of the seeds, whose original is a Python function."""
    folder = tmp_path_factory.mktemp("moved") / "pair"
    shutil.copytree(EXAMPLE, folder)
    with np.load(EXAMPLE / "seeds.npz") as arrays:
        np.savez(folder / "seeds.npz", images=arrays["images"][:100], labels=arrays["labels"][:100])
    (folder / "compressed.tflite").write_bytes(moved_boundaries(COMPRESSED.read_bytes()))
    (folder / "network.py").write_text(NETWORK)
    said = (folder / "pair.toml").read_text()
    (folder / "pair.toml").write_text(said.replace('"original.tflite"', '"network.py:predict"'))
    return folder


@pytest.fixture(scope="module")
def run(pair: Path) -> Path:
    """A run with enough triggers for five folds from the seeds to fit with."""
    folder = pair.with_name("run")
    devices = [word for name in DEVICES for word in ("--device", name)]
    options = (*devices, "--max-queries", "60", "--shrink", "0", "--fail-on", "none", "--trust")
    completed("search", pair, *options, "--rng-seed", "2", "--out", folder)
    return folder


@pytest.fixture(scope="module")
def fresh(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("fresh") / "fresh.npz"
    with np.load(EXAMPLE / "seeds.npz") as arrays:
        np.savez(path, images=arrays["images"][100:], labels=arrays["labels"][100:])
    return path


@pytest.fixture(scope="module")
def repaired(run: Path, pair: Path, fresh: Path) -> tuple[Path, Said]:
    """The run repaired by `auto`, which tries shifts alone since the original has no weights."""
    out = pair.with_name("repaired")
    original = ("--original", f"{pair / 'network.py'}:predict")
    options = ("--rounds", "1", "--test", fresh, "--max-latency", "none")
    return out, completed("repair", run, *original, *options, "--out", out)


@pytest.mark.slow
def test_shifts_are_judged_as_all_methods_are(repaired: tuple[Path, Said]) -> None:
    out, said = repaired
    found = document_of(out, "repair.json")
    assert "is no .tflite or .onnx file: of all methods shifts alone are tried" in said.err
    assert [one["name"] for one in found["candidates"]] == ["shifts"]
    assert found["seeds"] == {"fit": 60, "choose": 20, "judge": 20}
    assert found["written"], found["why"]
    assert found["chosen"] == "shifts"
    assert set(found["judged"]) == {"seeds", "tight", "wide", "sampled", "fresh"}
    scored = [found["judged"][name] for name in ("tight", "wide", "sampled")]
    assert sum(one["mended"] for one in scored) > 1.5 * sum(one["broken"] for one in scored)
    assert [one["device"] for one in found["on_devices"]] == list(DEVICES)
    for one in found["on_devices"]:
        asked = sum(figures["after"]["inputs"] for figures in one["sets"].values())
        assert one["inputs"] == asked
    assert found["on_devices"][0]["same_labels"] == found["on_devices"][0]["inputs"]
    assert found["repaired"]["recipe"] is None


@pytest.mark.slow
def test_shifts_are_fitted_to_triggers_from_the_seeds_to_fit_with_alone(
    repaired: tuple[Path, Said], run: Path
) -> None:
    (candidate,) = document_of(repaired[0], "repair.json")["candidates"]
    shifts = candidate["details"]["shifts"]
    inputs = shifts["inputs"]
    findings = document_of(run)["findings"]
    assert 25 <= inputs["triggers"] + inputs["not_reproduced"] <= 60 < len(findings)
    assert inputs["rounds"] == 1
    assert f"{inputs['triggers']} triggers and their seeds, " in repaired[1].out
    assert shifts["queries"]["near_boundary"] > 500
    assert shifts["repairers"]["second-class"]["inducing_ratio"] == 1.0
    assert shifts["repairers"]["shifts"]["net"]["low"] > 0.0
    # The fault that was planted: class 6 before class 2.
    steps = {tuple(one["classes"]): one["steps"] for one in shifts["shifts"]["pairs"]}
    assert steps[2, 6] > 0


@pytest.mark.slow
def test_the_model_and_the_shifts_alone_are_written(repaired: tuple[Path, Said]) -> None:
    out, _ = repaired
    found = document_of(out, "repair.json")
    alone = found["candidates"][0]["details"]["shifts"]["alone"]
    for name, sha256 in (
        ("repaired.tflite", found["repaired"]["sha256"]),
        (alone["file"], alone["sha256"]),
    ):
        assert hashlib.sha256((out / name).read_bytes()).hexdigest() == sha256
    assert len((out / alone["file"]).read_bytes()) == alone["size_bytes"]
    completed("search", out, "--first", "2", "--dry-run", "--trust")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("options", "says"),
    [
        (("--in-place",), "--method shifts rewrites the model: leave --in-place away"),
        (("--target", "int8-only"), "computes in float, which --target int8-only cannot"),
        (("--test", "missing.npz"), "missing.npz"),
        (("--test", "small.npz"), "small.npz"),
    ],
)
def test_what_cannot_be_is_refused_before_anything_is_done(
    options: tuple[str, ...],
    says: str,
    run: Path,
    pair: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    np.savez("small.npz", images=np.zeros((3, 8, 8), np.uint8))
    original = ("--original", f"{pair / 'network.py'}:predict")
    assert says in refused("repair", run, *original, *SHIFTS, *options, "--out", tmp_path / "out")
    assert not (tmp_path / "out").exists()


@pytest.mark.slow
def test_a_run_without_an_original(tmp_path: Path) -> None:
    pair, run = tmp_path / "pair", tmp_path / "run"
    shutil.copytree(EXAMPLE, pair, ignore=shutil.ignore_patterns("*.py"))
    said = (pair / "pair.toml").read_text()
    kept = [line for line in said.splitlines() if not line.startswith("original")]
    (pair / "pair.toml").write_text("\n".join(kept))
    options = (
        *("--find", "kernel", "--first", "1", "--max-queries", "20"),
        *("--shrink", "0", "--fail-on", "none"),
    )
    completed("search", pair, *options, "--out", run)

    assert "has no original model to repair towards" in refused(
        "repair", run, *SHIFTS, "--out", tmp_path / "out"
    )


@pytest.mark.slow
def test_ctrl_c_leaves_no_model_and_a_way_to_go_on(run: Path, pair: Path, tmp_path: Path) -> None:
    original = ("--original", f"{pair / 'network.py'}:predict")
    arguments = ("repair", str(run), *original, *SHIFTS, "--out", str(tmp_path / "out"))
    with started(*arguments) as process:
        assert process.stderr is not None
        assert any(line.startswith("inputs to choose") for line in process.stderr)
        process.send_signal(signal.SIGINT)
        last = process.stderr.read().splitlines()[-1]
        assert process.wait(timeout=300) == 130
    assert last == (
        f"edgeflare: stopped by Ctrl-C: the candidates that were tried are in {tmp_path / 'out'},"
        " no model is chosen; the same command with --resume goes on"
    )
    left = {"candidates", "contents.jsonl"}
    assert {path.name for path in (tmp_path / "out").iterdir()} == left
