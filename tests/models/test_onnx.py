from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

onnx = pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")

from edgeflare.core.tensor import Tensor, quantize  # noqa: E402
from edgeflare.models.model_inputs import ModelInputs  # noqa: E402
from edgeflare.models.onnx import open_onnx  # noqa: E402
from edgeflare.models.original import open_original  # noqa: E402
from edgeflare.models.pair import Pair  # noqa: E402
from edgeflare.models.pair_interface import PairInterface  # noqa: E402

WEIGHTS = np.random.default_rng(1).normal(size=(8 * 9 * 3, 6)).astype(np.float32)


def build_onnx(
    path: Path, shape: tuple[int | str, ...], outputs: int = 1, dtype: int = onnx.TensorProto.FLOAT
) -> Path:
    make = onnx.helper
    nodes = [
        make.make_node("Flatten", ["image"], ["flat"], axis=1),
        make.make_node("MatMul", ["flat", "weights"], ["scores"]),
        make.make_node("Softmax", ["scores"], ["probabilities"]),
    ]
    graph = make.make_graph(
        nodes,
        "classifier",
        [make.make_tensor_value_info("image", dtype, shape)],
        [
            make.make_tensor_value_info(name, onnx.TensorProto.FLOAT, [shape[0], 6])
            for name in ("scores", "probabilities")[:outputs]
        ],
        [onnx.numpy_helper.from_array(WEIGHTS, "weights")],
    )
    model = make.make_model(graph, opset_imports=[make.make_opsetid("", 17)])
    model.ir_version = 9
    onnx.save(model, path)
    return path


@pytest.mark.parametrize(
    ("declared", "given"),
    [
        (("n", "height", "width", 3), (1, 8, 9, 3)),
        (("n", 3, "height", "width"), (1, 3, 8, 9)),
        (("n", None, None, None), (1, 8, 9, 3)),
    ],
)
def test_symbolic_sizes_are_those_of_the_compressed_model(
    declared: tuple[int | str | None, ...], given: tuple[int, ...], tmp_path: Path
) -> None:
    make = onnx.helper
    ends = [make.make_tensor_value_info(n, onnx.TensorProto.FLOAT, declared) for n in ("x", "y")]
    graph = make.make_graph([make.make_node("Sigmoid", ["x"], ["y"])], "any", ends[:1], ends[1:])
    model = make.make_model(graph, opset_imports=[make.make_opsetid("", 17)])
    model.ir_version = 9
    onnx.save(model, tmp_path / "any.onnx")
    signature = open_onnx(tmp_path / "any.onnx", (1, 8, 9, 3)).signature
    assert signature.input.shape == given
    assert signature.output.shape == given


@pytest.mark.parametrize("batch", [1, "batch"])
def test_models_with_channels_first_and_last_take_the_same_images(
    tmp_path: Path, batch: int | str
) -> None:
    images = np.random.default_rng(2).integers(0, 256, (3, 8, 9, 3)).astype(np.uint8)
    for shape in ((8, 9, 3), (3, 8, 9)):
        model = open_onnx(build_onnx(tmp_path / "model.onnx", (batch, *shape)))
        assert model.signature.input == Tensor("image", (1, *shape), "float32")
        assert model.signature.output == Tensor("scores", (1, 6), "float32")
        inputs = ModelInputs(PairInterface(), model.signature.inputs, "the model")
        assert inputs.shape == (8, 9, 3)
        outputs = model.submit(inputs.encoder().encode(images)).result().outputs
        order = (0, 1, 2, 3) if shape[2] == 3 else (0, 3, 1, 2)
        expected = (images / 255).transpose(order).reshape(3, -1).astype(np.float32) @ WEIGHTS
        np.testing.assert_allclose(outputs.astype(np.float32), expected, rtol=1e-4, atol=1e-5)
        model.close()


@pytest.mark.parametrize("dtype", ["float16", "float64", "int64", "int32", "uint16", "bool"])
def test_inputs_and_outputs_are_of_any_type_of_numbers(dtype: str, tmp_path: Path) -> None:
    make = onnx.helper
    kind = make.np_dtype_to_tensor_dtype(np.dtype(dtype))
    ends = [make.make_tensor_value_info(name, kind, (1, 4)) for name in ("x", "y")]
    graph = make.make_graph([make.make_node("Identity", ["x"], ["y"])], "any", ends[:1], ends[1:])
    model = make.make_model(graph, opset_imports=[make.make_opsetid("", 17)])
    model.ir_version = 9
    onnx.save(model, tmp_path / "any.onnx")
    opened = open_onnx(tmp_path / "any.onnx")
    given = quantize(np.array([[0, 1, 2, 3]], np.float32), opened.signature.input)
    answer = opened.submit(given).result()
    assert not answer.failures
    assert answer.outputs.dtype == dtype
    assert answer.outputs.tolist() == given.tolist()
    opened.close()


def test_refuses_several_outputs(tmp_path: Path, refusal: Callable[..., str]) -> None:
    message = refusal(open_onnx, build_onnx(tmp_path / "two.onnx", (1, 8, 9, 3), outputs=2))
    assert "two.onnx has 2 outputs ('scores', 'probabilities')" in message


def test_refuses_files_that_are_no_models(tmp_path: Path, refusal: Callable[..., str]) -> None:
    (tmp_path / "empty.onnx").touch()
    (tmp_path / "text.onnx").write_text("this is not a model")
    for name in ("missing.onnx", "empty.onnx", "text.onnx"):
        assert name in refusal(open_onnx, tmp_path / name)


def test_says_how_to_install_the_extra(
    tmp_path: Path, refusal: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = build_onnx(tmp_path / "model.onnx", (1, 8, 9, 3))
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    inputs = ModelInputs(PairInterface(), [Tensor("image", (1, 8, 9, 3), "int8")], "the model")
    pair = Pair("one", str(path), Path("q.tflite"), Path("seeds.npz"))
    message = refusal(open_original, pair, inputs)
    assert 'pip install "edgeflare[onnx]"' in message
