"""A classifier over a spectrum, whose complex tensor nothing can read, and one of open shapes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from ai_edge_litert import schema_py_generated as schema
from numpy.typing import NDArray

from graph_writer import GraphWriter

Weights = NDArray[np.float32]

SPECTRUM, MAGNITUDE, FLAT, LOGITS, SOFTMAX = range(5)
"""The operators of the classifier over a spectrum."""


def write_spectrum(path: Path, weights: Weights) -> bytes:
    """Write a softmax of weights, (classes, 40), over the spectrum of an input of (1, 8, 8)."""
    writer = GraphWriter()
    given = writer.tensor("x", (1, 8, 8), "FLOAT32")
    length = writer.tensor("length", (2,), "INT32", data=np.array([8, 8], np.int32))
    spectrum = writer.tensor("spectrum", (1, 8, 5), "COMPLEX64")
    magnitude = writer.tensor("magnitude", (1, 8, 5), "FLOAT32")
    writer.operator("RFFT2D", [given, length], [spectrum], schema.Rfft2dOptionsT())
    writer.operator("COMPLEX_ABS", [spectrum], [magnitude])
    shape = writer.tensor("shape", (2,), "INT32", data=np.array([1, 40], np.int32))
    flat = writer.tensor("flat", (1, 40), "FLOAT32")
    writer.operator("RESHAPE", [magnitude, shape], [flat], schema.ReshapeOptionsT())
    return _classified(writer, path, given, flat, weights)


def write_of_any_size(path: Path, kernel: Weights, weights: Weights) -> bytes:
    """Write a softmax over the mean of a convolution of an input of (1, open, open, 1)."""
    writer = GraphWriter()
    given = writer.tensor("x", (1, 1, 1, 1), "FLOAT32")
    writer.graph.tensors[given].shapeSignature = [1, -1, -1, 1]
    read = writer.tensor("kernel", kernel.shape, "FLOAT32", data=kernel)
    features = writer.tensor("features", (1, 1, 1, len(kernel)), "FLOAT32")
    options = schema.Conv2DOptionsT()
    options.strideW = options.strideH = options.dilationWFactor = options.dilationHFactor = 1
    bias = writer.tensor("bias", (len(kernel),), "FLOAT32", data=np.zeros(len(kernel), np.float32))
    writer.operator("CONV_2D", [given, read, bias], [features], options)
    axes = writer.tensor("axes", (2,), "INT32", data=np.array([1, 2], np.int32))
    mean = writer.tensor("mean", (1, len(kernel)), "FLOAT32")
    writer.operator("MEAN", [features, axes], [mean], schema.ReducerOptionsT())
    return _classified(writer, path, given, mean, weights)


def _classified(writer: GraphWriter, path: Path, given: int, flat: int, weights: Weights) -> bytes:
    classes = len(weights)
    read = writer.tensor("weights", weights.shape, "FLOAT32", data=weights)
    logits, made = (writer.tensor(name, (1, classes), "FLOAT32") for name in ("logits", "y"))
    writer.operator("FULLY_CONNECTED", [flat, read], [logits], schema.FullyConnectedOptionsT())
    options = schema.SoftmaxOptionsT()
    options.beta = 1.0
    writer.operator("SOFTMAX", [logits], [made], options)
    return writer.save(path, [given], [made]).read_bytes()
