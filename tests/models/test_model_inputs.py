from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

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


def test_inputs_of_other_names_are_found_by_their_shapes(seeds: Path) -> None:
    compressed = ModelInputs(BOTH, COMPRESSED, "q.tflite")
    original = ModelInputs(BOTH, ORIGINAL, "f.tflite", like=compressed)
    loaded = compressed.load(seeds)
    rows = model_rows(original.encoder(), original.fixed(loaded), loaded.inputs, range(4))
    means, worst = unpack_rows(ORIGINAL, rows)
    np.testing.assert_array_equal(
        np.concatenate([means.reshape(4, 2), worst.reshape(4, 3)], axis=1), loaded.inputs
    )


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
    some = inputs.load(seeds, 2)
    assert (len(some), len(some.fixed["worst"]), some.names) == (2, 2, ("0", "1"))
    np.savez(tmp_path / "uneven.npz", means=np.zeros((4, 2), "f4"), worst=np.zeros((3, 3), "f4"))
    assert "different numbers of seeds" in refusal(inputs.load, tmp_path / "uneven.npz", 2)
