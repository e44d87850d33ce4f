"""Layers of the cases: which are blamed, which are not, and which cannot be seen."""

from __future__ import annotations

import json
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from called_commands import call_here
from edgeflare.diagnose.compression_localization import CompressionLocalizer
from edgeflare.models.model_probe import HostProbe
from edgeflare.models.tflite_file import read_model
from edgeflare.models.tflite_graph import Graph
from edgeflare.models.tflite_writer import written
from public_cases import copied_case
from tampering import class_reader

SEARCH = ("--max-queries", "20", "--shrink", "0", "--within", "none", "--fail-on", "none")


def explained(pair: Path, *options: str) -> tuple[str, list[dict[str, Any]]]:
    """Search a pair and explain what is found; return what is printed, and the entries."""
    run = pair / "run"
    searched = call_here("search", pair, *SEARCH, *options, "--out", run)
    assert searched.code == 0, searched.err
    said = call_here("explain", run)
    assert said.code == 0, said.err
    document = json.loads((run / "explain.json").read_bytes())
    return " ".join(said.out.split()), list(document["findings"].values())


@pytest.mark.slow
def test_channels_first_and_last_lead_to_the_same_findings_and_layers(tmp_path: Path) -> None:
    answers = []
    for last in ((), ("original",), ("compressed",), ("original", "compressed")):
        pair = copied_case("nchw_tflite", tmp_path / "_".join(last))
        for name in last:
            file = pair / f"{name}.tflite"
            file.write_bytes(without_first_operator(file.read_bytes()))
        said, found = explained(pair, "--limit", "1", "--max-queries", "100")
        assert "not seen" not in said
        (finding,) = json.loads((pair / "run" / "run.json").read_bytes())["findings"]
        layers = found[0]["twin_and_original"]["layers"]
        seen = {layer["name"]: layer["residual"] for layer in layers}
        seen.pop("TRANSPOSE", None)  # only where both files have it
        answers.append((finding["labels"], finding["distortion"], seen))
    assert answers[1:] == answers[:1] * 3
    assert {"CONV_2D", "FULLY_CONNECTED"} <= answers[0][2].keys()


def without_first_operator(content: bytes) -> bytes:
    """A file whose input is what its first operator makes of it: with its channels last."""
    model = read_model(content)
    graph = model.subgraphs[0]
    (made,) = graph.operators.pop(0).outputs
    graph.inputs = [made]
    for signature in model.signatureDefs or []:
        signature.inputs[0].tensorIndex = made
    return written(model)


@pytest.mark.slow
@pytest.mark.gpu
@pytest.mark.usefixtures("gpu")
def test_no_layer_before_a_split_and_its_sum_is_blamed_on_the_accelerator(tmp_path: Path) -> None:
    pair = copied_case("gpu_split_add", tmp_path)
    _, found = explained(pair, "--device", "emulated-gpu", "--find", "kernel", "--first", "2")
    assert len(found) == 2
    for one in found:
        where = one["device_and_twin"]
        assert one["verdict"]["which"] == "GPU accelerator"
        assert where["most"] is None
        # Operator 8 is the SPLIT, and 9 the ADD of its halves.
        assert where["onset"] is None or where["onset"]["operator"] >= 8
        hidden = {layer["operator"] for layer in where["layers"] if layer["hidden"]}
        assert {0, 8} <= hidden
        assert "SPLIT (operator 8)" in where["note"]


def test_int4_weights_are_read(tmp_path: Path) -> None:
    _, found = explained(copied_case("int4_weights", tmp_path), "--first", "4")
    assert found
    for one in found:
        layers = {layer["name"]: layer for layer in one["twin_and_original"]["layers"]}
        # Four bits are rounded to the nearest of their own steps.
        for name in ("CONV_2D", "FULLY_CONNECTED"):
            assert 0.4 < layers[name]["constants"] <= layers[name]["constants_explained"] < 0.6
        assert one["twin_and_original"]["most"] is None


def test_the_layers_of_a_network_with_a_state_are_seen_and_rounding_in_it_is_no_fault(
    tmp_path: Path,
) -> None:
    said, found = explained(
        copied_case("lstm_state", tmp_path), "--first", "3", "--max-queries", "120"
    )
    assert found
    assert "not seen" not in said
    for one in found:
        layers = one["twin_and_original"]["layers"]
        assert layers[0]["name"] == "UNIDIRECTIONAL_SEQUENCE_LSTM"
        assert layers[0]["constants"] <= layers[0]["constants_explained"]
        assert not any(layer["beyond"] for layer in layers)
        assert all(layer["own"] for layer in one["device_and_twin"]["layers"])


def test_weights_that_are_rounded_along_the_wrong_axis_are_blamed(tmp_path: Path) -> None:
    _, found = explained(copied_case("conv_transpose_axis", tmp_path), "--first", "2")
    assert len(found) == 2
    for one in found:
        most = one["twin_and_original"]["most"]
        assert (most["name"], most["operator"]) == ("TRANSPOSE_CONV", 3)


def test_the_layers_of_a_detector_with_its_own_post_processing_are_seen(tmp_path: Path) -> None:
    """The rows beyond its number of objects are as the memory was, and tell nothing."""
    pair = copied_case("detection_postprocess/named", tmp_path)
    said, found = explained(pair, "--first", "3", "--max-queries", "40")
    assert found
    assert "not seen" not in said
    for one in found:
        where, error = one["device_and_twin"], one["twin_and_original"]
        assert where["method"] == "capture"
        assert where["perturbation"] is None
        assert error["layers"][-1]["name"] == "TFLite_Detection_PostProcess"
        for vote in one["evidence"]["votes"]:
            assert len(set(vote["outputs_crc32"])) == 1
        assert error["most"] is None


def test_filters_that_are_all_zero_are_no_fault(tmp_path: Path) -> None:
    pair = copied_case("dead_channels", tmp_path)
    original, compressed = (
        Graph((pair / name).read_bytes()) for name in ("original.tflite", "compressed.tflite")
    )
    content = (pair / "original.tflite").read_bytes()
    with np.load(pair / "seeds.npz") as seeds:
        images = next(iter(seeds.values()))[:4].astype(np.float32) / 255
    localizer = CompressionLocalizer(
        compressed,
        original,
        content,
        lambda model, capture: HostProbe(model, "xnnpack", capture=capture),
        class_reader(content),
    )
    given = compressed.tensors[compressed.inputs[0]]
    with (
        closing(localizer),
        HostProbe((pair / "compressed.tflite").read_bytes(), "xnnpack", capture=True) as probe,
    ):
        for image in images.reshape(-1, *given.shape):
            raw = given.raw(image.astype(np.float64)) if given.scales else image
            twin = dict(zip(probe.made, probe.run([raw]), strict=True))
            found = localizer.find({compressed.inputs[0]: raw, **twin}, image)
            assert found.layers
            assert (found.beyond, found.coarse, found.note) == ((), (), "")
