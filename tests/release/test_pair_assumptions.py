"""What is assumed of two models without a `pair.toml`."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from edgeflare.models.pair import Pair, load_pair
from edgeflare.models.pair_file import Settings
from edgeflare.release.pair_assumptions import assumed_of, measured_tolerance
from public_cases import CASES
from small_pairs import write_score_pair


@pytest.mark.parametrize(
    ("model", "preset", "why"),
    [
        ("label_order/compressed.tflite", "unit", "holds 0 to 1"),
        ("odd_inputs/normalizes_inside/compressed.tflite", "raw", "holds 0 to 255"),
        ("label_order/original.tflite", "unit", "takes floats, so nothing tells"),
        ("gru_dynamic/compressed.tflite", None, ""),
    ],
)
def test_the_range_of_the_input_tells_the_preprocessing(
    model: str, preset: str | None, why: str
) -> None:
    seeds = str((CASES / model).parent / "seeds.npz")
    found = assumed_of(CASES / model, Settings(seeds=seeds))
    assert found.settings.preset == preset
    assert why in " ".join(found.notes)


def test_what_the_user_says_is_not_assumed() -> None:
    path, seeds = (CASES / "label_order" / one for one in ("compressed.tflite", "seeds.npz"))
    said = Settings(seeds=str(seeds), scale=255.0, resize="none", outputs="probabilities")
    assert assumed_of(path, said).notes == ()


def test_of_what_is_no_model_nothing_is_assumed(tmp_path: Path) -> None:
    (tmp_path / "text.tflite").write_text("a model, or not")
    assert assumed_of(tmp_path / "text.tflite", Settings(seeds="seeds.npz")).notes == ()


@pytest.fixture
def pair(tmp_path: Path) -> Pair:
    task = '[task]\nname = "regression"\ntolerance = 1.0\ndistance = "l2"\n'
    described = f'[inputs.inputs]\ndomain = "array"\n{task}'
    return load_pair(write_score_pair(tmp_path, described))


def test_values_may_be_a_tenth_of_their_spread_apart(pair: Pair) -> None:
    found = measured_tolerance(pair)
    assert found is not None
    assert found[1] == 8
    alone = measured_tolerance(replace(pair, original=None))
    assert alone is not None
    assert alone[0] == pytest.approx(found[0], rel=0.05)


def test_values_that_do_not_vary_have_none(pair: Pair, tmp_path: Path) -> None:
    np.savez(tmp_path / "same.npz", inputs=np.ones((5, 6), np.float32))
    assert measured_tolerance(replace(pair, seeds=tmp_path / "same.npz")) is None
    assert measured_tolerance(replace(pair, seeds=tmp_path / "absent.npz")) is None
