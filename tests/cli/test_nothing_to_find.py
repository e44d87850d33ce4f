"""Pairs in which there is nothing to find, or a model that tells nothing apart: said, not hung."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper, save

SHORT = ("--first", "8", "--max-queries", "40", "--shrink", "0", "--within", "none")


def warnings_of(run: Path) -> list[str]:
    document = json.loads((run / "run.json").read_bytes())
    assert document["stopped_by"] is None
    assert document["totals"]["queries"] <= 8 * 40
    warnings: list[str] = document["warnings"]
    return warnings


@pytest.fixture
def same(example: Path) -> tuple[str, ...]:
    """Options that make the compressed model its own original."""
    return ("--original", str(example / "compressed.tflite"))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("find", "strategy"), [("any", "boundary"), ("any", "dflare"), ("compression", "boundary")]
)
def test_the_same_model_on_the_same_kernels(
    find: str,
    strategy: str,
    call: Callable[..., Any],
    example: Path,
    same: tuple[str, ...],
    tmp_path: Path,
) -> None:
    run = tmp_path / "run"
    options = ("--device", "emulated-xnnpack", "--find", find, "--strategy", strategy)
    said = call("search", example, *same, *SHORT, *options, "--out", run)
    assert said.code == 0, said.err
    (line,) = warnings_of(run)
    assert line.startswith("nothing was found, and original and device gave equal outputs on all 8")
    assert "nothing was found" in said.out


@pytest.mark.slow
@pytest.mark.parametrize("ensemble", ["xnnpack", "xnnpack,reference"])
def test_the_same_kernels_on_both_sides(
    ensemble: str, call: Callable[..., Any], example: Path, tmp_path: Path
) -> None:
    run = tmp_path / "run"
    options = ("--device", "emulated-xnnpack", "--find", "kernel", "--ensemble", ensemble)
    said = call("search", example, *SHORT, *options, "--out", run)
    assert said.code == 0, said.err
    (line,) = warnings_of(run)
    assert "twin and device gave equal outputs" in line
    assert "the same kernels?" in line


def test_what_was_found_needs_no_such_line(finished: Any) -> None:
    assert warnings_of(finished.folder) == []


@pytest.mark.slow
def test_a_compressed_model_that_is_constant_says_so(
    call: Callable[..., Any], example: Path, constant: Path, tmp_path: Path
) -> None:
    run = tmp_path / "run"
    said = call(
        "search", example, "--compressed", constant, *SHORT, "--fail-on", "none", "--out", run
    )
    assert said.code == 0, said.err
    assert "warning: the compressed model's outputs hardly vary over the seeds" in said.out
    varies, *ties = warnings_of(run)
    assert "compressed" in varies
    assert ["tie" in line for line in ties] == [True, True]


@pytest.mark.slow
def test_a_pair_that_is_constant_says_so_and_ends(
    call: Callable[..., Any], example: Path, constant: Path, tmp_path: Path
) -> None:
    run = tmp_path / "run"
    said = call(
        "search", example, "--compressed", constant, "--original", constant, *SHORT, "--out", run
    )
    assert said.code == 0, said.err
    lines = warnings_of(run)
    assert "the original's outputs hardly vary" in lines[0]
    assert "the compressed model's outputs hardly vary" in lines[1]
    assert "gave equal outputs" in lines[-1]


def test_a_model_with_a_single_class_is_refused(
    call: Callable[..., Any], example: Path, tmp_path: Path
) -> None:
    image = helper.make_tensor_value_info("image", TensorProto.FLOAT, [1, 1, 28, 28])
    score = helper.make_tensor_value_info("score", TensorProto.FLOAT, [1, 1])
    weights = helper.make_tensor("w", TensorProto.FLOAT, [784, 1], np.zeros(784, np.float32))
    nodes = [
        helper.make_node("Flatten", ["image"], ["flat"]),
        helper.make_node("MatMul", ["flat", "w"], ["score"]),
    ]
    graph = helper.make_graph(nodes, "one-class", [image], [score], [weights])
    opsets = [helper.make_opsetid("", 17)]
    save(helper.make_model(graph, opset_imports=opsets, ir_version=8), tmp_path / "one.onnx")
    run = tmp_path / "run"
    said = call("search", example, "--original", tmp_path / "one.onnx", *SHORT, "--out", run)
    assert said.code == 2
    assert "one score for each of at least two classes" in said.complaint()
    assert "'score' (1, 1) (fits regression or threshold)" in said.complaint()
    assert not run.exists()
