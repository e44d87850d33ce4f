"""Pairs of small detectors of an array, as folders of real files."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from ai_edge_litert import schema_py_generated as schema
from numpy.typing import NDArray

from graph_writer import GraphWriter

INPUTS, OBJECTS, SEEDS = 6, 4, 8

Weights = NDArray[np.float32]
Range = tuple[float, float]

_SIDES: tuple[Range, ...] = ((0.0, 0.3), (0.1, 0.3), (0.6, 0.9), (0.7, 0.9))
"""Of left, top, right and bottom, so that each box is one."""

_SCORE: Range = (0.2, 0.8)

_TOML = """\
original = "original.tflite"
compressed = "compressed.tflite"
seeds = "seeds.npz"

[task]
name = "detection"
decoding = "{decoding}"

[inputs.values]
domain = "array"
array = "inputs"
lowest = -4.0
highest = 4.0
"""


def write_detector_pair(folder: Path, decoding: str) -> Path:
    """Write detectors of 4 objects of 4 classes, (1, 6), with 8 seeds.

    Sides and scores are a logistic function of the inputs. The compressed model has the weights of
    its original rounded to halves.

    Args:
        folder: where to; it is made.
        decoding: "objects" or "postprocess".

    """
    folder.mkdir(parents=True)
    rng = np.random.default_rng(11)
    weights = rng.normal(size=(OBJECTS, 5, INPUTS))
    for name, values in (("original", weights), ("compressed", np.rint(weights * 2) / 2)):
        _write_detector(folder / f"{name}.tflite", values.astype(np.float32), decoding)
    inputs = rng.uniform(-2.0, 2.0, (SEEDS, INPUTS)).astype(np.float32)
    np.savez(folder / "seeds.npz", inputs=inputs)
    (folder / "pair.toml").write_text(_TOML.format(decoding=decoding))
    return folder


def _write_detector(path: Path, weights: Weights, decoding: str) -> Path:
    """Write a detector of weights (objects, 5, inputs): of the four sides and the score."""
    graph = GraphWriter()
    values = graph.tensor("values", (1, INPUTS), "FLOAT32")
    numbered = np.zeros((OBJECTS, 1, INPUTS), np.float32)  # a class takes no part of the inputs
    labels = [(float(at), float(at)) for at in range(OBJECTS)]

    def output(name: str, of: Weights, ranges: Sequence[Range], *shape: int) -> int:
        return _bounded(graph, values, of.reshape(-1, INPUTS), ranges, name, shape)

    if decoding == "objects":
        rows = np.concatenate([weights, numbered], axis=1)
        ranges = [one for label in labels for one in (*_SIDES, _SCORE, label)]
        return graph.save(path, [values], [output("objects", rows, ranges, 1, OBJECTS, 6)])
    sides = [_SIDES[at] for at in (1, 0, 3, 2)] * OBJECTS
    outputs = [
        output("boxes", weights[:, [1, 0, 3, 2]], sides, 1, OBJECTS, 4),
        output("classes", numbered, labels, 1, OBJECTS),
        output("scores", weights[:, 4], [_SCORE] * OBJECTS, 1, OBJECTS),
        output("count", numbered[0], [(OBJECTS - 1.0, OBJECTS - 1.0)], 1),
    ]
    return graph.save(path, [values], outputs)


def _bounded(
    graph: GraphWriter,
    source: int,
    weights: Weights,
    ranges: Sequence[Range],
    name: str,
    shape: Sequence[int],
) -> int:
    """Add an output: a logistic function of weights (values, inputs), scaled to ranges."""
    size = len(weights)
    lowest, highest = np.array(ranges, np.float32).T

    def held(what: str, of: Weights) -> int:
        return graph.tensor(f"{name} {what}", of.shape, "FLOAT32", data=of)

    def made(what: str) -> int:
        return graph.tensor(f"{name} {what}", (1, size), "FLOAT32")

    sums, shares, scaled, moved = map(made, ("sums", "shares", "scaled", "moved"))
    bias = held("bias", np.zeros(size, np.float32))
    given = [source, held("weights", weights), bias]
    graph.operator("FULLY_CONNECTED", given, [sums], schema.FullyConnectedOptionsT())
    graph.operator("LOGISTIC", [sums], [shares])
    ranged = held("range", (highest - lowest)[None])
    graph.operator("MUL", [shares, ranged], [scaled], schema.MulOptionsT())
    graph.operator("ADD", [scaled, held("least", lowest[None])], [moved], schema.AddOptionsT())
    new_shape = graph.tensor(
        f"{name} shape", (len(shape),), "INT32", data=np.array(shape, np.int32)
    )
    result = graph.tensor(name, tuple(shape), "FLOAT32")
    graph.operator("RESHAPE", [moved, new_shape], [result], schema.ReshapeOptionsT())
    return result
