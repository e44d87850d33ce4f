from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

onnx = pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")

from edgeflare.core.tensor import Tensor  # noqa: E402
from edgeflare.models.model_inputs import ModelInputs  # noqa: E402
from edgeflare.models.onnx import is_planar, open_onnx  # noqa: E402
from edgeflare.models.original import open_original  # noqa: E402
from edgeflare.models.pair import Pair  # noqa: E402
from edgeflare.models.pair_interface import PairInterface  # noqa: E402

WEIGHTS = np.random.default_rng(1).normal(size=(4 * 5 * 3, 6)).astype(np.float32)


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


@pytest.mark.parametrize("batch", [1, "batch"])
def test_planar_and_interleaved_models_take_the_same_images(tmp_path: Path, batch: object) -> None:
    images = np.random.default_rng(2).normal(size=(3, 4, 5, 3)).astype(np.float32)
    for shape, order in (((batch, 4, 5, 3), (0, 1, 2, 3)), ((batch, 3, 4, 5), (0, 3, 1, 2))):
        model = open_onnx(build_onnx(tmp_path / "model.onnx", shape))  # type: ignore[arg-type]
        assert model.signature.input == Tensor("image", (1, 4, 5, 3), "float32")
        assert model.signature.output == Tensor("scores", (1, 6), "float32")
        outputs = model.submit(images).result().outputs
        expected = images.transpose(order).reshape(3, -1) @ WEIGHTS
        np.testing.assert_allclose(outputs.astype(np.float32), expected, rtol=1e-4, atol=1e-5)
        model.close()


def test_planar_is_told_by_the_channels() -> None:
    assert is_planar((1, 3, 224, 224))
    assert is_planar((1, 1, 28, 28))
    assert not is_planar((1, 224, 224, 3))
    assert not is_planar((1, 3, 4, 3))


def test_refuses_several_outputs(tmp_path: Path, refusal: Callable[..., str]) -> None:
    message = refusal(open_onnx, build_onnx(tmp_path / "two.onnx", (1, 4, 5, 3), outputs=2))
    assert "two.onnx has 2 outputs ('scores', 'probabilities')" in message


def test_refuses_files_that_are_no_models(tmp_path: Path, refusal: Callable[..., str]) -> None:
    (tmp_path / "empty.onnx").touch()
    (tmp_path / "text.onnx").write_text("this is not a model")
    for name in ("missing.onnx", "empty.onnx", "text.onnx"):
        assert name in refusal(open_onnx, tmp_path / name)


def test_says_how_to_install_the_extra(
    tmp_path: Path, refusal: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = build_onnx(tmp_path / "model.onnx", (1, 4, 5, 3))
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    inputs = ModelInputs(PairInterface(), [Tensor("image", (1, 4, 5, 3), "int8")], "the model")
    pair = Pair("one", str(path), Path("q.tflite"), Path("seeds.npz"))
    message = refusal(open_original, pair, inputs)
    assert 'pip install "edgeflare[onnx]"' in message
