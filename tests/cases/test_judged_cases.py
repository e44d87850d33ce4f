"""Cases of which seeds say what is right, or all of whose answers tie: what every command says."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from ai_edge_litert import schema_py_generated as schema
from ai_edge_litert.interpreter import Interpreter
from numpy.typing import NDArray

from called_commands import Said, call_here, completed, document_of
from graph_writer import GraphWriter
from public_cases import copied_case

pytestmark = pytest.mark.slow


def outputs_of(pair: Path, inputs: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return what the original of a pair answers: (inputs, *shape)."""
    model = Interpreter(str(pair / "original.tflite"))
    model.allocate_tensors()
    taken, given = model.get_input_details()[0]["index"], model.get_output_details()[0]["index"]
    answers = []
    for one in inputs:
        model.set_tensor(taken, one[None])
        model.invoke()
        answers.append(model.get_tensor(given)[0])
    return np.stack(answers)


def test_values_are_right_within_the_tolerance(tmp_path: Path) -> None:
    pair = copied_case("regression_saturates", tmp_path)
    images = np.load(pair / "seeds.npz")["images"]
    values = outputs_of(pair, (images / 255.0).astype(np.float32))
    targets = values + 1.0
    targets[:2], targets[2] = values[:2] + 5.0, np.nan
    np.savez(pair / "seeds.npz", images=images, targets=targets)
    run = tmp_path / "run"
    survey = ("survey", pair, "--conditions", "none", "--gate", "accuracy-drop<0.5", "--out", run)
    completed(*survey, code=1)
    document = document_of(run, "survey.json")
    known = len(images) - 1
    accuracy = document["unchanged"]["accuracy"]
    assert document["labelled"] == accuracy["twin"]["items"] == known
    assert accuracy["original"]["count"] == known - 2
    assert accuracy["device"]["value"] < 0.1
    assert accuracy["drop"]["low"] > 0.8
    assert accuracy["distance"]["original"] == pytest.approx((known - 2 + 10) / known)
    assert accuracy["distance"]["device"]["value"] > 40.0


def test_masks_are_right_where_they_overlap_enough(tmp_path: Path) -> None:
    pair = copied_case("resize_half_pixel", tmp_path)
    images = np.load(pair / "seeds.npz")["images"]
    masks = outputs_of(pair, (images / 127.5 - 1.0).astype(np.float32)).argmax(axis=-1)
    masks[:, 0] = 255
    np.savez(pair / "seeds.npz", images=images, targets=masks.astype(np.uint8))
    run = tmp_path / "run"
    search = ("search", pair, "--max-queries", "1", "--fail-on", "harmful", "--out", run)
    shown = " ".join(call_here(*search, "--dry-run").out.split())
    assert f"{len(images)} have targets; right on them: original 100.0%, twin 5" in shown
    assert "mean IoU on them, on average: original 1, twin 0.78" in shown
    call_here(*search)
    document = document_of(run)
    harm = document["unmutated"]["seeds"]["harm"]
    assert sum(harm.values()) == document["unmutated"]["seeds"]["deviating"]
    assert set(harm) == {"original-right"}
    assert {entry["seed_target"][:5] for entry in document["deviating_seeds"]} == {"paper"}


SEEDS, CLASSES = 40, 4

BOUNDS = ("--max-queries", "5", "--shrink", "0", "--trust")

TOML = """
name = "flat"
original = "original.tflite"
compressed = "compressed.tflite"
seeds = "seeds.npz"

[task]
name = "classification"

[inputs.x]
domain = "array"
lowest = -4.0
highest = 4.0

[device.inputs.x]
std = 1e6
"""


