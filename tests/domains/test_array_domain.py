"""Inputs of arrays and of clips, and the labels beside them."""

from __future__ import annotations

from collections.abc import Callable
from math import inf, nan
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.typing import NDArray

from edgeflare.core.input_space import Input
from edgeflare.core.tensor import Tensor
from edgeflare.domains.array_domain import ArrayDomain
from edgeflare.domains.frames_domain import FramesDomain
from edgeflare.domains.seed_files import labels_of
from edgeflare.errors import UserError


@pytest.mark.parametrize(
    ("settings", "lowest", "highest", "level"),
    [
        ({}, -inf, inf, 1.0),
        ({"lowest": -1.0, "highest": 1.0}, -1.0, 1.0, 2 / 255),
        ({"lowest": 0.0}, 0.0, inf, 1.0),
        ({"dtype": "int8"}, -128, 127, 1.0),
        ({"dtype": "int16", "lowest": 0, "highest": 510}, 0, 510, 2.0),
        ({"lowest": -1.0, "highest": 1.0, "level": 0.5}, -1.0, 1.0, 0.5),
    ],
)
def test_bounds_and_level_have_defaults(
    settings: dict[str, Any], lowest: float, highest: float, level: float
) -> None:
    space = ArrayDomain(**settings).space
    assert (space.lowest, space.highest) == (lowest, highest)
    assert space.level == pytest.approx(level)
    assert space.dtype == settings.get("dtype", "float32")


@pytest.mark.parametrize(
    ("settings", "complaint"),
    [
        ({"dtype": "float64"}, "dtype has to be one of float32, int8, .*, not 'float64'"),
        ({"lowest": 1.0, "highest": 1.0}, "lower bound has to be below the upper one, not 1 and 1"),
        ({"lowest": nan}, "lower bound has to be below the upper one, not nan"),
        ({"dtype": "uint8", "highest": 300}, "beyond what uint8 holds, 0 to 255"),
        ({"dtype": "uint8", "highest": 0.5}, "whole numbers, not 0 and 0.5"),
        ({"level": 0.0}, "level has to be a finite number above 0"),
    ],
)
def test_settings_that_make_no_sense_are_refused(settings: dict[str, Any], complaint: str) -> None:
    with pytest.raises(UserError, match=complaint) as caught:
        ArrayDomain(**settings)
    assert "\n" not in str(caught.value)


@given(one=arrays("int16", (4, 3), elements=st.integers(-200, 300)))
def test_the_space_keeps_integers_within_the_bounds(one: Input) -> None:
    space = ArrayDomain("int16", -100, 200).space
    inside = space.nearest(space.levels(one))
    assert inside.dtype == np.int16
    assert np.array_equal(inside, np.clip(one, -100, 200))
    assert space.cells(one.shape) == (4,)


def test_one_number_in_a_list_is_one_for_all_values() -> None:
    tensor, values = Tensor("x", (1, 3), "float32"), np.array([[1.0, 2.0, 4.0]], np.float32)
    listed, plain = (
        ArrayDomain(mean=mean, std=2.0).encoder(tensor).encode(values) for mean in ((1.0,), 1.0)
    )
    assert listed.tolist() == plain.tolist() == [[0.0, 0.5, 1.5]]
    with pytest.raises(UserError, match=r"mean has 2 values, .* give 1 or 3"):
        ArrayDomain(mean=(1.0, 2.0)).encoder(tensor)


def test_near_duplicates_of_arrays_differ_by_levels() -> None:
    domain = ArrayDomain(lowest=0.0, highest=255.0)
    rng = np.random.default_rng(0)
    others = [rng.uniform(0, 255, (20, 3)).astype(np.float32) for _ in range(4)]
    near = others[0] + rng.uniform(-1, 1, (20, 3)).astype(np.float32)
    prints = [domain.fingerprint(one) for one in others]
    assert domain.count_near(prints) == 0
    assert domain.count_near([*prints, domain.fingerprint(near)]) == 2
    assert domain.count_near([]) == 0


Clip = NDArray[np.uint8]


def moving_square(rng: np.random.Generator) -> Clip:
    """Return a bright square that moves over a random pattern."""
    pattern = rng.integers(0, 120, (1, 8, 8, 1)).astype(np.uint8)
    clip = pattern.repeat(6, axis=0).repeat(4, axis=1).repeat(4, axis=2)
    for place in range(len(clip)):
        clip[place, 8:16, 2 * place : 2 * place + 8] = 250
    return clip


def test_cells_are_the_pixels_of_each_frame() -> None:
    assert FramesDomain.space.cells((5, 8, 9, 3)) == (5, 8, 9)
    assert FramesDomain.space.cell_mask((5, 8, 9, 3)) == (5, 8, 9, 1)


def test_the_operators_of_the_paper_are_those_of_images() -> None:
    assert [one.domain for one in FramesDomain.paper_operators()] == ["frames"] * 6
    assert FramesDomain.paper_operators()[0].name == "pixel-change"


@pytest.mark.parametrize(("change", "near"), [(1, 2), (40, 0)])
def test_near_duplicates_look_alike_in_every_frame(change: int, near: int) -> None:
    rng = np.random.default_rng(0)
    seeds = [moving_square(rng) for _ in range(3)]
    mutant = seeds[0].copy()
    mutant[2] = np.where(mutant[2] < 200, mutant[2] + change, mutant[2])
    prints = [FramesDomain.fingerprint(one) for one in seeds]
    assert FramesDomain.count_near(prints) == 0
    assert FramesDomain.count_near([*prints, FramesDomain.fingerprint(mutant)]) == near


PATH = Path("seeds.npz")


def test_labels_are_one_integer_or_several_for_each_seed() -> None:
    texts = labels_of(PATH, {"labels": np.array([[3, 1, -1], [1, 0, 2]])}, 2, "waves")
    assert texts is not None
    assert texts.tolist() == [[3, 1, -1], [1, 0, 2]]
    assert labels_of(PATH, {}, 2, "waves") is None
    large = labels_of(PATH, {"labels": np.array([3, 2**64 - 1], np.uint64)}, 2, "waves")
    assert large is not None
    assert large.tolist() == [3, 2**63 - 1]
    column = labels_of(PATH, {"labels": np.array([[3], [1]], np.uint8)}, 2, "waves")
    assert column is not None
    assert column.tolist() == [3, 1]


@pytest.mark.parametrize("dtype", ["uint8", "float32"])
def test_bools_are_zeros_and_ones(dtype: str, tmp_path: Path) -> None:
    np.savez(tmp_path / "seeds.npz", masks=[[True, False], [False, False]])
    seeds = ArrayDomain(dtype).load_seeds(tmp_path / "seeds.npz", (2,), "masks")
    assert (seeds.inputs.dtype, seeds.inputs.tolist()) == (np.dtype(dtype), [[1, 0], [0, 0]])


@pytest.mark.parametrize(
    "labels", [np.eye(3, dtype=np.int64)[:2], np.zeros((3, 2), np.int64), np.zeros((2, 2))]
)
def test_one_hot_labels_and_those_of_other_seeds_are_refused(
    labels: np.ndarray[tuple[int, ...], np.dtype[np.generic]], refusal: Callable[..., str]
) -> None:
    said = refusal(labels_of, PATH, {"labels": labels}, 2, "waves")
    assert "expected one integer for each of 2 waves" in said
