"""`edgeflare search --coverage`: the figures of a real pair, and what is said without them."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper, save

from edgeflare.report.coverage_table import NOT_MEANT

pytestmark = pytest.mark.slow

Call = Callable[..., Any]
COVERAGE = ("--coverage", "0,.25,.5,.75", "--fail-on", "none")


@pytest.fixture(scope="module")
def covered(
    call: Call, example: Path, small: tuple[str, ...], tmp_path_factory: Any
) -> tuple[Path, Any]:
    """A search with neuron coverage: its folder, and what it said."""
    run = tmp_path_factory.mktemp("covered") / "run"
    return run, call("search", example, *small, *COVERAGE, "--out", run)


def document(run: Path) -> Any:
    return json.loads((run / "run.json").read_bytes())


def test_each_arm_has_its_shares_at_each_threshold(covered: tuple[Path, Any]) -> None:
    run, said = covered
    told = document(run)
    coverage, found = told["coverage"], told["totals"]["findings"]
    assert said.code == 0
    assert told["plan"]["coverage"] == coverage["thresholds"] == [0, 0.25, 0.5, 0.75]
    assert coverage["seeds"] == coverage["findings"] == coverage["others"] == found > 2
    assert [one["arm"] for one in coverage["arms"]] == ["original", "twin", "device"]
    assert coverage["device_queries"] == 3 * found
    assert coverage["notes"] == []
    for arm in coverage["arms"]:
        assert arm["neurons"] == coverage["arms"][0]["neurons"] > 100
        for key in ("with_findings", "with_others"):
            assert all(
                0 < few <= more < 1 for few, more in zip(arm["seeds"], arm[key], strict=True)
            )
            assert arm[key] == sorted(arm[key], reverse=True)


def test_it_is_measured_anew_when_a_run_goes_on_and_comes_to_the_same(
    covered: tuple[Path, Any], call: Call, example: Path, small: tuple[str, ...], tmp_path: Path
) -> None:
    """Thresholds are the same in any order, and if one is said twice."""
    run = Path(shutil.copytree(covered[0], tmp_path / "run"))
    again = ("--coverage", ".5,0,.75,.25,.5", "--fail-on", "none")
    said = call("search", example, *small, *again, "--out", run, "--resume")
    assert said.code == 0
    assert document(run)["coverage"] == document(covered[0])["coverage"]
    assert f"coverage {9 * document(run)['coverage']['findings']}/" in said.err


def test_other_thresholds_are_another_command(
    covered: tuple[Path, Any], call: Call, example: Path, small: tuple[str, ...]
) -> None:
    said = call("search", example, *small, "--out", covered[0], "--resume")
    assert said.code == 2
    assert "begun with --coverage 0,0.25,0.5,0.75, not none" in said.complaint()


def test_all_reports_have_the_table(covered: tuple[Path, Any], call: Call, tmp_path: Path) -> None:
    run = Path(shutil.copytree(covered[0], tmp_path / "run"))
    plain, pages = call("report", run), call("report", run, "--html", "--summary")
    assert pages.code == 0
    shown = (plain.out, (run / "report.html").read_text(), (run / "summary.md").read_text())
    for text in (covered[1].out, *shown):
        assert " ".join(NOT_MEANT.split()) in " ".join(text.split())
        assert "other seeds" in text


def test_the_search_is_the_one_without_it(
    covered: tuple[Path, Any], finished: Any, example: Path
) -> None:
    """Coverage draws from no generator of the search."""
    plain = document(finished.folder)
    assert [one["sha256"] for one in plain["findings"]] == [
        one["sha256"] for one in document(covered[0])["findings"]
    ]
    assert "coverage" not in plain
    assert "coverage" not in plain["plan"]


def test_without_findings_it_is_that_of_the_seeds(
    call: Call, example: Path, tmp_path: Path
) -> None:
    same = ("--original", example / "compressed.tflite", "--device", "emulated-xnnpack")
    short = ("--first", "3", "--max-queries", "20", "--coverage", "0")
    said = call("search", example, *same, *short, "--out", tmp_path / "run")
    coverage = document(tmp_path / "run")["coverage"]
    assert said.code == 0
    assert (coverage["seeds"], coverage["findings"], coverage["others"]) == (3, 0, 0)
    assert all(arm["with_findings"] is arm["with_others"] is None for arm in coverage["arms"])
    assert "No search ended in a finding" in said.out


def test_too_few_other_seeds_are_told(
    call: Call, example: Path, small: tuple[str, ...], tmp_path: Path
) -> None:
    with np.load(example / "seeds.npz") as arrays:
        np.savez(tmp_path / "seeds.npz", images=arrays["images"][:6])
    run = tmp_path / "run"
    seeds = ("--seeds", tmp_path / "seeds.npz")
    call("search", example, *seeds, *small, "--coverage", ".5", "--out", run)
    told = document(run)
    found = told["totals"]["findings"]
    assert told["coverage"]["others"] == 6 - found < found
    (note,) = told["coverage"]["notes"]
    assert note.startswith(f"the pair has {6 - found} other seeds")


def test_an_original_that_is_no_tflite_is_left_out(
    call: Call, example: Path, tmp_path: Path
) -> None:
    save(flat_classifier(), tmp_path / "original.onnx")
    run, original = tmp_path / "run", ("--original", tmp_path / "original.onnx")
    short = ("--first", "4", "--max-queries", "40", "--shrink", "0", "--coverage", "0")
    said = call("search", example, *original, *short, "--fail-on", "none", "--out", run)
    assert said.code == 0, said.err
    coverage = document(run)["coverage"]
    assert [one["arm"] for one in coverage["arms"]] == ["twin", "device"]
    (note,) = [one for one in coverage["notes"] if "original" in one]
    assert note.endswith("its layers are seen only if it is a .tflite file")
    assert "warning: neuron coverage: the original is left out" in said.err


def flat_classifier() -> Any:
    """An ONNX model of ten linear scores of a gray image of 28 x 28."""
    weights = np.random.default_rng(0).normal(size=(784, 10)).astype(np.float32)
    nodes = [
        helper.make_node("Reshape", ["image", "shape"], ["row"]),
        helper.make_node("MatMul", ["row", "weights"], ["scores"]),
    ]
    constants = [
        helper.make_tensor("shape", TensorProto.INT64, [2], [1, 784]),
        helper.make_tensor("weights", TensorProto.FLOAT, weights.shape, weights.ravel()),
    ]
    graph = helper.make_graph(
        nodes,
        "flat",
        [helper.make_tensor_value_info("image", TensorProto.FLOAT, [1, 28, 28, 1])],
        [helper.make_tensor_value_info("scores", TensorProto.FLOAT, [1, 10])],
        constants,
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("1", "--coverage '1': expected thresholds from 0 to below 1"),
        ("-0.1", "--coverage '-0.1': expected"),
        (".5,high", "--coverage 'high': expected"),
        ("nan", "--coverage 'nan': expected"),
        (".5,,.6", "--coverage '.5,,.6': expected values separated by commas"),
        (",".join(["0"] * 11), "--coverage has 11 thresholds: give 10 at most"),
    ],
)
def test_thresholds_that_are_none_are_refused_before_anything_is_written(
    text: str, complaint: str, call: Call, example: Path, tmp_path: Path
) -> None:
    said = call("search", example, f"--coverage={text}", "--out", tmp_path / "run")
    assert said.code == 2
    assert complaint in said.complaint()
    assert not (tmp_path / "run").exists()
