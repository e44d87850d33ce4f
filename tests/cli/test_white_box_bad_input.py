"""What a search by gradients refuses: one line, exit 2, and nothing written."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("jax", reason="needs the extra whitebox")

import onnx
from ai_edge_litert import schema_py_generated as schema
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

from edgeflare.run.load_document import load_document
from edgeflare.run.run_directory import RunDirectory
from graph_writer import GraphWriter

pytestmark = [pytest.mark.whitebox, pytest.mark.slow]

Call = Callable[..., Any]

GRADIENT = (
    *("--strategy", "gradient", "--first", "3", "--max-queries", "20"),
    *("--shrink", "0", "--fail-on", "none"),
)
PIXELS, CLASSES = 28 * 28, 10
WEIGHTS = np.random.default_rng(0).normal(0.0, 0.1, (PIXELS, CLASSES)).astype(np.float32)

LINEAR = f"""
import numpy as np

WEIGHTS = np.random.default_rng(0).normal(0.0, 0.1, ({PIXELS}, {CLASSES})).astype(np.float32)

def model(inputs):
    return inputs.reshape(1, -1) @ WEIGHTS
"""
"""A Python original without a gradient of its own."""

JACOBIAN = """
def gradient(inputs):
    return WEIGHTS.T.reshape(-1, *inputs.shape)
"""

ORIGINALS = {
    "linear.py": LINEAR,
    "jacobian.py": LINEAR + JACOBIAN,
    "flat.py": LINEAR + JACOBIAN.replace(".reshape(-1, *inputs.shape)", ""),
    "infinite.py": LINEAR + JACOBIAN.replace("WEIGHTS.T", "(WEIGHTS.T + np.inf)"),
    "raising.py": LINEAR.replace("return", "assert not inputs.any()\n    return") + JACOBIAN,
    "failing.py": LINEAR + JACOBIAN.replace("WEIGHTS.T", "WEIGHT"),
}


@pytest.fixture(scope="module")
def mistakes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of originals."""
    folder = tmp_path_factory.mktemp("mistakes")
    for name, code in ORIGINALS.items():
        (folder / name).write_text(code)
    write_onnx(folder / "linear.onnx")
    write_linear(folder / "absolute.tflite", WEIGHTS, absolute=True)
    return folder


def write_onnx(path: Path) -> None:
    constants = [
        numpy_helper.from_array(WEIGHTS, "weights"),
        numpy_helper.from_array(np.array([1, PIXELS], np.int64), "shape"),
    ]
    nodes = [
        helper.make_node("Reshape", ["x", "shape"], ["flat"]),
        helper.make_node("MatMul", ["flat", "weights"], ["y"]),
    ]
    ends = [
        helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)
        for name, shape in (("x", [1, 28, 28, 1]), ("y", [1, CLASSES]))
    ]
    graph = helper.make_graph(nodes, "linear", ends[:1], ends[1:], constants)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)])
    model.ir_version = 8
    onnx.save(model, path)


def write_linear(path: Path, weights: NDArray[np.float32], *, absolute: bool = False) -> Path:
    """Write a linear model, of absolute values if asked, which have no translation."""
    graph = GraphWriter()
    shape = graph.tensor("shape", (2,), "INT32", data=np.array([1, PIXELS], np.int32))
    matrix = graph.tensor("weights", (CLASSES, PIXELS), "FLOAT32", data=weights.T.copy())
    x = read = graph.tensor("x", (1, 28, 28, 1), "FLOAT32")
    if absolute:
        read = graph.tensor("absolute", (1, 28, 28, 1), "FLOAT32")
        graph.operator("ABS", [x], [read], schema.AbsOptionsT())
    flat = graph.tensor("flat", (1, PIXELS), "FLOAT32")
    y = graph.tensor("y", (1, CLASSES), "FLOAT32")
    graph.operator("RESHAPE", [read, shape], [flat], schema.ReshapeOptionsT())
    graph.operator("FULLY_CONNECTED", [flat, matrix], [y], schema.FullyConnectedOptionsT())
    return graph.save(path, [x], [y])


@pytest.mark.parametrize(
    ("arguments", "complaints"),
    [
        ("--set occl_top=100", ("occl_top=100", "outside of inputs of 28 × 28 × 1")),
        ("--original {m}/jacobian.py:model", ("jacobian.py:model is a Python", "lambda2=0")),
    ],
)
def test_what_deepxplore_cannot_do_is_refused_before_anything_is_written(
    call: Call, example: Path, mistakes: Path, tmp_path: Path, arguments: str, complaints: Any
) -> None:
    out = tmp_path / "run"
    words = arguments.format(m=mistakes).split()
    said = call("search", example, "--strategy", "deepxplore", *words, "--trust", "--out", out)
    assert said.code == 2, said.err
    assert all(part in said.complaint() for part in complaints)
    assert not out.exists()


