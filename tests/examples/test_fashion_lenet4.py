"""The example pair that ships is complete, small, and free of deviations before any search."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from interpreter_answers import RESOLVERS, interpreter_answers, opened_interpreter

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

PAIR = Path(__file__).parents[2] / "examples" / "fashion_lenet4"


@pytest.fixture(scope="module")
def settings() -> dict[str, Any]:
    return tomllib.loads((PAIR / "pair.toml").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def seeds(settings: dict[str, Any]) -> dict[str, NDArray[Any]]:
    with np.load(PAIR / settings["seeds"], allow_pickle=False) as archive:
        return dict(archive)


def raw_outputs(path: Path, kernels: str, inputs: NDArray[np.float32]) -> NDArray[Any]:
    (entry,) = opened_interpreter(path, kernels).get_input_details()
    raw: NDArray[Any] = inputs
    if entry["dtype"] == np.int8:
        scale, zero_point = entry["quantization"]
        raw = np.clip(np.round(inputs / scale) + zero_point, -128, 127).astype(np.int8)
    return interpreter_answers(path, kernels, raw)


def as_input(settings: dict[str, Any], images: NDArray[np.uint8]) -> NDArray[np.float32]:
    preprocess = settings["preprocess"]
    values: NDArray[Any] = (images / preprocess["scale"] - preprocess["mean"]) / preprocess["std"]
    return values.astype(np.float32)


def test_the_pair_is_complete_and_small(settings: dict[str, Any]) -> None:
    assert settings["name"] == PAIR.name
    for key in ("original", "compressed", "seeds"):
        assert (PAIR / settings[key]).is_file()
    assert sum(path.stat().st_size for path in PAIR.iterdir() if path.is_file()) < 1_000_000


def test_the_seeds_fit_the_models_and_the_classes(
    settings: dict[str, Any], seeds: dict[str, NDArray[Any]]
) -> None:
    assert seeds["images"].dtype == np.uint8
    assert seeds["images"].shape == (200, 28, 28, 1)
    assert len(set(seeds["test_indices"].tolist())) == 200
    assert np.bincount(seeds["labels"]).tolist() == [20] * len(settings["classes"])


def test_the_compressed_model_is_int8_throughout_and_the_original_float() -> None:
    for name, dtype in (("original", np.float32), ("compressed", np.int8)):
        loaded = opened_interpreter(PAIR / f"{name}.tflite", "builtin")
        ends = loaded.get_input_details() + loaded.get_output_details()
        assert [end["dtype"] for end in ends] == [dtype, dtype]
        assert [end["shape"].tolist() for end in ends] == [[1, 28, 28, 1], [1, 10]]


@pytest.mark.parametrize("kernels", RESOLVERS)
def test_both_models_agree_on_every_seed_without_a_tie(
    settings: dict[str, Any], seeds: dict[str, NDArray[Any]], kernels: str
) -> None:
    inputs = as_input(settings, seeds["images"])
    labels = []
    for name in ("original", "compressed"):
        raw = raw_outputs(PAIR / settings[name], kernels, inputs)
        ordered = np.sort(raw, axis=1)
        assert (ordered[:, -1] > ordered[:, -2]).all(), f"{name} is tied"
        labels.append(raw.argmax(axis=1))
    assert (labels[0] == labels[1]).all()
    assert np.mean(labels[0] == seeds["labels"]) > 0.8


def test_the_kernels_differ_on_the_seeds(
    settings: dict[str, Any], seeds: dict[str, NDArray[Any]]
) -> None:
    inputs = as_input(settings, seeds["images"])
    raws = [raw_outputs(PAIR / settings["compressed"], name, inputs) for name in RESOLVERS]
    assert (raws[0] != raws[1]).any()
