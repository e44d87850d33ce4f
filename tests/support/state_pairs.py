"""A pair of small models with a state and an input that the search leaves alone, as real files."""

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
