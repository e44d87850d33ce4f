"""A linear classifier of the example's images as an ONNX file."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper, save

PIXELS = 28 * 28


def linear_weights(classes: int = 10) -> NDArray[np.float32]:
    return np.random.default_rng(0).normal(0.0, 0.1, (PIXELS, classes)).astype(np.float32)


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
