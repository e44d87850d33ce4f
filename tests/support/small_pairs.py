"""Small pairs of other domains than images, as folders of real files.

Each compressed model has the weights of its original rounded to quarters.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
from ai_edge_litert import schema_py_generated as schema
from numpy.typing import NDArray

from graph_writer import GraphWriter

VOCABULARY, LENGTH, CLASSES, FRAMES, SIDE = 12, 8, 3, 6, 4

Weights = NDArray[np.float32]
Write = Callable[[Path, Weights], object]


def write_tokens_pair(folder: Path) -> Path:
    """Write a classifier of lists of ids, int32 (1, 8) of 12, with 6 seeds."""
    rng = np.random.default_rng(5)
    _write_models(folder, _tokens_model, rng.normal(size=(CLASSES, LENGTH * 3)))
    np.savez(folder / "seeds.npz", tokens=rng.integers(2, VOCABULARY, (6, LENGTH), np.int32))
    return _described(folder, '[inputs.ids]\ndomain = "tokens"\nvocabulary = 12\npadding = 0\n')


def write_two_inputs_pair(folder: Path) -> Path:
    """Write a classifier of two arrays, (1, 6) and (1, 4); the search leaves the second alone."""
    rng = np.random.default_rng(6)
    _write_models(folder, _two_inputs_model, rng.normal(size=(CLASSES, 10)))
    motion = rng.uniform(-3.0, 3.0, (8, 6)).astype(np.float32)
    place = rng.uniform(-1.0, 1.0, (8, 4)).astype(np.float32)
    np.savez(folder / "seeds.npz", motion=motion, place=place)
    bounds = 'domain = "array"\nlowest = -4.0\nhighest = 4.0\n'
    return _described(
        folder, f"[inputs.motion]\n{bounds}\n[inputs.place]\n{bounds}search = false\n"
    )


def write_clip_pair(folder: Path) -> Path:
    """Write a classifier that sees clips of 6 frames, (4, 4, 1), one after the other."""
    rng = np.random.default_rng(7)
    _write_models(folder, _frame_model, rng.normal(size=(CLASSES, SIDE * SIDE)))
    clips = rng.integers(0, 256, (6, FRAMES, SIDE, SIDE, 1), np.uint8)
    np.savez(folder / "seeds.npz", clips=clips)
    return _described(
        folder, f'frames = {FRAMES}\n[state]\nheard = "next"\n[inputs.picture]\ndomain = "frames"\n'
    )


def write_score_pair(folder: Path, described: str) -> Path:
    """Write a model of one score of values, (1, 6), with 8 seeds `inputs`.

    Args:
        folder: to write to.
        described: what `pair.toml` says beside the paths.

    """
    rng = np.random.default_rng(8)
    _write_models(folder, _score_model, rng.normal(size=(1, 6)))
    np.savez(folder / "seeds.npz", inputs=rng.uniform(-2.0, 2.0, (8, 6)).astype(np.float32))
    return _described(folder, described)


def write_text_pair(folder: Path, task: str = "") -> Path:
    """Write a model of texts of 3 symbols and a blank: arrays (8, 6) to logits (1, 8, 4), 8 seeds.

    Args:
        folder: to write to.
        task: what `[task]` says beside the vocabulary.

    """
    rng = np.random.default_rng(10)
    _write_models(folder, _text_model, rng.normal(size=(4, 6)))
    inputs = rng.uniform(-2.0, 2.0, (8, 8, 6)).astype(np.float32)
    np.savez(folder / "seeds.npz", inputs=inputs, labels=rng.integers(-1, 3, (8, 5)))
    array = '[inputs.sound]\ndomain = "array"\narray = "inputs"\nlowest = -4.0\nhighest = 4.0\n'
    vocabulary = 'vocabulary = ["yes", "no", "<b>"]\n'
    return _described(folder, f'{array}\n[task]\nname = "transcript"\n{vocabulary}{task}')


def _write_models(folder: Path, write: Write, weights: NDArray[np.float64]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    write(folder / "original.tflite", weights.astype(np.float32))
    write(folder / "compressed.tflite", (np.rint(weights * 4) / 4).astype(np.float32))


def _described(folder: Path, more: str) -> Path:
    paths = 'original = "original.tflite"\ncompressed = "compressed.tflite"\nseeds = "seeds.npz"\n'
    (folder / "pair.toml").write_text(paths + more)
    return folder


def _tokens_model(path: Path, weights: Weights) -> None:
    graph = GraphWriter()
    ids = graph.tensor("ids", (1, LENGTH), "INT32")
    table = np.random.default_rng(9).normal(size=(VOCABULARY, 3)).astype(np.float32)
    known = graph.tensor("table", table.shape, "FLOAT32", data=table)
    found = graph.tensor("found", (1, LENGTH, 3), "FLOAT32")
    graph.operator("GATHER", [known, ids], [found], schema.GatherOptionsT())
    flat = _reshaped(graph, found, LENGTH * 3)
    graph.save(path, [ids], [_softmax(graph, _connected(graph, flat, weights))])


def _two_inputs_model(path: Path, weights: Weights) -> None:
    graph = GraphWriter()
    place = graph.tensor("place", (1, 4), "FLOAT32")
    motion = graph.tensor("motion", (1, 6), "FLOAT32")
    both = graph.tensor("both", (1, 10), "FLOAT32")
    options = schema.ConcatenationOptionsT()
    options.axis = 1
    graph.operator("CONCATENATION", [motion, place], [both], options)
    graph.save(path, [place, motion], [_softmax(graph, _connected(graph, both, weights))])


def _frame_model(path: Path, weights: Weights) -> None:
    graph = GraphWriter()
    heard = graph.tensor("heard", (1, CLASSES), "FLOAT32")
    picture = graph.tensor("picture", (1, SIDE, SIDE, 1), "FLOAT32")
    seen = _connected(graph, _reshaped(graph, picture, SIDE * SIDE), weights)
    following = graph.tensor("next", (1, CLASSES), "FLOAT32")
    graph.operator("ADD", [seen, heard], [following], schema.AddOptionsT())
    graph.save(path, [heard, picture], [following, _softmax(graph, following)])


def _score_model(path: Path, weights: Weights) -> None:
    graph = GraphWriter()
    values = graph.tensor("values", (1, weights.shape[1]), "FLOAT32")
    graph.save(path, [values], [_connected(graph, values, weights)])


def _text_model(path: Path, weights: Weights) -> None:
    graph = GraphWriter()
    sound = graph.tensor("sound", (1, 8, 6), "FLOAT32")
    held = graph.tensor("weights", weights.shape, "FLOAT32", data=weights)
    bias = graph.tensor("bias", (4,), "FLOAT32", data=np.zeros(4, np.float32))
    steps = graph.tensor("steps", (1, 8, 4), "FLOAT32")
    options = schema.FullyConnectedOptionsT()
    options.keepNumDims = True
    graph.operator("FULLY_CONNECTED", [sound, held, bias], [steps], options, 5)
    graph.save(path, [sound], [steps])


def _reshaped(graph: GraphWriter, source: int, size: int) -> int:
    flat = graph.tensor("flat", (1, size), "FLOAT32")
    shape = graph.tensor("shape", (2,), "INT32", data=np.array([1, size], np.int32))
    options = schema.ReshapeOptionsT()
    options.newShape = [1, size]
    graph.operator("RESHAPE", [source, shape], [flat], options)
    return flat


def _connected(graph: GraphWriter, source: int, weights: Weights) -> int:
    rows = weights.shape[0]
    held = graph.tensor("weights", weights.shape, "FLOAT32", data=weights)
    bias = graph.tensor("bias", (rows,), "FLOAT32", data=np.zeros(rows, np.float32))
    scores = graph.tensor("scores", (1, rows), "FLOAT32")
    graph.operator(
        "FULLY_CONNECTED", [source, held, bias], [scores], schema.FullyConnectedOptionsT()
    )
    return scores


def _softmax(graph: GraphWriter, scores: int) -> int:
    options = schema.SoftmaxOptionsT()
    options.beta = 1.0
    chances = graph.tensor("chances", (1, CLASSES), "FLOAT32")
    graph.operator("SOFTMAX", [scores], [chances], options)
    return chances
