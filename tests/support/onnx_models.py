"""ONNX files: a linear classifier of the example's images, and the example's own LeNet."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from onnx import NodeProto, TensorProto, helper, numpy_helper, save

from edgeflare.models.tflite_graph import Graph

PIXELS = 28 * 28


def linear_weights() -> NDArray[np.float32]:
    return np.random.default_rng(0).normal(0.0, 0.1, (PIXELS, 10)).astype(np.float32)


def write_linear_onnx(path: Path, weights: NDArray[np.float32]) -> Path:
    """Write a model of (1, 28, 28, 1) with a score for each column of the weights."""
    constants = [
        numpy_helper.from_array(weights, "weights"),
        numpy_helper.from_array(np.array([1, PIXELS], np.int64), "shape"),
    ]
    nodes = [
        helper.make_node("Reshape", ["image", "shape"], ["row"]),
        helper.make_node("MatMul", ["row", "weights"], ["score"]),
    ]
    shapes = (("image", [1, 28, 28, 1]), ("score", [1, weights.shape[1]]))
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in shapes]
    graph = helper.make_graph(nodes, "linear", ends[:1], ends[1:], constants)
    opset = helper.make_opsetid("", 13)
    save(helper.make_model(graph, opset_imports=[opset], ir_version=8), path)
    return path


def write_layer_onnx(path: Path, weights: NDArray[np.float32]) -> Path:
    """Write a layer alone, with weights of (inputs, outputs)."""
    shapes = (("row", [1, len(weights)]), ("score", [1, weights.shape[1]]))
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in shapes]
    node = helper.make_node("MatMul", ["row", "weights"], ["score"])
    constant = numpy_helper.from_array(np.ascontiguousarray(weights), "weights")
    graph = helper.make_graph([node], "layer", ends[:1], ends[1:], [constant])
    save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8), path)
    return path


def write_lenet_onnx(path: Path, original: bytes, *, normalized: bool = False) -> Path:
    """Write the example's LeNet-4 as other tools export it: channels first, of (1, 1, 28, 28).

    `normalized` leaves half of the second convolution, and of the last layer, to normalizations.
    """
    graph = Graph(original)

    def values(index: int) -> NDArray[np.float32]:
        return graph.values(index).astype(np.float32)

    layers = [graph.operators[at] for at in (0, 2, 8, 9)]
    assert [layer.name for layer in layers] == ["CONV_2D"] * 2 + ["FULLY_CONNECTED"] * 2
    (first, *a), (second, *b), (dense, *c), (last, *d) = (
        [values(at) for at in layer.inputs[1:]] for layer in layers
    )
    rows = dense.reshape(len(dense), 4, 4, 16).transpose(0, 3, 1, 2).reshape(len(dense), -1)
    arrays = {
        "w1": first.transpose(0, 3, 1, 2), "b1": a[0], "w2": second.transpose(0, 3, 1, 2),
        "b2": b[0], "w3": rows, "b3": c[0], "w4": last.T, "b4": d[0],
        "shape": np.array([1, -1], np.int64),
    }  # fmt: skip
    behind = []
    ending = helper.make_node("Add", ["m4", "b4"], ["logits"])
    if normalized:
        channels = len(b[0])
        arrays |= {"gamma": np.full(channels, 0.5), "beta": b[0] / 2, "mean": -b[0]}
        arrays |= {"variance": np.full(channels, 1.0 - 1e-5), "w2": arrays["w2"] * 2}
        arrays |= {"b2": np.zeros(channels), "v4": np.full(10, 1.0 - 1e-5)}
        arrays |= {"w4": arrays["w4"] * 2, "g4": np.full(10, 0.5), "zero": np.zeros(10)}
        ending = _normalization("m4", "g4", "b4", "zero", "v4", "logits")
        behind = [_normalization("c2", "gamma", "beta", "mean", "variance", "n2")]

    def pooled(given: str, made: str) -> NodeProto:
        return helper.make_node("MaxPool", [given], [made], kernel_shape=[2, 2], strides=[2, 2])

    nodes = [
        helper.make_node("Conv", ["image", "w1", "b1"], ["c1"]),
        helper.make_node("Relu", ["c1"], ["r1"]),
        pooled("r1", "p1"),
        helper.make_node("Conv", ["p1", "w2", "b2"], ["c2"]),
        *behind,
        helper.make_node("Relu", ["n2" if normalized else "c2"], ["r2"]),
        pooled("r2", "p2"),
        helper.make_node("Reshape", ["p2", "shape"], ["row"]),
        helper.make_node("Gemm", ["row", "w3", "b3"], ["d3"], transB=1),
        helper.make_node("Relu", ["d3"], ["r3"]),
        helper.make_node("MatMul", ["r3", "w4"], ["m4"]),
        ending,
        helper.make_node("Softmax", ["logits"], ["score"]),
    ]
    constants = [
        numpy_helper.from_array(values if name == "shape" else values.astype(np.float32), name)
        for name, values in arrays.items()
    ]
    ends = [
        helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)
        for name, shape in (("image", [1, 1, 28, 28]), ("score", [1, 10]))
    ]
    made = helper.make_graph(nodes, "lenet", ends[:1], ends[1:], constants)
    save(helper.make_model(made, opset_imports=[helper.make_opsetid("", 13)], ir_version=8), path)
    return path


def _normalization(*names: str) -> NodeProto:
    return helper.make_node("BatchNormalization", names[:-1], names[-1:])
