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

from edgeflare.core.tensor import Tensor, quantize, unpack_rows  # noqa: E402
from edgeflare.models.in_process import open_onnx  # noqa: E402
from edgeflare.models.model_inputs import ModelInputs  # noqa: E402
from edgeflare.models.original import open_original  # noqa: E402
from edgeflare.models.pair import Pair  # noqa: E402
from edgeflare.models.pair_file import Settings  # noqa: E402
from edgeflare.models.pair_interface import PairInterface, read_interface  # noqa: E402
from edgeflare.record.json_types import JsonValue  # noqa: E402

Refusal = Callable[..., str]
Shape = tuple[int | str | None, ...]

MAKE, FLOAT = onnx.helper, onnx.TensorProto.FLOAT
REGRESSION: dict[str, Any] = {"name": "regression", "tolerance": 1.0}
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
    signature = open_onnx(path, {"image": (1, 8, 9, 3)}).signature
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


def test_all_outputs_of_an_original_can_be_read(tmp_path: Path) -> None:
    model = open_onnx(classifier(tmp_path / "two.onnx", ("batch", 8, 9, 3), outputs=2))
    image = np.random.default_rng(3).random((1, 8, 9, 3)).astype(np.float32)
    answer = model.submit(image).result()
    scores, probabilities = (
        array.astype(np.float32) for array in unpack_rows(model.signature.outputs, answer.outputs)
    )
    np.testing.assert_allclose(scores[0], image.reshape(1, -1) @ WEIGHTS, rtol=1e-4, atol=1e-5)
    odds = np.exp(scores - scores.max())
    np.testing.assert_allclose(probabilities, odds / odds.sum(), rtol=1e-4)
    model.close()


@pytest.mark.parametrize("width", [3, 1])
def test_inputs_are_told_apart_and_sized_by_the_names_of_the_pair(
    width: int, tmp_path: Path
) -> None:
    made = [
        MAKE.make_tensor_value_info(name, FLOAT, ("batch", f"length of {name}"))
        for name in ("mask", "ids", "left")
    ]
    nodes = [MAKE.make_node("Sub", ["ids", "mask"], ["left"])]
    graph = MAKE.make_graph(nodes, "any", made[:2], made[2:])
    model = MAKE.make_model(graph, opset_imports=[MAKE.make_opsetid("", 17)])
    model.ir_version = 9
    onnx.save(model, tmp_path / "two.onnx")
    tables: dict[str, dict[str, JsonValue]] = {
        name: {"domain": "array", "tensor": f"serving_{name}", "lowest": 0, "highest": 9}
        for name in ("ids", "mask")
    }
    interface = read_interface(Settings(inputs=tables, task=REGRESSION), from_file=True)
    widths = {"ids": 3, "mask": width}
    tensors = [Tensor(f"serving_{name}", (1, size), "int8") for name, size in widths.items()]
    compressed = ModelInputs(interface, tensors, "q.tflite")
    pair = Pair("two", str(tmp_path / "two.onnx"), Path("q.tflite"), Path("seeds.npz"), interface)
    original = open_original(pair, compressed)
    inputs = ModelInputs(interface, original.signature.inputs, "two.onnx", like=compressed)
    ids, mask = np.full((2, 1, 3), 7.0), np.full((2, 1, width), 2.0)
    np.savez(tmp_path / "seeds.npz", ids=ids, mask=mask)
    rows = inputs.given(inputs.load(tmp_path / "seeds.npz")).rows
    assert original.submit(rows).result().outputs.tolist() == [[5.0] * 3] * 2
    original.close()


def test_files_that_are_no_models_are_refused(tmp_path: Path, refusal: Refusal) -> None:
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
