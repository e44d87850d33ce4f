"""Shares of the margin's error: of all layers together they are all of it, whatever the task."""

from __future__ import annotations

from contextlib import closing
from functools import partial
from math import prod
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pytest
from ai_edge_litert import schema_py_generated as schema
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from edgeflare.core.task import ModelOutputs
from edgeflare.core.tensor import RawBatch
from edgeflare.diagnose.arm_probe import State
from edgeflare.diagnose.layer_matching import match_layers
from edgeflare.diagnose.margin_error import MarginError, ReadOutputs, margin_error
from edgeflare.diagnose.near_boundary import FURTHEST, NearBoundary, near_boundary_inputs
from edgeflare.diagnose.original_layers import OriginalLayers
from edgeflare.diagnose.output_stage import ModelReader, OutputStage
from edgeflare.errors import UserError
from edgeflare.models.graph_parts import extract
from edgeflare.models.graph_scores import path_to_scores, scores_of
from edgeflare.models.model_probe import Values
from edgeflare.models.pair_interface import PairInterface
from edgeflare.models.tflite_graph import Graph
from graph_writer import GraphWriter
from networks import Kind, pair_of
from tampering import (
    COMPRESSED,
    ORIGINAL,
    InterpreterProbe,
    class_reader,
    example_input,
    original_input,
    signature_of,
    whole,
)

NAMES: tuple[str, ...] = ("lenet", *get_args(Kind))


def files(name: Any) -> tuple[bytes, bytes]:
    """The original and the compressed model of a pair."""
    return (ORIGINAL.read_bytes(), COMPRESSED.read_bytes()) if name == "lenet" else pair_of(name)


def opens(content: bytes, capture: bool) -> InterpreterProbe:
    return InterpreterProbe(content, capture=capture)


def whole_shares(
    original: bytes, compressed: bytes, given: tuple[Values, Values], read: ReadOutputs
) -> tuple[MarginError[int] | None, State, State]:
    """The shares of whole differences; the original's real values, and the compressed model's.

    Args:
        original: a file.
        compressed: another one, all of whose layers have a counterpart.
        given: the input of the original, and that of the compressed model.
        read: reads answers from the original's outputs.

    """
    mine, yours = Graph(compressed), Graph(original)
    pairs = {one: other for one, (other, _) in match_layers(mine, yours).items()}
    assert len(pairs) == len(mine.layers)
    state = whole(mine, given[1], "xnnpack", compressed)
    real = {tensor: mine.tensors[tensor].real(values) for tensor, values in state.items()}
    made = {one: yours.operators[other].outputs[0] for one, other in pairs.items()}
    middle = {made[one]: real[mine.operators[one].outputs[0]] for one in pairs}
    with closing(OriginalLayers(yours, original, opens)) as layers:
        seen = layers.capture(given[0])
        inputs = [real[tensor] for one in pairs for tensor in mine.fed(mine.operators[one])]
        alone = layers.alone(list(pairs.values()), inputs)
        asked = {
            one: [(pairs[one], values[tensor]) for values in (alone, middle)]
            for one, tensor in made.items()
        }
        known = {tensor: values.astype(np.float64) for tensor, values in seen.items()}
        return margin_error(layers, read, middle, known, asked), known, middle


@pytest.mark.parametrize("name", NAMES)
def test_the_shares_of_all_layers_add_up(name: str) -> None:
    """But for what rounding the input did, which is hardly anything for 8-bit images."""
    original, compressed = files(name)
    mine, yours = Graph(compressed), Graph(original)
    given = original_input(), example_input()
    read = partial(class_reader(original).answers, given[0])
    found, known, middle = whole_shares(original, compressed, given, read)
    assert found is not None
    before_the_softmax = mine.layers[:-1]
    assert found.shares.keys() == {one.index for one in before_the_softmax}
    assert sum(found.shares.values()) == pytest.approx(1.0, abs=0.02)
    scores, tensor = known[scores_of(yours)].ravel(), middle[scores_of(yours)].ravel()
    right = int(scores.argmax())
    wrong = int(np.argsort(tensor)[-2]) if tensor.argmax() == right else int(tensor.argmax())
    moved = np.subtract(scores, tensor, dtype=np.float64)
    assert found.size == pytest.approx(moved[right] - moved[wrong], abs=1e-5)


INPUTS, WIDTH = 6, 8


def settings_of(task: str) -> tuple[dict[str, Any], tuple[int, ...]]:
    """The keys of a task, and the shape of the output that it reads."""
    known: dict[str, tuple[dict[str, Any], tuple[int, ...]]] = {
        "classification": ({}, (1, 5)),
        "detection": ({"decoding": "objects"}, (1, 3, 6)),
        "regression": ({"tolerance": 0.01}, (1, 7)),
        "segmentation": ({"region": 4, "layout": "NHWC"}, (1, 6, 6, 2)),
        "threshold": ({"threshold": 0.1}, (1, 1)),
        "transcript": ({"vocabulary": list("ab c"), "decoding": "argmax"}, (1, 5, 4)),
    }
    return known[task]


