"""Originals in ONNX: their inputs and outputs, in any layout and type, and what is refused."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

onnx = pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")

from edgeflare.core.tensor import Tensor, quantize  # noqa: E402
from edgeflare.models.in_process import open_onnx  # noqa: E402
from edgeflare.models.model_inputs import ModelInputs  # noqa: E402
from edgeflare.models.original import open_original  # noqa: E402
from edgeflare.models.pair import Pair  # noqa: E402
from edgeflare.models.pair_interface import PairInterface  # noqa: E402

Refusal = Callable[..., str]
Shape = tuple[int | str | None, ...]

MAKE, FLOAT = onnx.helper, onnx.TensorProto.FLOAT
WEIGHTS = np.random.default_rng(1).normal(size=(8 * 9 * 3, 6)).astype(np.float32)


def written(
    path: Path, nodes: Sequence[Any], ends: dict[str, Shape], kind: int = FLOAT, weights: Any = ()
) -> Path:
    """Write a model with one input, the first of the ends."""
    made = [MAKE.make_tensor_value_info(name, kind, shape) for name, shape in ends.items()]
    graph = MAKE.make_graph(nodes, "any", made[:1], made[1:], weights)
    model = MAKE.make_model(graph, opset_imports=[MAKE.make_opsetid("", 17)])
    model.ir_version = 9
    onnx.save(model, path)
    return path


def classifier(path: Path, shape: Shape, outputs: int = 1) -> Path:
    nodes = [
        MAKE.make_node("Flatten", ["image"], ["flat"], axis=1),
        MAKE.make_node("MatMul", ["flat", "weights"], ["scores"]),
        MAKE.make_node("Softmax", ["scores"], ["probabilities"]),
    ]
    ends = {"image": shape, "scores": (shape[0], 6), "probabilities": (shape[0], 6)}
    some = dict(list(ends.items())[: outputs + 1])
    return written(path, nodes, some, weights=[onnx.numpy_helper.from_array(WEIGHTS, "weights")])


@pytest.mark.parametrize(
    ("declared", "given"),
    [
        (("n", "height", "width", 3), (1, 8, 9, 3)),
        (("n", 3, "height", "width"), (1, 3, 8, 9)),
        (("n", None, None, None), (1, 8, 9, 3)),
    ],
)
def test_symbolic_sizes_are_those_of_the_compressed_model(
    declared: Shape, given: tuple[int, ...], tmp_path: Path
) -> None:
    nodes = [MAKE.make_node("Sigmoid", ["x"], ["y"])]
    path = written(tmp_path / "any.onnx", nodes, {"x": declared, "y": declared})
    signature = open_onnx(path, (1, 8, 9, 3)).signature
    assert signature.input.shape == signature.output.shape == given


@pytest.mark.parametrize("batch", [1, "batch"])
@pytest.mark.parametrize("order", [(0, 1, 2, 3), (0, 3, 1, 2)], ids=["last", "first"])
def test_models_with_channels_first_and_last_take_the_same_images(
    tmp_path: Path, order: tuple[int, ...], batch: int | str
) -> None:
    images = np.random.default_rng(2).integers(0, 256, (3, 8, 9, 3)).astype(np.uint8)
    laid_out = (images / 255).transpose(order)
    model = open_onnx(classifier(tmp_path / "model.onnx", (batch, *laid_out.shape[1:])))
    assert model.signature.input == Tensor("image", (1, *laid_out.shape[1:]), "float32")
    assert model.signature.output == Tensor("scores", (1, 6), "float32")
    inputs = ModelInputs(PairInterface(), model.signature.inputs, "the model")
    assert inputs.shape == (8, 9, 3)
    outputs = model.submit(inputs.encoder().encode(images)).result().outputs
    expected = laid_out.reshape(3, -1).astype(np.float32) @ WEIGHTS
    np.testing.assert_allclose(outputs.astype(np.float32), expected, rtol=1e-4, atol=1e-5)
    model.close()


@pytest.mark.parametrize("dtype", ["float16", "float64", "int64", "int32", "uint16", "bool"])
def test_inputs_and_outputs_are_of_any_type_of_numbers(dtype: str, tmp_path: Path) -> None:
    kind = MAKE.np_dtype_to_tensor_dtype(np.dtype(dtype))
    nodes = [MAKE.make_node("Identity", ["x"], ["y"])]
    opened = open_onnx(written(tmp_path / "any.onnx", nodes, {"x": (1, 4), "y": (1, 4)}, kind))
    given = quantize(np.array([[0, 1, 2, 3]], np.float32), opened.signature.input)
    answer = opened.submit(given).result()
    assert not answer.failures
    assert answer.outputs.dtype == dtype
    assert answer.outputs.tolist() == given.tolist()
    opened.close()


def test_several_outputs_and_files_that_are_no_models_are_refused(
    tmp_path: Path, refusal: Refusal
) -> None:
    message = refusal(open_onnx, classifier(tmp_path / "two.onnx", (1, 8, 9, 3), outputs=2))
    assert "two.onnx has 2 outputs ('scores', 'probabilities')" in message
    (tmp_path / "empty.onnx").touch()
    (tmp_path / "text.onnx").write_text("this is not a model")
    for name in ("missing.onnx", "empty.onnx", "text.onnx"):
        assert name in refusal(open_onnx, tmp_path / name)


def test_says_how_to_install_the_extra(
    tmp_path: Path, refusal: Refusal, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = classifier(tmp_path / "model.onnx", (1, 8, 9, 3))
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    inputs = ModelInputs(PairInterface(), [Tensor("image", (1, 8, 9, 3), "int8")], "the model")
    pair = Pair("one", str(path), Path("q.tflite"), Path("seeds.npz"))
    assert 'pip install "edgeflare[onnx]"' in refusal(open_original, pair, inputs)
