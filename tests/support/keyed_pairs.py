"""Pairs whose `pair.toml` says all with keys: no function of a user's stands around the models.

Their models are fitted to drawn inputs by least squares; the compressed model has the weights of
its original rounded to sixteenths.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from ai_edge_litert import schema_py_generated as schema
from numpy.typing import NDArray

from edgeflare.domains.audio.log_mel import LogMel
from graph_writer import GraphWriter

RATE, SAMPLES = 4_000, 4_000
BANDS, LENGTH, HOP, ROWS = 8, 5, 2, 49
WINDOWS = 1 + (ROWS - LENGTH) // HOP
SIDE, POINTS = 12, 3

Real = NDArray[np.float64]
Model = Callable[[GraphWriter, float], tuple[int, int]]

FRONT_END = LogMel(RATE, 160, 80, 256, BANDS, 60.0, 2_000.0)
_SOUND = f"""
[inputs.sound]
domain = "audio"
sample_rate = {RATE}
samples = {SAMPLES}

[inputs.sound.front_end]
name = "log-mel"
frame_length = 160
frame_step = 80
fft_length = 256
bands = {BANDS}
lowest_hz = 60
highest_hz = 2000
"""
_PATHS = 'original = "original.tflite"\ncompressed = "compressed.tflite"\nseeds = "seeds.npz"\n'


def write_anomaly_pair(folder: Path, count: int = 60) -> Path:
    """Write a detector of anomalies in the hum of a machine, by windows of 5 of 49 feature rows.

    It is an autoencoder of a window's 40 values; the score of a sound is the mean over its windows
    of the mean squared difference. The labels say 1 of every third sound, which has knocks in it.
    """
    rng = np.random.default_rng(3)
    labels = (np.arange(count) % 3 == 2).astype(np.int64)
    waves = np.stack([_machine(rng, bool(label)) for label in labels])
    rows = FRONT_END.features(waves).astype(np.float64)
    cut = np.lib.stride_tricks.sliding_window_view(rows, LENGTH, axis=1)[:, ::HOP]
    windows = np.moveaxis(cut, -1, 2).reshape(count, WINDOWS, LENGTH * BANDS)
    normal = windows[labels == 0].reshape(-1, LENGTH * BANDS)
    mean = normal.mean(0)
    basis = np.linalg.svd(normal - mean, full_matrices=False)[2][:6]
    scores = np.square((windows - mean) - (windows - mean) @ basis.T @ basis).mean((1, 2))
    threshold = (scores[labels == 0].max() + scores[labels == 1].min()) / 2

    def model(graph: GraphWriter, digits: float) -> tuple[int, int]:
        held = _rounded(basis, digits)
        x = graph.tensor("features", (1, LENGTH * BANDS), "FLOAT32")
        code = _connected(graph, x, held, -held @ mean)
        return x, _connected(graph, code, np.ascontiguousarray(held.T), mean)

    text = f"""
[inputs.sound.windows]
length = {LENGTH}
step = {HOP}

[task]
name = "threshold"
score = "reconstruction"
threshold = {threshold:.4f}
frames = "mean"
above = "anomaly"
below = "normal"
"""
    return _written(folder, model, _SOUND + text, waves=waves, labels=labels)


def write_wake_word_pair(folder: Path, count: int = 60) -> Path:
    """Write a wake word: a model with a variable, which is given 49 feature rows one by one.

    The variable fades by a third with each row. The labels say 1 of every second sound, which has a
    rising tone in it, and the highest score of a sound counts.
    """
    rng = np.random.default_rng(4)
    labels = (np.arange(count) % 2).astype(np.int64)
    waves = np.stack([_spoken(rng, bool(label)) for label in labels])
    rows = FRONT_END.features(waves).astype(np.float64)
    faded = np.zeros_like(rows)
    for at in range(ROWS):
        faded[:, at] = rows[:, at] + (faded[:, at - 1] * (2 / 3) if at else 0.0)
    loudest = faded[np.arange(count), rows.max(2).argmax(1)]
    known = np.concatenate([loudest, np.ones((count, 1))], axis=1)
    fitted = np.linalg.lstsq(known, 6.0 * labels - 3.0, rcond=None)[0]
    highest = (faded @ fitted[:-1] + fitted[-1]).max(1)
    middle = (np.median(highest[labels == 0]) + np.median(highest[labels == 1])) / 2
    threshold = 1 / (1 + np.exp(-middle))

    def model(graph: GraphWriter, digits: float) -> tuple[int, int]:
        x, total = _fading(graph)
        weights = _rounded(fitted[None, :-1], digits)
        logit = _connected(graph, total, weights, fitted[-1:])
        score = graph.tensor("score", (1, 1), "FLOAT32")
        graph.operator("LOGISTIC", [logit], [score])
        return x, score

    text = f"""
