from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from edgeflare.core.encoder import DifferentiableEncoder
from edgeflare.core.seed_choice import SeedChoice
from edgeflare.core.seeds import Seeds
from edgeflare.core.tensor import Tensor, dequantize
from edgeflare.core.tensor_rows import unpack_rows
from edgeflare.models.model_inputs import ModelInputs, model_rows
from edgeflare.models.pair_input import PairInput
from edgeflare.models.pair_interface import PairInterface

Refusal = Callable[..., str]

BOUNDS = {"lowest": -5.0, "highest": 5.0}
MEANS = PairInput("means", "array", BOUNDS)
WORST = PairInput("worst", "array", BOUNDS)
BOTH = PairInterface((MEANS, WORST))
LEFT = PairInterface((MEANS, PairInput("worst", "array", BOUNDS, search=False)))
COMPRESSED = (Tensor("worst", (1, 3), "int8", 0.5), Tensor("means", (1, 2), "float32"))
ORIGINAL = (Tensor("x0", (1, 2), "float32"), Tensor("x1", (1, 3), "float32"))
SOUND = {"sample_rate": 8_000}


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


@pytest.mark.parametrize("task", ["classification", "transcript"])
def test_several_labels_for_each_seed_are_judged_by_the_task(
    task: str, seeds: Path, refusal: Refusal
) -> None:
    settings = {"vocabulary": ["a"]} if task == "transcript" else {}
    interface = PairInterface((MEANS, WORST), task=task, task_settings=settings)
    inputs = ModelInputs(interface, COMPRESSED, "q.tflite")
    arrays = dict(np.load(seeds))
    np.savez(seeds, **arrays | {"labels": np.full((4, 6), 3)})
    if task == "classification":
        said = refusal(inputs.load, seeds)
        assert "labels are 6 integers for each seed, expected one integer" in said
    else:
        loaded = inputs.load(seeds)
        assert loaded.labels is None
        (note,) = loaded.notes
        assert note == "labels are 6 integers for each seed: the task transcript ignores them"


def test_targets_are_read_for_each_seed(seeds: Path, refusal: Refusal) -> None:
    inputs = ModelInputs(
        PairInterface((MEANS, WORST), task="regression", task_settings={"tolerance": 1.0}),
        COMPRESSED,
        "q.tflite",
    )
    arrays = dict(np.load(seeds))
    values = np.arange(8.0).reshape(4, 2)
    np.savez(seeds, **arrays | {"targets": values})
    assert "have both labels and targets" in refusal(inputs.load, seeds)
    del arrays["labels"]
    np.savez(seeds, **arrays | {"targets": values})
    loaded = inputs.load(seeds, SeedChoice(first=3))
    np.testing.assert_array_equal(loaded.targets, values[:3])
    np.savez(seeds, **arrays | {"targets": values[:2]})
    assert "there are 2 targets, expected one for each of 4 seeds" in refusal(inputs.load, seeds)
    np.savez(seeds, **arrays | {"targets": np.array([[1.0], None, [], 2], object)})
    assert "targets cannot be read (it holds Python objects)" in refusal(inputs.load, seeds)


def test_what_a_limit_takes_keeps_all_that_belongs_to_it(seeds: Path) -> None:
    inputs = ModelInputs(LEFT, COMPRESSED, "q.tflite")
    arrays = dict(np.load(seeds))
    sorted_labels = {"labels": np.array([0, 0, 1, 1])}
    np.savez(seeds, **arrays | sorted_labels)
    some = inputs.load(seeds, SeedChoice(limit=2))
    assert (some.ids, some.names) == ((0, 2), ("0", "2"))
    assert some.labels is not None
    assert some.labels.tolist() == [0, 1]
    np.testing.assert_array_equal(some.input_of(2), arrays["means"][2])
    every = inputs.load(seeds)
    rows = [
        model_rows(inputs.encoder(), inputs.fixed(one), one.input_of(2)[None], [2])
        for one in (some, every)
    ]
    np.testing.assert_array_equal(rows[0], rows[1])
    interface = PairInterface((MEANS, WORST), task="regression", task_settings={"tolerance": 1.0})
    del arrays["labels"]
    np.savez(seeds, **arrays | {"targets": np.arange(8.0).reshape(4, 2)})
    spread = ModelInputs(interface, COMPRESSED, "q.tflite").load(seeds, SeedChoice(limit=2))
    assert spread.targets is not None
    assert spread.targets[:, 0].tolist() == [2.0 * one for one in spread.seed_ids] != [0.0, 2.0]


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


def test_what_does_not_match_is_one_line(refusal: Refusal, seeds: Path, tmp_path: Path) -> None:
    def match(interface: PairInterface, *tensors: Tensor) -> str:
        return refusal(ModelInputs, interface, tensors, "q.tflite")

    assert "q.tflite has 2 inputs ('worst' (1, 3), 'means' (1, 2)), and the pair describes one" in (
        match(PairInterface(), *COMPRESSED)
    )
    assert "of which means is not given: write an [inputs.NAME]" in match(
        PairInterface((WORST,)), *COMPRESSED
    )
    assert "has no input 'means'" in match(BOTH, *ORIGINAL)
    assert 'tensor = "…" under [inputs.means]' in match(BOTH, *ORIGINAL)
    assert "they are one .npz file" in refusal(
        ModelInputs(BOTH, COMPRESSED, "q.tflite").load, tmp_path
    )
    assert "which are 490 values, but a sound has 8000: check samples" in match(
        PairInterface((PairInput("s", "audio", {**SOUND, "samples": 8_000}),)),
        Tensor("s", (1, 49, 10), "int8"),
    )
    uneven = tmp_path / "uneven.npz"
    np.savez(uneven, means=np.zeros((4, 2), "f4"), worst=np.zeros((3, 3), "f4"))
    message = refusal(ModelInputs(BOTH, COMPRESSED, "q.tflite").load, uneven)
    assert "different numbers of seeds, 3, 4" in message


def test_what_cannot_be_searched_together_is_refused(refusal: Refusal) -> None:
    sound = PairInput("sound", "audio", SOUND)
    assert "cannot be searched together" in refusal(PairInterface, (MEANS, sound))
    other = PairInput("worst", "array", {"lowest": -1.0, "highest": 5.0})
    assert "need the same dtype, lowest, highest and level" in refusal(
        PairInterface, (MEANS, other)
    )
    none = PairInput("means", "array", BOUNDS, search=False)
    assert "search is false for every input" in refusal(PairInterface, (none,))


def test_a_limit_hides_no_missing_seeds(refusal: Refusal, seeds: Path, tmp_path: Path) -> None:
    inputs = ModelInputs(LEFT, COMPRESSED, "q.tflite")
    some = inputs.load(seeds, SeedChoice(first=2))
    assert (len(some), len(some.fixed["worst"]), some.names) == (2, 2, ("0", "1"))
    np.savez(tmp_path / "uneven.npz", means=np.zeros((4, 2), "f4"), worst=np.zeros((3, 3), "f4"))
    assert "different numbers of seeds" in refusal(
        inputs.load, tmp_path / "uneven.npz", SeedChoice(first=2)
    )


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
