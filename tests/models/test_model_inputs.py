"""Rows of models: inputs made of seeds, and outputs beside what they were made of."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from ai_edge_litert import schema_py_generated as schema
from numpy.typing import NDArray

from edgeflare.core.domain import DifferentiableEncoder
from edgeflare.core.seeds import SeedChoice, Seeds
from edgeflare.core.tensor import GivenRows, Tensor, dequantize, pack_rows, unpack_rows
from edgeflare.models.decoder_rows import as_read_by, submit
from edgeflare.models.detection_rows import batch_with_unused_rows_zeroed, with_unused_rows_zeroed
from edgeflare.models.evaluator import Signature
from edgeflare.models.in_process import InProcessModel
from edgeflare.models.model_inputs import ModelInputs, model_rows
from edgeflare.models.pair_interface import PairInput, PairInterface
from edgeflare.models.tflite import open_tflite
from edgeflare.models.tflite_graph import Graph
from graph_writer import GraphWriter
from public_cases import CASES

Refusal = Callable[..., str]

BOUNDS = {"lowest": -5.0, "highest": 5.0}
MEANS = PairInput("means", "array", BOUNDS)
WORST = PairInput("worst", "array", BOUNDS)
BOTH = PairInterface((MEANS, WORST))
LEFT = PairInterface((MEANS, PairInput("worst", "array", BOUNDS, search=False)))
COMPRESSED = (Tensor("worst", (1, 3), "int8", 0.5), Tensor("means", (1, 2), "float32"))
ORIGINAL = (Tensor("x0", (1, 2), "float32"), Tensor("x1", (1, 3), "float32"))
SOUND = {"sample_rate": 8_000}
REGRESSION = PairInterface((MEANS, WORST), task="regression", task_settings={"tolerance": 1.0})


@pytest.fixture
def seeds(tmp_path: Path) -> Path:
    path = tmp_path / "seeds.npz"
    rng = np.random.default_rng(0)
    means, worst = (rng.uniform(-2, 2, (4, n)).astype(np.float32) for n in (2, 3))
    np.savez(path, means=means, worst=worst, labels=np.arange(4))
    return path


def test_arrays_that_are_searched_together_are_one_input(seeds: Path) -> None:
    inputs = ModelInputs(BOTH, COMPRESSED, "q.tflite")
    loaded = inputs.load(seeds)
    assert inputs.shape == (5,)
    assert loaded.inputs.shape == (4, 5)
    assert loaded.labels is not None
    rows = model_rows(inputs.encoder(), inputs.fixed(loaded), loaded.inputs, range(4))
    worst, means = unpack_rows(COMPRESSED, rows)
    arrays = np.load(seeds)
    np.testing.assert_array_equal(means.reshape(4, 2), arrays["means"])
    np.testing.assert_allclose(
        dequantize(worst, COMPRESSED[0]).reshape(4, 3), arrays["worst"], atol=0.25
    )


def test_an_input_that_is_not_searched_is_that_of_the_seed(seeds: Path) -> None:
    inputs = ModelInputs(LEFT, COMPRESSED, "q.tflite")
    loaded = inputs.load(seeds)
    assert inputs.shape == (2,)
    assert inputs.fixed_names == ("worst",)
    searched = loaded.inputs[[3, 3]] + np.float32(1)
    rows = model_rows(inputs.encoder(), inputs.fixed(loaded), searched, [3, 1])
    worst, means = unpack_rows(COMPRESSED, rows)
    np.testing.assert_array_equal(means.reshape(2, 2), searched)
    assert (worst[0] != worst[1]).any()
    stored = Seeds(loaded.inputs[[3]], None, ("3",), {"worst": loaded.fixed["worst"][[3]]}, (3,))
    again = model_rows(inputs.encoder(), inputs.fixed(stored), searched[:1], [3])
    np.testing.assert_array_equal(again, rows[:1])


def test_several_labels_for_each_seed_are_judged_by_the_task(seeds: Path, refusal: Refusal) -> None:
    np.savez(seeds, **dict(np.load(seeds)) | {"labels": np.full((4, 6), 3)})
    said = refusal(ModelInputs(BOTH, COMPRESSED, "q.tflite").load, seeds)
    assert "labels are 6 integers for each seed, expected one integer" in said
    words = PairInterface((MEANS, WORST), task="transcript", task_settings={"vocabulary": ["a"]})
    loaded = ModelInputs(words, COMPRESSED, "q.tflite").load(seeds)
    assert loaded.labels is None
    (note,) = loaded.notes
    assert note == "labels are 6 integers for each seed: the task transcript ignores them"


def test_targets_are_read_for_each_seed(seeds: Path, refusal: Refusal) -> None:
    inputs = ModelInputs(REGRESSION, COMPRESSED, "q.tflite")
    arrays = dict(np.load(seeds))
    values = np.arange(8.0).reshape(4, 2)
    np.savez(seeds, **arrays | {"targets": values})
    assert "have both labels and targets" in refusal(inputs.load, seeds)
    del arrays["labels"]
    np.savez(seeds, **arrays | {"targets": values})
    np.testing.assert_array_equal(inputs.load(seeds, SeedChoice(first=3)).targets, values[:3])
    spread = inputs.load(seeds, SeedChoice(limit=2))
    assert spread.targets is not None
    assert spread.targets[:, 0].tolist() == [2.0 * one for one in spread.seed_ids] != [0.0, 2.0]
    for targets, said in (
        (values[:2], "there are 2 targets, expected one for each of 4 seeds"),
        (np.array([[1.0], None, [], 2], object), "cannot be read (it holds Python objects)"),
    ):
        np.savez(seeds, **arrays | {"targets": targets})
        assert said in refusal(inputs.load, seeds)


def test_what_a_limit_takes_keeps_all_that_belongs_to_it(seeds: Path) -> None:
    inputs = ModelInputs(LEFT, COMPRESSED, "q.tflite")
    arrays = dict(np.load(seeds)) | {"labels": np.array([0, 0, 1, 1])}
    np.savez(seeds, **arrays)
    every, some = inputs.load(seeds), inputs.load(seeds, SeedChoice(limit=2))
    assert (some.ids, some.names) == ((0, 2), ("0", "2"))
    assert some.labels is not None
    assert some.labels.tolist() == [0, 1]
    np.testing.assert_array_equal(some.input_of(2), arrays["means"][2])
    rows = [
        model_rows(inputs.encoder(), inputs.fixed(one), one.input_of(2)[None], [2])
        for one in (some, every)
    ]
    np.testing.assert_array_equal(rows[0], rows[1])
    first = inputs.load(seeds, SeedChoice(first=2))
    assert (len(first), len(first.fixed["worst"]), first.names) == (2, 2, ("0", "1"))


def test_inputs_of_other_names_are_found_by_their_shapes(seeds: Path) -> None:
    compressed = ModelInputs(BOTH, COMPRESSED, "q.tflite")
    original = ModelInputs(BOTH, ORIGINAL, "f.tflite", like=compressed)
    loaded = compressed.load(seeds)
    rows = model_rows(original.encoder(), original.fixed(loaded), loaded.inputs, range(4))
    means, worst = unpack_rows(ORIGINAL, rows)
    np.testing.assert_array_equal(
        np.concatenate([means.reshape(4, 2), worst.reshape(4, 3)], axis=1), loaded.inputs
    )


def test_an_image_of_another_name_is_found_with_its_channels_first() -> None:
    interface = PairInterface((PairInput("image", search=False), MEANS))
    means = Tensor("means", (1, 2), "float32")
    compressed = (Tensor("image", (1, 8, 9, 3), "int8"), means)
    original = (Tensor("x0", (1, 3, 8, 9), "float32"), Tensor("x1", (1, 2), "float32"))
    like = ModelInputs(interface, compressed, "q.tflite")
    found = ModelInputs(interface, original, "f.tflite", like=like)
    assert found.tensors == {"image": original[0], "means": original[1]}


def test_what_does_not_match_is_one_line(refusal: Refusal) -> None:
    sound = PairInterface((PairInput("s", "audio", {**SOUND, "samples": 8_000}),))
    for interface, tensors, said in (
        (
            PairInterface(),
            COMPRESSED,
            "q.tflite has 2 inputs ('worst' (1, 3), 'means' (1, 2)), and the pair describes one",
        ),
        (
            PairInterface((WORST,)),
            COMPRESSED,
            "of which means is not given: write an [inputs.NAME]",
        ),
        (BOTH, ORIGINAL, "has no input 'means'"),
        (BOTH, ORIGINAL, 'tensor = "…" under [inputs.means]'),
        (
            sound,
            (Tensor("s", (1, 49, 10), "int8"),),
            "which are 490 values, but a sound has 8000: check samples",
        ),
    ):
        assert said in refusal(ModelInputs, interface, tensors, "q.tflite")


def test_what_cannot_be_searched_together_is_refused(refusal: Refusal) -> None:
    for inputs, said in (
        ((MEANS, PairInput("sound", "audio", SOUND)), "cannot be searched together"),
        (
            (MEANS, PairInput("worst", "array", {"lowest": -1.0, "highest": 5.0})),
            "need the same dtype, lowest, highest and level",
        ),
        ((PairInput("means", "array", BOUNDS, search=False),), "search is false for every input"),
    ):
        assert said in refusal(PairInterface, inputs)


def test_seeds_are_one_file_with_as_many_of_each_input(refusal: Refusal, tmp_path: Path) -> None:
    """A limit hides none that are missing."""
    load = ModelInputs(BOTH, COMPRESSED, "q.tflite").load
    assert "they are one .npz file" in refusal(load, tmp_path)
    uneven = tmp_path / "uneven.npz"
    np.savez(uneven, means=np.zeros((4, 2), "f4"), worst=np.zeros((3, 3), "f4"))
    for choice in (SeedChoice(), SeedChoice(first=2)):
        assert "different numbers of seeds, 3, 4" in refusal(load, uneven, choice)


SCALED = {"mean": [1.0, 2.0, 3.0], "std": [1.0, 2.0, 4.0]}
LINE = PairInput("line", "array", SCALED)
PLANE = PairInput("plane", "array", SCALED, search=False)
LAST = (Tensor("line", (1, 7, 3), "float32"), Tensor("plane", (1, 4, 5, 3), "int8", 0.5, -3))
FIRST = (Tensor("line", (1, 3, 1, 7), "float32"), Tensor("plane", (1, 3, 4, 5), "int8", 0.5, -3))


def test_arrays_with_channels_first_are_those_with_channels_last(tmp_path: Path) -> None:
    """Scaled by channel as the seeds have them, searched or not, and with their gradient."""
    rng = np.random.default_rng(5)
    arrays: dict[str, Any] = {
        name: rng.uniform(-9, 9, (2, *shape)).astype(np.float32)
        for name, shape in (("line", (7, 3)), ("plane", (4, 5, 3)))
    }
    np.savez(tmp_path / "seeds.npz", **arrays)
    interface = PairInterface((LINE, PLANE))
    last = ModelInputs(interface, LAST, "q.tflite")
    seeds = last.load(tmp_path / "seeds.npz")
    first = ModelInputs(interface, FIRST, "f.onnx", like=last)
    given = [
        unpack_rows(tensors, model_rows(one.encoder(), one.fixed(seeds), seeds.inputs, [1, 0]))
        for one, tensors in ((last, LAST), (first, FIRST))
    ]
    (line, plane), (its_line, its_plane) = given
    np.testing.assert_array_equal(its_line[:, 0, :, 0], line[:, 0].transpose(0, 2, 1))
    np.testing.assert_array_equal(its_plane[:, 0], plane[:, 0].transpose(0, 3, 1, 2))
    gradient = rng.normal(size=(7, 3))
    encoders = [one.encoder() for one in (last, first)]
    assert all(isinstance(one, DifferentiableEncoder) for one in encoders)
    pulled = [
        one.pulled_back(its).ravel()  # type: ignore[attr-defined]
        for one, its in zip(encoders, (gradient, gradient.T), strict=True)
    ]
    np.testing.assert_array_equal(*pulled)
    plain = PairInterface((PairInput("", "array"),))
    like = ModelInputs(plain, [Tensor("x", (1, 3, 4, 5), "float32")], "q.tflite")
    back = ModelInputs(plain, [Tensor("x", (1, 4, 5, 3), "float32")], "f.onnx", like)
    encoded = back.encoder().encode(arrays["plane"].reshape(2, 3, 4, 5))
    np.testing.assert_array_equal(encoded, np.moveaxis(arrays["plane"].reshape(2, 3, 4, 5), 1, 3))


@pytest.mark.parametrize(
    ("domain", "mine", "its", "said"),
    [
        ("array", (1, 5, 4, 3), (1, 4, 5, 3), "has its values in another order"),
        ("array", (1, 3, 20), (1, 4, 5, 3), "has its values in another order"),
        ("image", (1, 3, 5, 4), (1, 4, 5, 3), "has its values in another order"),
        ("array", (1, 4, 5, 4), (1, 4, 5, 3), "takes 80 values, but that of the other model 60"),
    ],
)
def test_inputs_of_another_order_or_size_are_refused(
    domain: str, mine: tuple[int, ...], its: tuple[int, ...], said: str, refusal: Refusal
) -> None:
    """Of an input that is searched, and of one that is not."""
    alone = PairInterface((PairInput("", domain),)), ()
    beside = PairInput("x", domain, search=False), PairInput("y", "array")
    for interface, more in (alone, (PairInterface(beside), (Tensor("y", (1, 2), "float32"),))):
        like = ModelInputs(interface, [Tensor("x", its, "float32"), *more], "q.tflite")
        tensors = [Tensor("x", mine, "float32"), *more]
        assert said in refusal(ModelInputs, interface, tensors, "f.onnx", like)


def test_pictures_are_found_in_any_layout_and_domain() -> None:
    clip = PairInterface((PairInput("clip", "frames"), PairInput("mask", "array", search=False)))
    tensors = [Tensor("clip", (2, 1, 3, 5, 6), "float32"), Tensor("mask", (1, 3, 8, 9), "float32")]
    assert ModelInputs(clip, tensors, "m").picture_sizes == ((5, 6), (8, 9))
    row = [Tensor("line", (1, 6), "float32")]
    assert ModelInputs(PairInterface((PairInput("line", "array"),)), row, "m").picture_sizes == ()


# Rows beside what they were made of.

SIGNATURE = Signature((Tensor("x", (1, 3), "int8", 0.5),), (Tensor("y", (1, 2), "float32"),))


def least_and_most(one: NDArray[np.generic]) -> NDArray[np.generic]:
    if (one == 9).all():
        raise ValueError("nines")
    return np.array([[one.min(), one.max()]], np.float32)


def reconstruction(against: str) -> PairInterface:
    return PairInterface(
        task="threshold",
        task_settings={"threshold": 0.5, "score": "reconstruction", "against": against},
    )


def test_each_row_has_what_the_model_was_given() -> None:
    model = as_read_by(reconstruction("dequantized"), InProcessModel(SIGNATURE, least_and_most))
    with closing(model):
        inputs = np.array([[1, 2, 3], [9, 9, 9], [-4, 0, 4]], np.int8)
        batch = model.submit(inputs).result()
        given, made = unpack_rows(model.signature.outputs, batch.outputs)
    np.testing.assert_array_equal(given.reshape(3, 3), inputs)
    np.testing.assert_array_equal(made.reshape(3, 2), [[1, 3], [0, 0], [-4, 4]])
    assert batch.failures == {1: "error"}


def test_a_row_may_have_what_the_input_was_before_it_was_quantized() -> None:
    """Of an input that is known as the model takes it only, that is what it stands for."""
    model = as_read_by(reconstruction("features"), InProcessModel(SIGNATURE, least_and_most))
    features = np.array([[0.6, 1.1, 1.4]], np.float32)
    with closing(model):
        inputs = np.array([[1, 2, 3]], np.int8)
        known = submit(model, GivenRows(inputs, features)).result()
        unknown = model.submit(inputs).result()
        tensors = model.signature.outputs
    assert [tensor.dtype for tensor in tensors] == ["float32", "float32"]
    for batch, expected in ((known, features), (unknown, np.array([[0.5, 1.0, 1.5]], np.float32))):
        given, made = unpack_rows(tensors, batch.outputs)
        np.testing.assert_array_equal(given.reshape(1, 3), expected)
        np.testing.assert_array_equal(made.reshape(1, 2), [[1, 3]])


@pytest.mark.slow
def test_outputs_are_equal_whatever_was_in_the_memory_of_unused_rows() -> None:
    """Rows that a detector's own post-processing leaves unwritten count for nothing."""
    folder = CASES / "detection_postprocess"
    with np.load(folder / "seeds.npz") as seeds:
        images = seeds["images"][:12]
    with closing(open_tflite(folder / "compressed.tflite", "builtin")) as model:
        given, outputs, makers = model.signature.input, model.signature.outputs, model.makers()
        real = images.reshape(12, *given.shape[1:]) / (255 * given.scale) + given.zero_point
        batch = model.submit(np.round(real).clip(-128, 127).astype(given.dtype)).result()
    assert not batch.failures
    at = {one.at: place for place, one in enumerate(makers) if one is not None}
    arrays = list(unpack_rows(outputs, batch.outputs))
    counts = arrays[at[3]].astype(int).ravel()
    assert len(set(counts)) > 1
    other = [array.copy() for array in arrays]
    for place in (at[0], at[1], at[2]):
        for row, count in enumerate(counts):
            other[place][row, 0, count:] = np.nan
    kept, again = (
        batch_with_unused_rows_zeroed(
            outputs, makers, replace(batch, outputs=pack_rows(outputs, one))
        )
        for one in (arrays, other)
    )
    assert kept.outputs.tobytes() == again.outputs.tobytes()
    found = unpack_rows(outputs, kept.outputs)[at[2]]
    for row, count in enumerate(counts):
        assert found[row, 0, :count].tolist() == arrays[at[2]][row, 0, :count].tolist()
        assert not found[row, 0, count:].any()