def write_layers(path: Path, layers: list[NDArray[np.float32]], shape: tuple[int, ...]) -> bytes:
    """A model of three linear layers; of boxes the last one has a bias, so that they are some."""
    graph = GraphWriter()
    given = tensor = graph.tensor("x", (1, INPUTS), "FLOAT32")
    for at, weights in enumerate(layers):
        held = graph.tensor(f"weights{at}", weights.shape, "FLOAT32", data=weights)
        bias = np.zeros(len(weights), np.float32)
        if at == 2 and shape[2:] == (6,):
            bias = np.array([[0.1, 0.1, 0.5, 0.5, 0.6, at] for at in range(3)], np.float32).ravel()
        biases = graph.tensor(f"bias{at}", bias.shape, "FLOAT32", data=bias)
        made = graph.tensor(f"y{at}", (1, len(weights)), "FLOAT32")
        options = schema.FullyConnectedOptionsT()
        graph.operator("FULLY_CONNECTED", [tensor, held, biases], [made], options)
        tensor = made
    sizes = graph.tensor("sizes", (len(shape),), "INT32", data=np.array(shape, np.int32))
    output = graph.tensor("output", shape, "FLOAT32")
    graph.operator("RESHAPE", [tensor, sizes], [output], schema.ReshapeOptionsT())
    return graph.save(path, [given], [output]).read_bytes()


@pytest.mark.parametrize("faulty", range(3))
@pytest.mark.parametrize(
    "task", ["classification", "detection", "regression", "segmentation", "threshold", "transcript"]
)
def test_the_layer_with_the_fault_has_the_largest_share(
    task: str, faulty: int, tmp_path: Path
) -> None:
    settings, shape = settings_of(task)
    rng = np.random.default_rng(3)
    sizes = ((WIDTH, INPUTS), (WIDTH, WIDTH), (prod(shape), WIDTH))
    layers = [rng.normal(0.0, size[1] ** -0.5, size).astype(np.float32) for size in sizes]
    if task == "detection":
        layers[2] *= np.tile([0.01] * 4 + [0.06, 0.0], 3)[:, None].astype(np.float32)
    wrong = [
        one + scale * np.abs(one).mean() * rng.normal(size=one.shape).astype(np.float32)
        for at, one in enumerate(layers)
        for scale in [0.8 if at == faulty else 0.01]
    ]
    if task == "detection":
        wrong[2][5::6] = 0.0  # classes stay
    original = write_layers(tmp_path / "original.tflite", layers, shape)
    compressed = write_layers(tmp_path / "compressed.tflite", wrong, shape)
    signature = signature_of(original)
    inputs = rng.uniform(-2.0, 2.0, (90, 1, INPUTS)).astype(np.float32)
    interface = PairInterface(task=task, task_settings=settings)

    probes = [opens(content, capture=False) for content in (original, compressed)]
    outputs = [[probe.run([one]) for probe in probes] for one in inputs]

    def sample(most: int) -> RawBatch:
        return RawBatch(np.stack([exact[0][0] for exact, _ in outputs[:most]]))

    decoder = interface.opened_task.decoder(
        ModelOutputs("the original", signature.outputs, frozenset(), 0, (), sample)
    )
    reader = ModelReader(OutputStage(interface, decoder), signature)
    answers = [reader.answers(*pair) for pair in zip(inputs, outputs, strict=True)]
    deviating = [at for at, (exact, got) in enumerate(answers) if exact.differs(got)]
    assert len(deviating) >= 2
    for at in deviating[:2]:
        read = partial(reader.answers, inputs[at])
        found, *_ = whole_shares(original, compressed, (inputs[at], inputs[at]), read)
        assert found is not None
        assert max(found.shares, key=lambda op: found.shares[op]) == faulty
        assert sum(found.shares.values()) == pytest.approx(1.0, abs=0.01)


@pytest.mark.parametrize("name", NAMES)
def test_scores_are_what_a_last_softmax_is_given(name: str) -> None:
    graph = Graph(files(name)[0])
    last = graph.layers[-1]
    assert last.name == "SOFTMAX"
    assert scores_of(graph) == last.inputs[0]
    assert path_to_scores(graph, graph.outputs[0]) == (graph.outputs[0], last.inputs[0])
    headless = Graph(extract(graph, 0, graph.layers[-2].index).content)
    assert scores_of(headless) == headless.outputs[0]
    assert path_to_scores(headless, headless.outputs[0]) == headless.outputs