@pytest.mark.parametrize(
    ("arguments", "complaints"),
    [
        # {e} is the folder of the examples, {m} that of mistakes.
        (
            "{e}/fashion_lenet4 --find kernel",
            ("--find kernel: the strategy gradient", "say --strategy boundary"),
        ),
        (
            "{e}/fashion_lenet4 --original {m}/linear.onnx",
            ("linear.onnx is no .tflite file", "convert it", "strategy boundary"),
        ),
        (
            "{e}/fashion_lenet4 --original {m}/linear.py:model",
            ("linear.py:model has no gradient", "def gradient(inputs)", "strategy boundary"),
        ),
        (
            "{e}/fashion_lenet4 --original {m}/flat.py:model",
            ("flat.py:gradient returned (10, 784)", "of the shape (10, 1, 28, 28, 1)"),
        ),
        (
            "{e}/fashion_lenet4 --original {m}/infinite.py:model",
            ("infinite.py:gradient returned infinity or NaN", "finite numbers"),
        ),
        (
            "{e}/fashion_lenet4 --original {m}/failing.py:model",
            ("failing.py:gradient failed: NameError", "WEIGHT"),
        ),
        (
            "{e}/fashion_lenet4 --original {m}/raising.py:model",
            ("raising.py:model failed: AssertionError", "strategy boundary"),
        ),
        (
            "{e}/fashion_lenet4 --original {m}/absolute.tflite",
            ("absolute.tflite: operator 0, ABS, has no translation", "strategy boundary"),
        ),
        (
            "{e}/spoken_words",
            ("spoken_words/original.tflite cannot be differentiated", "strategy boundary"),
        ),
        (
            "{e}/face_detection",
            ("does not give one score for each class", "strategy boundary"),
        ),
        ("{e}/fashion_lenet4 --set iterations=0", ("iterations=0", "at least 1")),
        ("{e}/fashion_lenet4 --set step=nan", ("step=nan", "above 0")),
        ("{e}/fashion_lenet4 --set steps=3", ("steps", "did you mean 'step'")),
    ],
)
def test_it_is_refused_in_one_line_and_nothing_is_written(
    call: Call, example: Path, mistakes: Path, tmp_path: Path, arguments: str, complaints: Any
) -> None:
    words = arguments.format(e=example.parent, m=mistakes).split()
    out = tmp_path / "run"
    said = call("search", *words, *GRADIENT, "--out", out)
    assert said.code == 2, said.err
    complaint = said.complaint()
    for part in complaints:
        assert part in complaint
    assert not out.exists()


@pytest.mark.parametrize("broken", ["jax", "jax/numpy"])
def test_without_jax_the_extra_is_named(
    start: Call, example: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, broken: str
) -> None:
    package = tmp_path / "path" / broken
    package.mkdir(parents=True)
    for folder in (package, *package.parents[: broken.count("/")]):
        (folder / "__init__.py").touch()
    (package / "__init__.py").write_text("raise ImportError('not installed')\n")
    path = os.pathsep.join([str(tmp_path / "path"), *filter(None, [os.environ.get("PYTHONPATH")])])
    monkeypatch.setenv("PYTHONPATH", path)
    out = tmp_path / "run"
    said = start("search", example, *GRADIENT, "--out", out)
    assert said.code == 2, said.err
    assert "jax is not installed" in said.complaint()
    assert "pip install 'edgeflare[whitebox]'" in said.complaint()
    assert "take the strategy boundary" in said.complaint()
    assert not out.exists()


def test_a_python_original_with_a_gradient_of_its_own_is_searched(
    call: Call, example: Path, mistakes: Path, tmp_path: Path
) -> None:
    """Original and twin are the same linear model, once in Python and once rounded."""
    rounded = write_linear(
        tmp_path / "rounded.tflite", (np.rint(WEIGHTS * 64) / 64).astype(np.float32)
    )
    original = f"{mistakes / 'jacobian.py'}:model"
    words = (example, "--original", original, "--compressed", rounded, *GRADIENT)
    said = call("search", *words, "--out", tmp_path / "run")
    assert said.code == 0, said.err
    document = load_document(RunDirectory(tmp_path / "run"))
    found = document.findings
    assert len(found) + len(document.deviating_seeds) == 3
    assert found
    assert all(one.host_gradients for one in found)
