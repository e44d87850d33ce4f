"""Conformance runs on runtimes that are not TFLite's: TFLite Micro, and the GPU accelerator."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from networks import write_pair
from reproductions import reproduce, unpacked

pytestmark = pytest.mark.slow

Call = Callable[..., Any]

ON_MICRO = ("--device", "emulated-micro", "--ops", "RELU6,GELU", "--dtype", "int8")
ON_GPU = ("--device", "emulated-gpu")


def document_of(run: Path) -> dict[str, Any]:
    document: dict[str, Any] = json.loads((run / "conform.json").read_bytes())
    return document


def test_what_micro_computes_wrongly_is_found_exported_and_tried_again(
    call: Call, tmp_path: Path
) -> None:
    run = tmp_path / "run"
    said = call("conform", *ON_MICRO, "--models", "16", "--out", run)
    assert said.code == 1, said.err
    document = document_of(run)
    assert document["device"]["runtime"] == "tflite-micro"
    counted = [one for one in document["findings"] if one["counted"]]
    assert [(one["operator"], one["symptom"]) for one in counted] == [("RELU6", "wrong values")]
    (refused,) = [one for one in document["refused"] if one["operator"] == "GELU"]
    assert refused["always"]
    assert refused["message"] == "TFLite Micro has no operator GELU"
    archive = tmp_path / "one.zip"
    assert call("export", run, counted[0]["number"], "--out", archive).code == 0
    shown = reproduce(unpacked(archive, tmp_path / "one"))
    assert shown.returncode == 0, shown.stderr
    assert "here with micro kernels" in shown.stdout
    said = call("replay", run, "--out", tmp_path / "again")
    assert said.code == 1, said.err


@pytest.mark.gpu
@pytest.mark.usefixtures("gpu")
def test_the_gpu_is_wrong_in_pointwise_convolutions_with_a_stride(
    call: Call, tmp_path: Path
) -> None:
    run = tmp_path / "run"
    # The network has such a convolution, so that it is found however little time there is to draw.
    network = write_pair(tmp_path / "pair", "pointwise") / "compressed.tflite"
    options = ("--from", network, "--ops", "CONV_2D", "--dtype", "int8", "--models", "1")
    said = call("conform", *ON_GPU, *options, "--time-limit", "15s", "--out", run)
    assert said.code == 1, said.err
    document = document_of(run)
    assert "SwiftShader" in document["device"]["adapter"]
    wrong = [
        one for one in document["findings"] if one["counted"] and one["symptom"] == "wrong values"
    ]
    assert wrong
    smallest = [one["smallest"]["operators"][0]["settings"] for one in wrong]
    assert all(
        (one["kernel_h"], one["kernel_w"]) == (1, 1)
        and max(one["stride_h"], one["stride_w"], one["groups"]) > 1
        for one in smallest
    )


@pytest.mark.gpu
@pytest.mark.usefixtures("gpu")
def test_pairs_are_run_on_the_gpu(call: Call, tmp_path: Path) -> None:
    run = tmp_path / "run"
    options = ("--ops", "RELU,ABS", "--dtype", "float32", "--pairs", "--models", "4")
    said = call("conform", *ON_GPU, *options, "--out", run)
    assert said.code in (0, 1), said.err
    document = document_of(run)
    assert "SwiftShader" in document["device"]["adapter"]
    assert document["coverage"]["pairs"]["covered"] > 0


def test_a_device_that_opens_no_model_is_one_line(
    call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    profile = tmp_path / "device_profiles" / "small.toml"
    profile.parent.mkdir()
    profile.write_text('extends = "emulated-micro"\narena_bytes = 64\n')
    said = call("conform", "--device", "small", "--models", "8", "--out", tmp_path / "run")
    assert said.code == 2
    assert said.err.startswith("edgeflare: no operator can be tried on small: its arena takes")
    assert said.err.strip().count("\n") == 0
