"""`edgeflare search` as its user meets it: what it prints and writes, and its exit codes."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import cv2
import jsonschema
import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from edgeflare.run import run_document as report_document
from laboratory import untimed

pytestmark = pytest.mark.slow

KEYS = {
    *("schema", "pair", "devices", "strategy", "find", "rng_seed"),
    *("totals", "findings", "deviating_seeds", "flaky"),
}
TOTALS = {
    *("seeds", "deviating_seeds", "findings", "success_rate", "mean_queries", "median_queries"),
    *("queries", "mean_device_queries", "device_queries", "overhead_queries"),
    *("overhead_device_queries", "host_evaluations", "setup_seconds", "wall_seconds"),
    *("verify_seconds", "mean_seconds", "device_busy_seconds", "ties", "flaky"),
}
FEW = ("--first", "2")
KERNEL_TIES = ("--ties", "include", "--device", "emulated-reference", "--max-queries", "200")
FINDING = {
    *("seed_id", "kind", "device", "queries", "device_queries", "labels", "probabilities"),
    *("cause", "strength", "distortion", "operators", "image", "sha256", "verified"),
}


def document_of(run: Path) -> dict[str, Any]:
    document: dict[str, Any] = json.loads((run / "run.json").read_bytes())
    schema = Path(report_document.__file__).with_name("run.schema.json").read_bytes()
    jsonschema.Draft202012Validator(json.loads(schema)).validate(document)
    return document


def test_a_finished_run_is_what_was_promised(finished: Any) -> None:
    document = document_of(finished.folder)
    assert document.keys() >= KEYS
    assert document["schema"] == "edgeflare.run/v1"
    assert document["stopped_by"] is None
    assert document["totals"].keys() >= TOTALS
    assert document["totals"]["seeds"] == 6
    assert document["findings"]
    for finding in document["findings"]:
        assert finding.keys() >= FINDING
        assert finding["distortion"].keys() == {"l2", "linf", "mean_abs", "changed"}
        assert (finished.folder / finding["image"]).is_file()
    (device,) = document["devices"]
    assert device["name"] == "emulated-builtin"
    assert device["provenance"]["kernels"] == "builtin"


def test_what_deviates_makes_exit_code_1(finished: Any) -> None:
    assert finished.said.code == 1


def test_without_a_terminal_progress_is_plain_lines(finished: Any) -> None:
    assert "\x1b" not in finished.said.out + finished.said.err
    lines = finished.said.err.splitlines()
    assert "seeds 6/6" in lines
    assert any(line.startswith("search 6/6 · ") for line in lines)
    assert lines[-1].startswith("verify ")
    assert "findings" in finished.said.out
    assert str(finished.folder) in finished.said.out.replace("\n", "")


def test_a_limit_takes_of_each_class_and_a_larger_one_finds_the_same_and_more(
    call: Callable[..., Any], example: Path, tmp_path: Path
) -> None:
    with np.load(example / "seeds.npz") as arrays:
        order = np.argsort(arrays["labels"], kind="stable")
        images, labels = arrays["images"][order], arrays["labels"][order].tolist()
    np.savez(tmp_path / "sorted.npz", images=images, labels=labels)
    found: dict[int, dict[int, Any]] = {}
    options = (
        "--find",
        "compression",
        "--max-queries",
        "150",
        "--shrink",
        "0",
        "--fail-on",
        "none",
    )
    for limit in (10, 20):
        run = tmp_path / str(limit)
        seeds = ("--seeds", tmp_path / "sorted.npz", "--limit", limit, "--within", "none")
        assert call("search", example, *seeds, *options, "--out", run).code == 0
        document = document_of(run)
        assert document["totals"]["seeds"] == limit
        found[limit] = {entry["seed_id"]: entry for entry in untimed(document)["findings"]}
    assert len({entry["seed_label"] for entry in found[20].values()}) > 5
    for seed_id, entry in found[10].items():
        assert entry == found[20][seed_id]
    for seed_id, entry in found[20].items():
        assert (entry["seed_label"], entry["seed_name"]) == (labels[seed_id], str(seed_id))
        stored = cv2.imread(str(tmp_path / "20" / entry["seed_image"]), cv2.IMREAD_GRAYSCALE)
        np.testing.assert_array_equal(stored, images[seed_id].reshape(28, 28))
    again = call("replay", tmp_path / "20", "--out", tmp_path / "replayed")
    assert again.code == 1, again.err
    replayed = document_of(tmp_path / "replayed")["findings"]
    assert {one["seed_id"]: one["seed_label"] for one in replayed} == {
        seed_id: entry["seed_label"] for seed_id, entry in found[20].items()
    }
    refused = call("search", example, *options, "--limit", "3", "--first", "3")
    assert (refused.code, "give one of them" in refused.complaint()) == (2, True)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("options", "code"),
    [
        (("--fail-on", "none"), 0),
        (("--allow", "1.0"), 0),
        (("--min-strength", "1.0"), 0),
        (("--within", "60"), 0),
        (("--fail-on", "kernel", "--find", "compression"), 0),
        # Reference kernels, and ties, since strict deviations by kernels are rare.
        (("--fail-on", "kernel", "--find", "kernel", *KERNEL_TIES), 1),
    ],
)
def test_exit_codes(
    options: tuple[str, ...],
    code: int,
    call: Callable[..., Any],
    example: Path,
    small: tuple[str, ...],
    tmp_path: Path,
) -> None:
    said = call("search", example, *small, *FEW, *options, "--out", tmp_path / "run")
    assert said.code == code, said.err
    document = document_of(tmp_path / "run")
    counting = document["findings"] + document["deviating_seeds"]
    if "--min-strength" in options:
        assert {entry["strong"] for entry in counting} == {False}
    elif "--within" in options:
        assert {entry["within"] for entry in counting} == {False}
    elif "kernel" in options[3:]:
        assert {entry["cause"] for entry in counting} == {"kernel"}
    else:
        assert counting


@pytest.mark.slow
def test_findings_are_refined_and_the_report_says_so(
    call: Callable[..., Any], example: Path, small: tuple[str, ...], tmp_path: Path
) -> None:
    folder = tmp_path / "run"
    refining = ("--strengthen", "60", "--shrink", "120")
    said = call("search", example, *small, *FEW, *refining, "--fail-on", "none", "--out", folder)
    assert said.code == 0, said.err
    document = document_of(folder)
    assert document["plan"]["strengthen"] == 60
    assert document["plan"]["shrink"] == 120
    assert document["findings"]
    for finding in document["findings"]:
        assert finding["verified"]
        assert finding["strength"] >= finding["refined"]["strength_before"] - 1e-9
        assert (folder / finding["image"]).is_file()
        assert (folder / finding["refined"]["image_before"]).is_file()
    assert any(line.startswith("refine ") for line in said.err.splitlines())
    assert "refined" in said.out


@pytest.mark.parametrize("option", ["--strengthen", "--shrink"])
def test_refining_takes_no_negative_budget(
    option: str, call: Callable[..., Any], example: Path, tmp_path: Path
) -> None:
    said = call("search", example, option, "-1", "--out", tmp_path / "run")
    assert said.code == 2
    assert option in said.err
    assert not (tmp_path / "run").exists()


def test_a_dry_run_writes_nothing(
    call: Callable[..., Any],
    example: Path,
    small: tuple[str, ...],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    said = call("search", example, *small, "--strengthen", "20", "--dry-run")
    assert said.code == 0
    assert "6 seeds, at most 150 queries" in said.out
    bound = "each finding is refined by at most 21 queries more, 126 for 6: --strengthen 20,"
    assert f"{bound} --shrink 0, of which 0 switches a step off" in " ".join(said.out.split())
    assert "nothing was written" in said.out
    assert list(tmp_path.iterdir()) == []
    text = " ".join(said.out.split())
    assert "model input = (pixel / 255 - 0) / 1, channels rgb, seeds of another size: none" in text
    right = "original 100.0%, twin 100.0%, device 100.0%"
    assert f"of the first 6 seeds 6 are labelled; right on them: {right}" in text
    assert "0 of the first 6 seeds already deviate" in text


def test_a_dry_run_shows_wrong_preprocessing(
    call: Callable[..., Any], example: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    said = call("search", example, "--scale", "30000", "--dry-run")
    assert said.code == 0
    text = " ".join(said.out.split())
    assert "model input = (pixel / 30000 - 0) / 1, " in text
    assert "warning: the original's outputs hardly vary over the seeds" in text


def test_a_dry_run_of_kernels_alone_compares_twin_and_device(
    call: Callable[..., Any], example: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with np.load(example / "seeds.npz") as arrays:
        np.savez(tmp_path / "seeds.npz", images=arrays["images"][:3])
    files = ("--compressed", example / "compressed.tflite", "--seeds", "seeds.npz")
    said = call("search", *files, "--find", "kernel", "--dry-run")
    assert said.code == 0
    assert "0 of the first 3 seeds already deviate" in said.out
    assert "labelled" not in said.out


def test_a_dry_run_counts_labels_that_are_classes_only(
    call: Callable[..., Any], example: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with np.load(example / "seeds.npz") as arrays:
        images, labels = arrays["images"][:4], arrays["labels"][:4].astype(np.int64)
    labels[:2] = -1, 99
    labels[3] = (labels[3] + 1) % 10
    np.savez(tmp_path / "seeds.npz", images=images, labels=labels)
    said = call("search", example, "--seeds", "seeds.npz", "--dry-run")
    text = " ".join(said.out.split())
    right = "original 50.0%, twin 50.0%, device 50.0%"
    assert f"of the first 4 seeds 2 are labelled; right on them: {right}" in text


@pytest.mark.old_board
@pytest.mark.parametrize("how", [["--dry-run"], ["--fail-on", "none"]])
def test_a_runtime_that_gave_xnnpack_nothing_is_told(
    call: Callable[..., Any],
    example: Path,
    small: tuple[str, ...],
    how: list[str],
    old_board_python: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The example is of int8, of which tflite-runtime 2.14 delegates nothing."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "device_profiles").mkdir()
    profile = f'transport = "emulated"\npython = "{old_board_python}"\nkernels = "xnnpack"\n'
    (tmp_path / "device_profiles" / "old-board.toml").write_text(profile)
    monkeypatch.setenv("HOME", str(tmp_path))
    said = call("search", example, *small, *FEW, "--device", "old-board", "--trust", *how)
    assert said.code == 0
    words = " ".join(said.out.split())
    assert "warning: old-board: asked for xnnpack, but tflite-runtime 2.14.0 gave it none" in words
    assert "nodes: optimized built-ins ran" in words


def test_a_run_has_a_place_of_its_own_if_none_is_named(
    call: Callable[..., Any], example: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    options = ("--first", "1", "--max-queries", "5", "--fail-on", "none")
    assert call("search", example, *options).code == 0
    (run,) = (tmp_path / "runs").iterdir()
    assert run.name.startswith("fashion_lenet4-")
    document_of(run)


@pytest.mark.slow
def test_overwriting_begins_anew(
    call: Callable[..., Any], example: Path, small: tuple[str, ...], finished: Any, tmp_path: Path
) -> None:
    run = shutil.copytree(finished.folder, tmp_path / "run")
    arguments = ("search", example, *small, *FEW, "--rng-seed", "5", "--fail-on", "none")
    assert call(*arguments, "--out", run, "--overwrite").code == 0
    assert call(*arguments, "--out", tmp_path / "new").code == 0
    assert untimed(document_of(run)) == untimed(document_of(tmp_path / "new"))
    assert document_of(run)["totals"]["seeds"] == 2


@pytest.mark.slow
def test_resuming_a_finished_run_changes_nothing(
    call: Callable[..., Any], example: Path, small: tuple[str, ...], finished: Any, tmp_path: Path
) -> None:
    run = shutil.copytree(finished.folder, tmp_path / "run")
    said = call("search", example, *small, "--out", run, "--resume")
    assert said.code == 1
    assert untimed(document_of(run)) == untimed(document_of(finished.folder))


# Pairs of other kinds.


def test_a_pair_by_flags_alone_is_the_same_pair(
    call: Callable[..., Any], example: Path, small: tuple[str, ...], finished: Any, tmp_path: Path
) -> None:
    flags = {
        "--original": example / "original.tflite",
        "--compressed": example / "compressed.tflite",
        "--seeds": example / "seeds.npz",
        "--scale": "255",
        "--mean": "0",
        "--std": "1",
    }
    arguments = [part for flag in flags.items() for part in flag]
    call("search", *arguments, *small, "--out", tmp_path / "run")
    document, expected = document_of(tmp_path / "run"), document_of(finished.folder)
    assert document["pair"]["fingerprint"] == expected["pair"]["fingerprint"]
    assert untimed(document)["findings"] == untimed(expected)["findings"]


def test_seeds_from_a_folder_of_images_are_the_same_seeds(
    call: Callable[..., Any], example: Path, small: tuple[str, ...], finished: Any, tmp_path: Path
) -> None:
    (tmp_path / "seeds").mkdir()
    with np.load(example / "seeds.npz") as arrays:
        for number, image in enumerate(arrays["images"][:8]):
            cv2.imwrite(str(tmp_path / "seeds" / f"{number:02}.png"), image)
    call("search", example, *small, "--seeds", tmp_path / "seeds", "--out", tmp_path / "run")
    ours, theirs = (document_of(run)["findings"] for run in (tmp_path / "run", finished.folder))
    shown = ("seed_id", "queries", "labels", "probabilities", "sha256")
    assert [[one[key] for key in shown] for one in ours] == [
        [one[key] for key in shown] for one in theirs
    ]


WEIGHTS = np.random.default_rng(3).normal(size=(28 * 28, 10)).astype(np.float32)


def write_onnx(path: Path) -> str:
    """A linear classifier of the example's shapes."""
    shape = numpy_helper.from_array(np.array([1, 28 * 28], np.int64), "shape")
    graph = helper.make_graph(
        [
            helper.make_node("Reshape", ["image", "shape"], ["flat"]),
            helper.make_node("MatMul", ["flat", "weights"], ["logits"]),
        ],
        "linear",
        [helper.make_tensor_value_info("image", TensorProto.FLOAT, [1, 28, 28, 1])],
        [helper.make_tensor_value_info("logits", TensorProto.FLOAT, [1, 10])],
        [shape, numpy_helper.from_array(WEIGHTS, "weights")],
    )
    opset = [helper.make_opsetid("", 17)]
    onnx.save(helper.make_model(graph, opset_imports=opset, ir_version=9), path)
    return str(path)