@pytest.mark.parametrize("count", [0.0, 2.0, 3.0, np.nan])
def test_unused_rows_are_told_behind_a_reshape_too(count: float) -> None:
    graph = GraphWriter()
    shapes = {"x": (1, 3, 4), "boxes": (1, 3, 4), "classes": (1, 3), "scores": (1, 3), "n": (1,)}
    x, *made = (graph.tensor(name, shape, "FLOAT32") for name, shape in shapes.items())
    flat = graph.tensor("flat", (12,), "FLOAT32")
    graph.operator("CUSTOM", [x], made)
    graph.model.operatorCodes[0].customCode = "TFLite_Detection_PostProcess"
    graph.operator("RESHAPE", [made[0]], [flat], schema.ReshapeOptionsT())
    known = Graph(graph.content([x], [flat, *made[1:]]))
    values = {flat: np.ones(12), made[2]: np.ones((1, 3)), made[3]: np.array([count])}
    used = 0 if np.isnan(count) else int(count)
    found = with_unused_rows_zeroed(known, {x: np.ones((1, 3, 4)), **values})
    assert found[x].all()
    assert found[flat].tolist() == [1] * 4 * used + [0] * 4 * (3 - used)
    assert found[made[2]].tolist() == [[1] * used + [0] * (3 - used)]