[task]
name = "threshold"
threshold = {threshold:.4f}
spread = 0.1
frames = "worst"
above = "wake word"
below = "other"
"""
    return _written(folder, model, f"frames = {ROWS}\n" + _SOUND + text, waves=waves, labels=labels)


def write_keypoint_pair(folder: Path, task: str, count: int = 60) -> Path:
    """Write a model of 3 points of pictures of 12 by 12: (x, y, confidence) each, in pixels.

    Args:
        folder: where to.
        task: the lines of `[task]` below its name.
        count: number of seeds; their targets are the points.

    """
    rng = np.random.default_rng(5)
    middles = np.array([[3.0, 3.0], [8.0, 3.0], [5.5, 8.0]])
    places = middles + rng.uniform(-1.5, 1.5, (4 * count, POINTS, 2))
    pixels = np.mgrid[:SIDE, :SIDE].transpose(1, 2, 0)[..., ::-1]
    brightness = np.array([255.0, 170.0, 85.0])
    apart = np.square(pixels[None, None] - places[:, :, None, None]).sum(-1)
    drawn = (np.exp(-apart / 4.0) * brightness[:, None, None]).max(1)
    images = np.rint(drawn).astype(np.uint8)
    sure = np.ones((4 * count, POINTS, 1))
    points = np.concatenate([places, sure], axis=-1).reshape(4 * count, -1)
    flat = images.reshape(4 * count, -1) / 255.0
    known = np.concatenate([flat, np.ones((4 * count, 1))], axis=1)
    fitted = np.linalg.solve(known.T @ known + 0.3 * np.eye(known.shape[1]), known.T @ points).T

    def model(graph: GraphWriter, digits: float) -> tuple[int, int]:
        x = graph.tensor("picture", (1, SIDE, SIDE, 1), "FLOAT32")
        flat = graph.tensor("flat", (1, SIDE * SIDE), "FLOAT32")
        shape = graph.constant("shape", np.array([1, SIDE * SIDE], np.int32))
        graph.operator("RESHAPE", [x, shape], [flat], schema.ReshapeOptionsT())
        return x, _connected(graph, flat, _rounded(fitted[:, :-1], digits), fitted[:, -1])

    text = f'preprocess = "unit"\n\n[task]\nname = "regression"\n{task}'
    seeds = {"images": images[:count, ..., None], "targets": points[:count]}
    return _written(folder, model, text, **seeds)


def _machine(rng: np.random.Generator, knocks: bool) -> NDArray[np.int16]:
    at = np.arange(SAMPLES) / RATE
    tones = rng.uniform(0.8, 1.2, 3) * np.array([3_000.0, 1_500.0, 800.0])
    hum = sum(
        loud * np.sin(2 * np.pi * (hertz * at + rng.random()))
        for loud, hertz in zip(tones, (120.0, 240.0, 600.0), strict=True)
    )
    wave = hum + rng.normal(0.0, 150.0, SAMPLES)
    if knocks:
        for begin in rng.integers(0, SAMPLES - 400, 5):
            fading = np.exp(-np.arange(400) / 80.0)
            wave[begin : begin + 400] += rng.uniform(3e3, 8e3) * fading * rng.normal(size=400)
    return np.asarray(np.rint(wave).clip(-32_768, 32_767).astype(np.int16))


def _spoken(rng: np.random.Generator, word: bool) -> NDArray[np.int16]:
    wave = rng.normal(0.0, 60.0, SAMPLES)
    begin, length = int(rng.integers(200, 2_000)), 1_600
    at = np.arange(length) / RATE
    first, last = (400.0, 1_600.0) if word else (rng.uniform(150.0, 350.0),) * 2
    phase = 2 * np.pi * (first * at + (last - first) * at**2 / (2 * at[-1]))
    wave[begin : begin + length] += rng.uniform(2e3, 9e3) * np.sin(phase) * np.hanning(length)
    return np.rint(wave).clip(-32_768, 32_767).astype(np.int16)


def _rounded(weights: Real, digits: float) -> Real:
    return np.rint(weights * digits) / digits if digits else weights


def _written(folder: Path, model: Model, text: str, **seeds: NDArray[Any]) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for name, digits in (("original", 0.0), ("compressed", 16.0)):
        graph = GraphWriter()
        x, y = model(graph, digits)
        graph.save(folder / f"{name}.tflite", [x], [y])
    np.savez(folder / "seeds.npz", allow_pickle=False, **seeds)
    (folder / "pair.toml").write_text(_PATHS + text, encoding="utf-8")
    return folder


def _connected(graph: GraphWriter, source: int, weights: Real, bias: Real) -> int:
    held = graph.constant("weights", weights.astype(np.float32))
    added = graph.constant("bias", bias.astype(np.float32))
    made = graph.tensor("made", (1, len(weights)), "FLOAT32")
    options = schema.FullyConnectedOptionsT()
    graph.operator("FULLY_CONNECTED", [source, held, added], [made], options)
    return made


def _fading(graph: GraphWriter) -> tuple[int, int]:
    """Write total = x + 2/3 total with a variable tensor; return x and total."""
    x = graph.tensor("features", (1, 1, BANDS), "FLOAT32")
    eye = np.eye(BANDS, dtype=np.float32)
    w, again = graph.constant("w", eye), graph.constant("again", eye * np.float32(2 / 3))
    bias = graph.constant("zeros", np.zeros(BANDS, np.float32))
    state = graph.tensor("faded", (1, BANDS), "FLOAT32")
    made = graph.tensor("o", (1, 1, BANDS), "FLOAT32")
    graph.graph.tensors[state].isVariable = True
    options = schema.SequenceRNNOptionsT()
    graph.operator("UNIDIRECTIONAL_SEQUENCE_RNN", [x, w, again, bias, state], [made], options)
    shape = graph.constant("shape", np.array([1, BANDS], np.int32))
    total = graph.tensor("total", (1, BANDS), "FLOAT32")
    graph.operator("RESHAPE", [made, shape], [total], schema.ReshapeOptionsT())
    return x, total