@pytest.fixture(scope="module")
def flat(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a pair whose device makes 0 of all that it is given, so that all classes are equal."""
    folder = tmp_path_factory.mktemp("flat")
    shape = (1, CLASSES)
    for name, dtype in (("original", "FLOAT32"), ("compressed", "INT8")):
        quantized = dtype == "INT8"
        graph = GraphWriter()
        x = graph.tensor("x", shape, dtype, (8 / 255, 0) if quantized else None)
        y = graph.tensor("y", shape, dtype, (1 / 256, -128) if quantized else None)
        options = schema.SoftmaxOptionsT()
        options.beta = 1.0
        graph.operator("SOFTMAX", [x], [y], options, 2 if quantized else 1)
        graph.save(folder / f"{name}.tflite", [x], [y])
    seeds = np.random.default_rng(0).uniform(-4.0, 4.0, (SEEDS, CLASSES)).astype(np.float32)
    np.savez(folder / "seeds.npz", x=seeds, labels=seeds.argmax(axis=1))
    (folder / "pair.toml").write_text(TOML)
    return folder


def assert_all_say_it(pair: Path, runs: Path, device: str, call: Callable[..., Said]) -> Any:
    """Hold search, dry run and survey to what a device does that gives all classes one score."""
    given = (pair, "--device", device)
    with np.load(pair / "seeds.npz") as arrays:
        labels = arrays["labels"].tolist()
    wrong = sum(label != 0 for label in labels)

    told = call("search", *given, *BOUNDS, "--dry-run")
    words = " ".join(told.out.split())
    assert "already deviate, " in words
    assert "the device's outputs hardly vary over the seeds; its twin shows no such sign" in words
    assert f"on a tie of equal outputs on {min(64, len(labels))} of {min(64, len(labels))}" in words

    searched = call("search", *given, *BOUNDS, "--out", runs / "search")
    assert searched.code == 1, searched.err
    document = document_of(runs / "search")
    seeds = document["unmutated"]["seeds"]
    assert seeds["deviating"] == seeds["by_tie"] == document["totals"]["deviating_seeds"]
    assert seeds["tied"] == seeds["labelled"] == len(labels)
    assert abs(seeds["deviating"] - wrong) <= 0.05 * len(labels)
    assert seeds["right"]["device"] == len(labels) - wrong
    assert seeds["right"]["original"] >= 0.95 * len(labels)
    assert all(one["by_tie"] for one in document["deviating_seeds"])
    assert any("hardly vary" in line for line in document["warnings"])
    assert "kernel, tie" in searched.out

    gates = ("--gate", "rate<0.05", "--gate", "kernel-rate<0.05", "--gate", "rate-strict<0.05")
    surveyed = call("survey", *given, "--trust", *gates, "--out", runs / "survey")
    assert surveyed.code == 1, surveyed.err
    survey = document_of(runs / "survey", "survey.json")
    assert [one["state"] for one in survey["gates"]] == ["fail", "fail", "pass"]
    overall = survey["overall"]
    assert overall["deviation"]["seen"] > 0
    assert overall["deviation_strict"]["seen"] == 0
    assert overall["accuracy"]["harmed"]["value"] > 0.5
    assert len(survey["findings"]) > 0
    assert any("decides the same on all" in line for line in survey["warnings"])
    assert any("hangs on a tie" in line for line in survey["warnings"])
    return document


def test_a_device_whose_answers_are_all_equal_fails_search_and_gates(
    flat: Path, tmp_path: Path
) -> None:
    assert_all_say_it(flat, tmp_path, "emulated-builtin", call_here)


@pytest.mark.old_litert
def test_a_runtime_that_ignores_a_zero_point_of_weights_fails_search_and_gates(
    tmp_path: Path, old_litert_python: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pair = copied_case("weights_zero_point", tmp_path)
    (tmp_path / "device_profiles").mkdir()
    profile = f'extends = "emulated-xnnpack"\npython = "{old_litert_python}"\n'
    (tmp_path / "device_profiles" / "old-litert.toml").write_text(profile)
    monkeypatch.chdir(tmp_path)
    document = assert_all_say_it(pair, tmp_path, "old-litert", call_here)
    seeds = document["unmutated"]["seeds"]
    assert seeds["harm_by_tie"]["original-right"] >= 0.9 * seeds["by_tie"]
    assert {one["cause"] for one in document["deviating_seeds"]} == {"kernel"}