def test_a_model_whose_scores_are_not_seen_has_no_shares() -> None:
    graph = Graph(files("lenet")[0])
    with closing(OriginalLayers(graph, files("lenet")[0], opens)) as layers:
        assert margin_error(layers, lambda _: [], {}, {}, {}) is None


SHAPE = (2, 3, 1)
CLASSES = 3


def linear(weights: NDArray[np.float64], images: NDArray[np.uint8]) -> NDArray[np.int64]:
    scores = images.reshape(len(images), -1).astype(np.float64) @ weights
    labels: NDArray[np.int64] = scores.argmax(axis=1).astype(np.int64)
    return labels


def drawn(
    number: int, seeds: int = 30, count: int = 40
) -> tuple[NearBoundary, NDArray[np.uint8], NDArray[np.float64]]:
    """Near-boundary inputs of a linear classifier, its images and its weights."""
    rng = np.random.default_rng(number)
    images = rng.integers(0, 256, (seeds, *SHAPE), np.uint8)
    weights = rng.normal(size=(6, CLASSES))
    weights -= weights.mean(axis=0)  # each class is the largest somewhere
    labels = linear(weights, images)
    made = near_boundary_inputs(
        images,
        labels,
        lambda batch, _: linear(weights, batch),
        count,
        np.random.default_rng(number),
    )
    return made, images, weights


def images_of_line(start: NDArray[np.uint8], end: NDArray[np.uint8]) -> NDArray[np.int64]:
    """The images at 0, 1/512, … 1 of a line, halves towards the start, by whole numbers."""
    change = end.astype(np.int64) - start
    steps = np.arange(513)[:, None, None, None]
    images: NDArray[np.int64] = start - np.sign(change) * (
        (512 - 2 * np.abs(change) * steps) // 1024
    )
    return images


@given(st.integers(0, 10_000))
@settings(max_examples=20)
def test_tight_images_are_neighbours_across_the_boundary_and_wide_ones_lie_further(
    number: int,
) -> None:
    """Each on its own side, and within the line."""
    made, images, weights = drawn(number)
    labels, answered = linear(weights, images), linear(weights, made.tight)
    for at in range(0, len(made.tight), 2):
        start, end = images[made.rows[at]], images[made.rows[at + 1]]
        assert answered[at] == labels[made.rows[at]]
        assert answered[at + 1] != answered[at]
        line = images_of_line(start, end)
        low, high = made.tight[at], made.tight[at + 1]
        assert ((line[:-1] == low) & (line[1:] == high)).all(axis=(1, 2, 3)).any()
        assert np.abs(low.astype(int) - high).max() == 1
    for at in range(len(made.wide)):
        other = images[made.rows[at ^ 1]]
        whole, further, tight = (
            np.abs(one.astype(float) - other)
            for one in (images[made.rows[at]], made.wide[at], made.tight[at])
        )
        assert (further >= tight).all()
        assert (further <= whole).all()
        assert (further - tight <= FURTHEST * whole + 1).all()


def test_no_two_lines_are_the_same_and_fewer_seeds_make_fewer_images() -> None:
    made, images, weights = drawn(3, seeds=6, count=1000)
    labels = linear(weights, images)
    ends = [frozenset(pair) for pair in made.rows.reshape(-1, 2).tolist()]
    sizes = np.bincount(labels)
    assert len(ends) == len(set(ends)) == (36 - (sizes**2).sum()) // 2
    assert len(made.tight) == len(made.wide) == 2 * len(ends) < 1000


def test_the_same_generator_seed_makes_the_same_images() -> None:
    (one, _, _), (same, _, _), (other, _, _) = drawn(5), drawn(5), drawn(6)
    assert (one.tight == same.tight).all()
    assert (one.wide == same.wide).all()
    assert (one.wide != other.wide).any()


def near(
    images: NDArray[np.uint8], labels: NDArray[np.int64], weights: NDArray[np.float64], count: int
) -> NearBoundary:
    return near_boundary_inputs(
        images, labels, lambda batch, _: linear(weights, batch), count, np.random.default_rng(0)
    )


def test_seeds_on_which_the_original_is_wrong_or_that_have_no_label_are_left_out() -> None:
    _, images, weights = drawn(4)
    labels = linear(weights, images)
    labels[:5] = (labels[:5] + 1) % CLASSES
    labels[5:10] = -1
    assert near(images, labels, weights, 100).rows.min() >= 10


def test_seeds_of_one_label_are_refused() -> None:
    images, labels = np.zeros((4, *SHAPE), np.uint8), np.zeros(4, np.int64)
    with pytest.raises(UserError, match="4 of 4 seeds, all of one label or none: give more seeds"):
        near(images, labels, np.zeros((6, CLASSES)), 10)