def write_module(path: Path) -> str:
    """The same classifier as a function; its weights lie beside it."""
    np.save(path.with_suffix(".npy"), WEIGHTS)
    path.write_text(
        "import numpy as np\n"
        f"weights = np.load({str(path.with_suffix('.npy'))!r})\n"
        "def classify(image):\n"
        "    return image.reshape(1, -1) @ weights\n"
    )
    return f"{path.stem}:classify"


def test_an_onnx_and_a_python_original_are_searched_alike(
    call: Callable[..., Any],
    example: Path,
    small: tuple[str, ...],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    originals = {
        "onnx": write_onnx(tmp_path / "linear.onnx"),
        "python": write_module(tmp_path / "linear_classifier_of_a_test.py"),
    }
    labels = {}
    for name, original in originals.items():
        options = (*small, *FEW, "--original", original)
        said = call("search", example, *options, "--out", tmp_path / name)
        assert said.code == 1, said.err
        document = document_of(tmp_path / name)
        # Untrained, so most seeds deviate; and the user is told that this original looks wrong.
        assert document["deviating_seeds"]
        labels[name] = [entry["labels"] for entry in document["deviating_seeds"]]
    assert labels["onnx"] == labels["python"]


@pytest.mark.parametrize(("fail_on", "code"), [("any", 2), ("none", 0)])
def test_a_gate_that_searched_nothing_does_not_pass(
    fail_on: str, code: int, call: Callable[..., Any], example: Path, tmp_path: Path
) -> None:
    run = tmp_path / "run"
    limits = ("--first", "4", "--total-time", "1e-6", "--fail-on", fail_on)
    said = call("search", example, *limits, "--out", run)
    assert said.code == code
    complaint = "--total-time 1e-06 ended before the search from any of 4 seeds did"
    assert (complaint in said.err) == (code == 2)
    document = document_of(run)
    assert document["stopped_by"] == "total-time"
    assert document["totals"]["searched"] == 0
    assert call("report", run).out == said.out
