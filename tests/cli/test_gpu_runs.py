"""Runs on emulated-gpu: from a search to its explanation and its replay, and what is refused."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from networks import write_pair

pytestmark = [pytest.mark.slow, pytest.mark.gpu, pytest.mark.usefixtures("gpu")]

Call = Callable[..., Any]

EXAMPLES = Path(__file__).parents[2] / "examples"
WORDS = EXAMPLES / "spoken_words"
BUDGET = (
    *("--find", "kernel", "--device", "emulated-gpu", "--first", "3", "--max-queries", "100"),
    *("--shrink", "0", "--within", "none", "--ensemble", "xnnpack,dequantized"),
)
SHORTCUT = 6
"""The operator of the network that is a 1×1 convolution with a stride, where it is first wrong."""


@pytest.fixture
def run(tmp_path: Path, call: Call) -> Path:
    folder = tmp_path / "run"
    pair = write_pair(tmp_path / "pair", "resnet")
    said = call("search", pair, *BUDGET, "--fail-on", "none", "--out", folder)
    assert said.code == 0, said.err
    assert "nodes accelerated on SwiftShader" in " ".join(said.out.split())
    return folder


def document_of(run: Path) -> dict[str, Any]:
    document: dict[str, Any] = json.loads((run / "run.json").read_bytes())
    return document


def test_a_run_is_explained_and_replayed_and_says_on_what_it_computed(
    run: Path, call: Call, tmp_path: Path
) -> None:
    document = document_of(run)
    (device,) = document["devices"]
    what = device["provenance"]
    assert (what["kernels"], what["precision"], what["fallback"]) == ("gpu", "fp32", False)
    assert "SwiftShader" in what["adapter"]
    assert what["delegated_nodes"] == what["total_nodes"]
    assert document["ensemble"] == ["xnnpack", "dequantized"]
    assert len(document["deviating_seeds"]) == 3
    assert call("explain", run, "--model-explorer").code == 0
    explained = [*json.loads((run / "explain.json").read_bytes())["findings"].values()]
    assert [one["verdict"]["which"] for one in explained] == ["GPU accelerator"] * 3
    assert [one["device_and_twin"]["onset"]["operator"] for one in explained] == [SHORTCUT] * 3
    overlay = run / "explain" / f"{explained[0]['seed_id']:06d}.model-explorer" / "6-verdict.json"
    marks = json.loads(overlay.read_bytes())["main"]["results"]
    assert marks[str(SHORTCUT)]["value"] == "kernel (GPU accelerator); onset"
    said = call("export", run, str(document["deviating_seeds"][0]["seed_id"]))
    assert said.code == 2
    assert "the script of an export does not run" in said.err
    said = call("replay", run, "--out", tmp_path / "again")
    assert said.code == 1, said.err
    assert len(document_of(tmp_path / "again")["deviating_seeds"]) == 3


def test_a_model_that_it_refuses_is_one_line(call: Call, tmp_path: Path) -> None:
    options = ("--device", "emulated-gpu", "--first", "2", "--out", tmp_path / "run")
    said = call("search", EXAMPLES / "fashion_lenet4", *options)
    assert said.code == 2
    assert "tensors that are sized while it runs" in said.err
    assert "add --fold-shapes" in said.err
    assert said.err.strip().count("\n") == 0


def test_without_a_driver_it_says_what_to_install(
    call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("VK_DRIVER_FILES", "VK_ICD_FILENAMES"):
        monkeypatch.setenv(name, "/nowhere/at_all.json")
    options = ("--device", "emulated-gpu", "--first", "2", "--out", tmp_path / "run")
    said = call("search", WORDS, *options)
    assert said.code == 2
    assert "apt-get install libvulkan1 chromium" in said.err
    assert said.err.strip().count("\n") == 0
