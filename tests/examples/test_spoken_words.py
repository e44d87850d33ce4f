"""The example pair in sound is complete, small, and free of deviations before any search."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from edgeflare.core.seeds import Seeds
from edgeflare.core.tensor import quantize
from edgeflare.domains.audio.log_mel import LogMel
from edgeflare.domains.audio.sound_seeds import load_sound_seeds
from edgeflare.models.tflite import TFLiteModel, open_tflite
from edgeflare_protos.kernel_sets import Kernels

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

PAIR = Path(__file__).parents[2] / "examples" / "spoken_words"
ALL_KERNELS: tuple[Kernels, ...] = ("xnnpack", "builtin", "reference")
SHAPE = (1, 61, 32, 1)


@pytest.fixture(scope="module")
def settings() -> dict[str, Any]:
    return tomllib.loads((PAIR / "pair.toml").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def meta() -> dict[str, Any]:
    read: dict[str, Any] = json.loads((PAIR / "meta.json").read_text(encoding="utf-8"))
    return read


@pytest.fixture(scope="module")
def seeds(settings: dict[str, Any]) -> Seeds:
    sound = settings["inputs"]["sound"]
    return load_sound_seeds(PAIR / settings["seeds"], sound["sample_rate"], sound["samples"])


@pytest.fixture(scope="module")
def features(settings: dict[str, Any], seeds: Seeds) -> NDArray[np.float32]:
    return front_end(settings).features(seeds.inputs).reshape(-1, *SHAPE[1:])


@pytest.fixture(scope="module")
def original(settings: dict[str, Any]) -> Iterator[TFLiteModel]:
    with closing(open_tflite(PAIR / settings["original"])) as model:
        yield model


def front_end(settings: dict[str, Any]) -> LogMel:
    sound = settings["inputs"]["sound"]
    fields = dict(sound["front_end"])
    assert fields.pop("name") == "log-mel"
    return LogMel(sample_rate=sound["sample_rate"], **fields)


def outputs(model: TFLiteModel, features: NDArray[np.float32]) -> NDArray[Any]:
    (entry,) = model.signature.inputs
    return model.submit(quantize(features, entry)).result().outputs


def tied(raw: NDArray[Any]) -> NDArray[np.bool_]:
    ordered = np.sort(raw, axis=1)
    return np.asarray(ordered[:, -1] == ordered[:, -2])


def test_the_pair_is_complete_and_small(settings: dict[str, Any]) -> None:
    assert settings["name"] == "spoken-words"
    for key in ("original", "compressed", "seeds"):
        assert (PAIR / settings[key]).is_file()
    assert sum(path.stat().st_size for path in PAIR.rglob("*") if path.is_file()) < 2_000_000


def test_the_seeds_are_seconds_of_sound_ten_of_each_class(
    settings: dict[str, Any], meta: dict[str, Any], seeds: Seeds
) -> None:
    sound = settings["inputs"]["sound"]
    assert sound["samples"] == sound["sample_rate"]
    assert seeds.inputs.shape == (100, sound["samples"])
    assert len(np.unique(seeds.inputs, axis=0)) == 100
    assert seeds.labels is not None
    assert np.bincount(seeds.labels).tolist() == [meta["seeds_per_word"]] * len(settings["classes"])


def test_no_voice_of_the_test_clips_was_trained_on(meta: dict[str, Any]) -> None:
    assert not set(meta["training_variants"]) & set(meta["test_variants"])


def test_the_models_take_what_the_front_end_gives(
    settings: dict[str, Any], original: TFLiteModel
) -> None:
    frames, bands = front_end(settings).shape(settings["inputs"]["sound"]["samples"])
    assert (1, frames, bands, 1) == SHAPE
    with closing(open_tflite(PAIR / settings["compressed"])) as compressed:
        for model, dtype in ((original, "float32"), (compressed, "int8")):
            (entry,), (exit_,) = model.signature.inputs, model.signature.outputs
            assert (entry.shape, str(entry.dtype)) == (SHAPE, dtype)
            assert (exit_.shape, str(exit_.dtype)) == ((1, len(settings["classes"])), dtype)


@pytest.mark.parametrize("kernels", ALL_KERNELS)
def test_both_models_agree_on_every_seed_without_a_tie(
    settings: dict[str, Any],
    meta: dict[str, Any],
    seeds: Seeds,
    features: NDArray[np.float32],
    original: TFLiteModel,
    kernels: Kernels,
) -> None:
    expected = outputs(original, features)
    opened = open_tflite(PAIR / settings["compressed"], kernels)
    with closing(opened) as compressed:
        raw = outputs(compressed, features)
    assert not tied(expected).any()
    assert not tied(raw).any()
    assert np.array_equal(raw.argmax(axis=1), expected.argmax(axis=1))
    assert int((raw.argmax(axis=1) == seeds.labels).sum()) == meta["seeds"]["right"]


def test_the_kernels_differ_on_the_seeds(
    settings: dict[str, Any], features: NDArray[np.float32]
) -> None:
    raws = []
    for kernels in ("xnnpack", "reference"):
        with closing(open_tflite(PAIR / settings["compressed"], kernels)) as model:
            raws.append(outputs(model, features))
    assert (raws[0] != raws[1]).any()
