"""Pairs of small models with a state, or with variables, as real files."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from ai_edge_litert import schema_py_generated as schema

from graph_writer import GraphWriter

FRAMES = 4
SEEDS = 12

REGRESSION = 'name = "regression"\ntolerance = 0.03\nframes = "worst"'
THRESHOLD = 'name = "threshold"\nthreshold = 0.6\noutput = "score"\nframes = "last"'

_TOML = """\
name = "state"
original = "original.tflite"
compressed = "compressed.tflite"
seeds = "seeds.npz"
frames = {frames}

[task]
{task}

[state]
state = "next"

[inputs.x]
domain = "array"
lowest = -2.0
highest = 2.0

[inputs.offset]
domain = "array"
lowest = -1.0
highest = 1.0
search = false
"""

_VARIABLE_TOML = """\
name = "variable"
original = "original.tflite"
compressed = "compressed.tflite"
seeds = "seeds.npz"
{clip}
[inputs.x]
domain = "array"
lowest = -3.0
highest = 3.0
"""


def write_state_pair(folder: Path, task: str = REGRESSION, values: int = 3) -> Path:
    """Write a pair of the task: next = x + state, and score = logistic(next + offset).

    Args:
        folder: where to; it is made.
        task: the keys of `[task]`.
        values: of x, and of each other tensor; 1 for the task threshold.

    """
    folder.mkdir(parents=True)
    _write_model(folder / "original.tflite", values, quantized=False)
    _write_model(folder / "compressed.tflite", values, quantized=True)
    rng = np.random.default_rng(5)
    shape = (SEEDS, FRAMES, 1, values)
    x = rng.uniform(-0.5, 0.5, shape).astype(np.float32)
    offset = rng.uniform(-0.9, 0.9, shape).astype(np.float32)
    np.savez(folder / "seeds.npz", x=x, offset=offset)
    (folder / "pair.toml").write_text(_TOML.format(frames=FRAMES, task=task))
    return folder


def write_variable_pair(folder: Path, *, resource: bool, frames: int = 0) -> Path:
    """Write a pair of classifiers that add up what they are given: total += x, softmax(W total).

    Args:
        folder: where to; it is made.
        resource: the total is a resource; else it is a variable tensor, which fades by a tenth.
        frames: of a clip; 0 where each input is an inference.

    """
    folder.mkdir(parents=True)
    rng = np.random.default_rng(7)
    weights = (np.eye(3) + rng.normal(0, 0.2, (3, 3))).astype(np.float32)
    rounded = (np.round(weights * 6) / 6).astype(np.float32)
    for name, values in (("original", weights), ("compressed", rounded)):
        graph = GraphWriter()
        x, total = _resource(graph) if resource else _fading(graph)
        read = graph.tensor("weights", (3, 3), "FLOAT32", data=values)
        logits, y = (graph.tensor(one, (1, 3), "FLOAT32") for one in ("logits", "y"))
        graph.operator("FULLY_CONNECTED", [total, read], [logits], schema.FullyConnectedOptionsT())
        softmax = schema.SoftmaxOptionsT()
        softmax.beta = 1.0
        graph.operator("SOFTMAX", [logits], [y], softmax)
        graph.save(folder / f"{name}.tflite", [x], [y])
    given = rng.normal(0, 0.7, (24, frames or 1, 1, 3)).clip(-3, 3).astype(np.float32)
    labels = given.sum(axis=(1, 2)).argmax(axis=1)
    np.savez(folder / "seeds.npz", x=given if frames else given[:, 0], labels=labels)
    clip = f"frames = {frames}\n" if frames else ""
    (folder / "pair.toml").write_text(_VARIABLE_TOML.format(clip=clip))
    return folder


def _resource(graph: GraphWriter) -> tuple[int, int]:
    """Write total += x with a resource that is set to zero once; return x and total."""
    x, handle = graph.tensor("x", (1, 3), "FLOAT32"), graph.tensor("handle", (), "RESOURCE")
    before, total = (graph.tensor(name, (1, 3), "FLOAT32") for name in ("before", "total"))
    once, named = schema.CallOnceOptionsT(), schema.VarHandleOptionsT()
    once.initSubgraphIndex, named.sharedName = 1, "sum"
    graph.operator("CALL_ONCE", [], [], once)
    graph.operator("VAR_HANDLE", [], [handle], named)
    graph.operator("READ_VARIABLE", [handle], [before], schema.ReadVariableOptionsT())
    graph.operator("ADD", [before, x], [total], schema.AddOptionsT())
    graph.operator("ASSIGN_VARIABLE", [handle, total], [], schema.AssignVariableOptionsT())
    graph.second()
    handle = graph.tensor("handle", (), "RESOURCE")
    zero = graph.tensor("zero", (1, 3), "FLOAT32", data=np.zeros((1, 3), np.float32))
    graph.operator("VAR_HANDLE", [], [handle], named)
    graph.operator("ASSIGN_VARIABLE", [handle, zero], [], schema.AssignVariableOptionsT())
    graph.first([], [])
    return x, total


def _fading(graph: GraphWriter) -> tuple[int, int]:
    """Write total = x + 0.9 total with a variable tensor; return x and total."""
    x = graph.tensor("x", (1, 1, 3), "FLOAT32")
    eye = np.eye(3, dtype=np.float32)
    w, again = (
        graph.tensor(name, (3, 3), "FLOAT32", data=values)
        for name, values in (("w", eye), ("again", eye * np.float32(0.9)))
    )
    bias = graph.tensor("bias", (3,), "FLOAT32", data=np.zeros(3, np.float32))
    state, made = graph.tensor("faded", (1, 3), "FLOAT32"), graph.tensor("o", (1, 1, 3), "FLOAT32")
    graph.graph.tensors[state].isVariable = True
    options = schema.SequenceRNNOptionsT()
    graph.operator("UNIDIRECTIONAL_SEQUENCE_RNN", [x, w, again, bias, state], [made], options)
    shape = graph.tensor("shape", (2,), "INT32", data=np.array([1, 3], np.int32))
    total = graph.tensor("total", (1, 3), "FLOAT32")
    graph.operator("RESHAPE", [made, shape], [total], schema.ReshapeOptionsT())
    return x, total


def _write_model(path: Path, values: int, *, quantized: bool) -> None:
    graph = GraphWriter()

    def tensor(name: str, scale: float, zero_point: int) -> int:
        quantization = (scale, zero_point) if quantized else None
        return graph.tensor(name, (1, values), "INT8" if quantized else "FLOAT32", quantization)

    state, x = tensor("state", 0.05, -3), tensor("x", 0.02, 7)
    offset, following = tensor("offset", 0.01, 0), tensor("next", 0.06, 4)
    total, score = tensor("total", 0.07, 0), tensor("score", 1 / 256, -128)
    version = 2 if quantized else 1
    graph.operator("ADD", [x, state], [following], schema.AddOptionsT(), version)
    graph.operator("ADD", [following, offset], [total], schema.AddOptionsT(), version)
    graph.operator("LOGISTIC", [total], [score], None, version)
    graph.save(path, [offset, state, x], [following, score])
