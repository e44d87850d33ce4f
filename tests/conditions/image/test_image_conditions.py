"""What all conditions of images have in common."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from types import ModuleType

import cv2
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from edgeflare.conditions.condition import SEVERITIES, Condition
from edgeflare.conditions.image import (
    blur_corruptions,
    camera_conditions,
    digital_corruptions,
    elastic_corruption,
    noise_corruptions,
    spatter_corruption,
    weather_corruptions,
)
from edgeflare.conditions.image.gray_levels import Image
from published_corruptions import recording


def conditions(*modules: ModuleType) -> tuple[Condition, ...]:
    return tuple(
        one for module in modules for one in vars(module).values() if isinstance(one, Condition)
    )


CORRUPTIONS = conditions(
    noise_corruptions,
    blur_corruptions,
    weather_corruptions,
    digital_corruptions,
    elastic_corruption,
    spatter_corruption,
)
ALL = (*CORRUPTIONS, *conditions(camera_conditions))

NOISES = {"gaussian-noise", "shot-noise", "impulse-noise"}
BLURS = {"defocus-blur", "glass-blur", "motion-blur", "zoom-blur"}
WEATHER = {"snow", "frost", "fog", "brightness"}
DIGITAL = {"contrast", "elastic-transform", "pixelate", "jpeg-compression"}
EXTRA = {"speckle-noise", "gaussian-blur", "spatter", "saturate"}
CAMERA = {"white-balance", "gamma", "jpeg-quality", "resampling", "shift", "letterboxing"}

NOT_BY_SEVERITY = {"elastic-transform", "saturate"}
"""Elastic deformation goes from shearing the whole to moving small parts, and saturation from paler
to stronger; the published parameters are such that severity 1 is not the nearest."""
BY_COLOUR = {
    *(*NOISES, "speckle-noise"),  # draws for each channel
    *("frost", "spatter"),  # colours of their own
    *("saturate", "white-balance"),  # leave gray images
    *("jpeg-compression", "jpeg-quality"),  # encode colours by others
}

shapes = st.tuples(st.integers(8, 80), st.integers(8, 80), st.sampled_from([1, 3, 4]))
severities = st.floats(1, 5)
seeds = st.integers(0, 2**32)

for_all = pytest.mark.parametrize("one", ALL, ids=lambda one: one.name)


@pytest.fixture
def threads() -> Iterator[None]:
    before = cv2.getNumThreads()
    yield
    cv2.setNumThreads(before)


def distance(one: Condition, image: Image, severity: int, draws: int) -> float:
    """Return the mean distance to an image, in gray levels, over draws."""
    changed = [one(image, severity, np.random.default_rng(seed)) for seed in range(draws)]
    return float(np.abs(np.array(changed).astype(int) - image).mean())


def test_the_sets_are_those_of_the_paper_and_of_cameras() -> None:
    sets = {
        name: {one.name for one in ALL if name in one.sets}
        for name in ("common", "extra", "camera")
    }
    assert sets == {
        "common": NOISES | BLURS | WEATHER | DIGITAL | EXTRA,
        "extra": EXTRA,
        "camera": CAMERA,
    }
    assert {one.domain for one in ALL} == {"image"}
    assert len({one.name for one in ALL}) == len(ALL) == 25


@for_all
@given(shape=shapes, severity=severities, seed=seeds, data=st.data())
@settings(max_examples=12)
def test_a_condition_is_pure(
    one: Condition, shape: tuple[int, int, int], severity: float, seed: int, data: st.DataObject
) -> None:
    image = data.draw(arrays(np.uint8, shape))
    before = image.copy()
    changed = one(image, severity, np.random.default_rng(seed))
    assert (changed.shape, changed.dtype) == (image.shape, image.dtype)
    assert np.array_equal(image, before)
    assert not np.shares_memory(changed, image)
    assert np.array_equal(one(image, severity, np.random.default_rng(seed)), changed)
    if shape[2] == 4:
        assert np.array_equal(changed[..., 3], image[..., 3])


@for_all
def test_an_image_may_be_read_only_and_a_view(one: Condition) -> None:
    image = np.random.default_rng(0).integers(0, 256, (70, 80, 3), np.uint8)
    view = image[::-1, ::2]
    view.flags.writeable = False
    changed = one(view, 3, np.random.default_rng(1))
    assert np.array_equal(one(view.copy(), 3, np.random.default_rng(1)), changed)


@for_all
@pytest.mark.parametrize("size", ["small", "large"])
def test_conditions_grow_with_their_severity(one: Condition, size: str) -> None:
    image = recording(size).image
    if size == "large":
        image = image.repeat(2, axis=0).repeat(2, axis=1)
    mild, severe = (distance(one, image, severity, 8) for severity in (1, 5))
    assert mild > 0.3
    if one.name in NOT_BY_SEVERITY:
        assert severe > 0.3
    else:
        assert severe > mild


@pytest.mark.parametrize("size", ["small", "large"])
@pytest.mark.parametrize("group", ["common", "camera"])
def test_each_severity_is_further_on_average(size: str, group: str) -> None:
    image = recording(size).image
    if size == "large":
        image = image.repeat(2, axis=0).repeat(2, axis=1)
    chosen = [one for one in ALL if group in one.sets and one.name not in NOT_BY_SEVERITY]
    means = [
        np.mean([distance(one, image, severity, 4) for one in chosen]) for severity in SEVERITIES
    ]
    assert all(milder < severer for milder, severer in pairwise(means))


@pytest.mark.parametrize(
    "one", [each for each in ALL if each.name not in BY_COLOUR], ids=lambda one: one.name
)
def test_a_gray_image_is_taken_as_a_coloured_one_without_colours(one: Condition) -> None:
    gray = recording("large").image[..., :1]
    coloured = one(np.repeat(gray, 3, axis=2), 3, np.random.default_rng(4)).astype(int)
    changed = one(gray, 3, np.random.default_rng(4)).astype(int)
    assert np.abs(coloured - changed).max() <= 1


@for_all
def test_threads_make_no_difference(one: Condition, threads: None) -> None:
    image = np.random.default_rng(0).integers(0, 256, (224, 200, 3), np.uint8)
    made = []
    for count in (1, 2, 4):
        cv2.setNumThreads(count)
        made.append(one(image, 4.5, np.random.default_rng(1)))
    assert np.array_equal(made[0], made[1])
    assert np.array_equal(made[0], made[2])
