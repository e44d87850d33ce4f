"""Searches by gradients: what they ask the device about, and what they refuse in one line."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("jax", reason="needs the extra whitebox")

from ai_edge_litert import schema_py_generated as schema
from numpy.typing import NDArray

from called_commands import EXAMPLE, Said, completed, document_of, refused
from graph_writer import GraphWriter
from onnx_models import PIXELS, linear_weights, write_linear_onnx

pytestmark = [pytest.mark.whitebox, pytest.mark.slow]

GRADIENT = (
    *("--strategy", "gradient", "--first", "3", "--max-queries", "20"),
    *("--shrink", "0", "--fail-on", "none"),
)
SHORT = ("--first", "2", "--shrink", "0", "--fail-on", "none", "--device", "emulated-xnnpack")
CLASSES = 10

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

REFUSED: dict[str, str] = {
    # {e} is the example, {m} a folder of originals; what is said has its parts between dots.
    "{e} --find kernel": "--find kernel: the strategy gradient … say --strategy boundary",
    "{e} --strategy boundary --shrink-by gradient --find kernel": "say --shrink-by queries",
    "{e}/../spoken_words --strategy boundary --shrink 9 --shrink-by gradient": "take --shrink-by",
    "{e} --original {m}/linear.onnx": "linear.onnx is no .tflite file … convert it … boundary",
    "{e} --original {m}/linear.py:model": "linear.py:model has no gradient … def gradient(inputs)",
    "{e} --original {m}/flat.py:model": "gradient returned (10, 784) … shape (10, 1, 28, 28, 1)",
    "{e} --original {m}/infinite.py:model": "gradient returned infinity or NaN … finite numbers",
    "{e} --original {m}/failing.py:model": "failing.py:gradient failed: NameError … WEIGHT",
    "{e} --original {m}/raising.py:model": "raising.py:model failed: AssertionError … boundary",
    "{e} --original {m}/absolute.tflite": "operator 0, ABS, has no translation … boundary",
    "{e}/../spoken_words": "original.tflite cannot be differentiated … strategy boundary",
    "{e}/../face_detection": "does not give one score for each class … strategy boundary",
    "{e} --set step=nan": "step=nan … above 0",
    "{e} --strategy deepxplore --set occl_top=40": "lies outside of inputs of 28 × 28 × 1",
    "{e} --strategy deepxplore --original {m}/jacobian.py:model": "is a Python … lambda2=0",
}


@pytest.fixture(scope="module")
def originals(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of originals."""
    folder = tmp_path_factory.mktemp("originals")
    for name, code in ORIGINALS.items():
        (folder / name).write_text(code)
    write_linear_onnx(folder / "linear.onnx", linear_weights())
    write_linear(folder / "absolute.tflite", linear_weights(), absolute=True)
    return folder


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


@pytest.mark.parametrize("line", REFUSED)
def test_it_is_refused_in_one_line_and_nothing_is_written(
    line: str, originals: Path, tmp_path: Path
) -> None:
    pair, *words = line.format(e=EXAMPLE, m=originals).split()
    complaint = refused("search", pair, *GRADIENT, *words, "--out", tmp_path / "run")
    for part in REFUSED[line].split("…"):
        assert part.strip() in complaint
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("broken", ["jax", "jax/numpy"])
def test_without_jax_the_extra_is_named(
    start: Callable[..., Said], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, broken: str
) -> None:
    package = tmp_path / "path" / broken
    package.mkdir(parents=True)
    (tmp_path / "path" / "jax" / "__init__.py").touch()
    (package / "__init__.py").write_text("raise ImportError('not installed')\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "path"))
    said = start("search", EXAMPLE, *GRADIENT, "--out", tmp_path / "run")
    assert said.code == 2, said.err
    for part in ("jax is not installed", "'edgeflare[whitebox]'", "take the strategy boundary"):
        assert part in said.complaint()
    assert not (tmp_path / "run").exists()


def test_a_python_original_with_a_gradient_of_its_own_is_searched(
    originals: Path, tmp_path: Path
) -> None:
    """Original and twin are the same linear model, once in Python and once rounded."""
    weights = (np.rint(linear_weights() * 64) / 64).astype(np.float32)
    rounded = write_linear(tmp_path / "rounded.tflite", weights)
    models = ("--original", f"{originals / 'jacobian.py'}:model", "--compressed", rounded)
    completed("search", EXAMPLE, *models, *GRADIENT, "--out", tmp_path / "run")
    document = document_of(tmp_path / "run")
    assert document["findings"]
    assert len(document["findings"]) + len(document["deviating_seeds"]) == 3
    assert all(one["host_gradients"] for one in document["findings"])


@pytest.mark.parametrize(
    ("strategy", "parameters"),
    [
        ("deepxplore", ("constraint=light",)),
        ("deepxplore", ("constraint=occl",)),
        ("deepxplore", ("constraint=none",)),
        ("fgsm", ("radius=32",)),
        ("pgd", ("radius=32", "step=4")),
    ],
)
def test_what_translations_foretell_is_all_that_the_device_is_asked_about(
    strategy: str, parameters: tuple[str, ...], tmp_path: Path
) -> None:
    chosen = ("--strategy", strategy, *(word for one in parameters for word in ("--set", one)))
    completed("search", EXAMPLE, *chosen, "--out", tmp_path / "run", *SHORT)
    document = document_of(tmp_path / "run")
    assert document["plan"]["strategy"] == strategy
    found = [one for one in document["findings"] if one["operators"]]
    assert document["totals"]["queries"] == len(found)  # so the arms contradicted nothing
    if parameters == ("constraint=none",):
        assert found
    constraint = parameters[-1].partition("=")[2]
    for one in found:
        assert one["operators"] in ([f"deepxplore-{constraint}"], [strategy])
