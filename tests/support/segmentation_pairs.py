"""Pairs of small models that give a class for each pixel, as folders of real files."""

from __future__ import annotations

from pathlib import Path

import cv2
import numpy as np
from ai_edge_litert import schema_py_generated as schema
from numpy.typing import NDArray

from graph_writer import GraphWriter

SIDE, SEEDS = 24, 8

TASK = 'name = "segmentation"\noverlap = 0.8'

_TOML = """\
name = "blobs"
original = "original.tflite"
compressed = "compressed.tflite"
seeds = "seeds.npz"
{classes}

[preprocess]
scale = 255.0
mean = [0.5]
std = [1.0]

[task]
{task}
"""


def write_segmentation_pair(folder: Path, task: str = TASK, scores: int = 1) -> Path:
    """Write a pair of one 3 x 3 convolution of pictures of 24 x 24, with 8 seeds.

    The compressed model has the weights of its original rounded to halves.

    Args:
        folder: where to; it is made.
        task: the keys of `[task]`.
        scores: of each pixel: 1, after a LOGISTIC, or one for each class.

    """
    folder.mkdir(parents=True)
    rng = np.random.default_rng(4)
    weights = rng.normal(0.0, 0.6, (scores, 3, 3, 3)).astype(np.float32)
    write_mask_model(folder / "original.tflite", weights)
    write_mask_model(folder / "compressed.tflite", np.rint(weights * 2) / np.float32(2))
    coarse = rng.uniform(0.0, 255.0, (SEEDS, 5, 5, 3))
    images = [cv2.resize(one, (SIDE, SIDE), interpolation=cv2.INTER_CUBIC) for one in coarse]
    np.savez(folder / "seeds.npz", images=np.clip(images, 0, 255).astype(np.uint8))
    classes = 'classes = ["ground", "blob"]' if scores == 1 else ""
    (folder / "pair.toml").write_text(_TOML.format(task=task, classes=classes))
    return folder


def write_mask_model(path: Path, weights: NDArray[np.float32], *, padded: bool = True) -> Path:
    """Write a convolution, with a LOGISTIC behind it where it has one channel.

    Args:
        path: the file.
        weights: (scores, 3, 3, 3).
        padded: whether the mask is as large as the picture, and not 2 pixels smaller.

    """
    graph, scores = GraphWriter(), len(weights)
    side = SIDE if padded else SIDE - 2
    picture = graph.tensor("picture", (1, SIDE, SIDE, 3), "FLOAT32")
    kernel = graph.tensor("kernel", weights.shape, "FLOAT32", data=weights)
    bias = graph.tensor("bias", (scores,), "FLOAT32", data=np.zeros(scores, np.float32))
    sums = graph.tensor("sums", (1, side, side, scores), "FLOAT32")
    options = schema.Conv2DOptionsT()
    options.padding = schema.Padding.SAME if padded else schema.Padding.VALID
    options.strideH = options.strideW = 1
    graph.operator("CONV_2D", [picture, kernel, bias], [sums], options)
    if scores > 1:
        return graph.save(path, [picture], [sums])
    mask = graph.tensor("mask", (1, side, side, 1), "FLOAT32")
    graph.operator("LOGISTIC", [sums], [mask])
    return graph.save(path, [picture], [mask])
