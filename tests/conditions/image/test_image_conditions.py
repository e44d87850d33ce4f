"""What all conditions of images have in common, and their parameters by severity and size."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
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
    noise_corruptions,
    weather_corruptions,
)
from edgeflare.conditions.image import blur_corruptions as blurs
from edgeflare.conditions.image import camera_conditions as camera
from edgeflare.conditions.image import digital_corruptions as digital
from edgeflare.conditions.image import noise_corruptions as noises
from edgeflare.conditions.image import weather_corruptions as weather
from edgeflare.conditions.image.severity_parameters import (
    SMALL_SIDE,
    Image,
    SeverityParameters,
    one_parameter,
    whole,
)
from published_corruptions import recording


def conditions(*modules: ModuleType) -> tuple[Condition, ...]:
    return tuple(
        one for module in modules for one in vars(module).values() if isinstance(one, Condition)
    )


CORRUPTIONS = conditions(
    noise_corruptions, blur_corruptions, weather_corruptions, digital_corruptions
)
ALL = (*CORRUPTIONS, *conditions(camera_conditions))

NOISES = {"gaussian-noise", "shot-noise", "impulse-noise"}
BLURS = {"defocus-blur", "glass-blur", "motion-blur", "zoom-blur"}
WEATHER = {"snow", "frost", "fog", "brightness"}
DIGITAL = {"contrast", "elastic-transform", "pixelate", "jpeg-compression"}
EXTRA = {"speckle-noise", "gaussian-blur", "spatter", "saturate"}
CAMERA = {
    *("white-balance", "gamma", "low-light", "jpeg-quality", "resampling", "shift"),
    "letterboxing",
}

NOT_BY_SEVERITY = {"elastic-transform", "saturate"}
"""Elastic deformation goes from shearing the whole to moving small parts, and saturation from paler
to stronger; the published parameters are such that severity 1 is not the nearest."""
BY_COLOUR = {
    *(*NOISES, "speckle-noise"),  # draws for each channel
    *("frost", "spatter"),  # colours of their own
    *("saturate", "white-balance"),  # leave gray images
    *("jpeg-compression", "jpeg-quality"),  # encode colours by others
}


@pytest.mark.parametrize("shape", [(1, 1, 1), (1, 70, 3), (70, 1, 4)])
@pytest.mark.parametrize("condition", ALL, ids=lambda condition: condition.name)
def test_an_image_may_be_one_row_or_column(condition: Condition, shape: tuple[int, ...]) -> None:
    image = np.random.default_rng(0).integers(256, size=shape, dtype=np.uint8)
    for severity in SEVERITIES:
        assert condition(image, severity, np.random.default_rng(1)).shape == shape


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
    assert len({one.name for one in ALL}) == len(ALL) == 26


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


TWO = SeverityParameters(
    ((1, 9), (2, 7), (4, 6), (8, 2), (16, 1)), ((0, 0), (10, 1), (20, 2), (30, 3), (40, 4))
)
SMALL_IMAGE = np.zeros((SMALL_SIDE, 500, 3), np.uint8)
LARGE_IMAGE = np.zeros((SMALL_SIDE + 1, 500, 3), np.uint8)


@pytest.mark.parametrize("severity", [1, 2, 3, 4, 5])
def test_whole_severities_have_the_parameters_of_the_table(severity: int) -> None:
    assert TWO.at(SMALL_IMAGE, severity) == TWO.small[severity - 1]
    assert TWO.at(LARGE_IMAGE, severity) == TWO.large[severity - 1]


@given(st.floats(1, 5))
def test_between_them_parameters_are_interpolated(severity: float) -> None:
    assert TWO.at(LARGE_IMAGE, severity) == pytest.approx((10 * (severity - 1), severity - 1))
    expected = np.interp(severity, range(1, 6), np.array(TWO.small)[:, 0])
    assert TWO.at(SMALL_IMAGE, severity)[0] == pytest.approx(expected)


def test_one_parameter_is_a_row_of_one() -> None:
    assert one_parameter((1, 2, 3, 4, 5), (2, 4, 6, 8, 10)).at(SMALL_IMAGE, 1.5) == (1.5,)


def test_halves_go_up() -> None:
    assert [whole(value) for value in (0.5, 1.5, 2.5, 2.4, 2.0)] == [1, 2, 3, 2, 2]


PAGE = Path(__file__).parents[3] / "docs" / "conditions.md"
PARAMETERS: tuple[tuple[Condition, SeverityParameters], ...] = (
    (noises.gaussian_noise, noises.GAUSSIAN),
    (noises.shot_noise, noises.SHOT),
    (noises.impulse_noise, noises.IMPULSE),
    (noises.speckle_noise, noises.SPECKLE),
    (blurs.defocus_blur, blurs.DEFOCUS),
    (blurs.glass_blur, blurs.GLASS),
    (blurs.motion_blur, blurs.MOTION),
    (blurs.zoom_blur, blurs.ZOOM),
    (blurs.gaussian_blur, blurs.GAUSSIAN_SIGMA),
    (weather.snow, weather.SNOW),
    (weather.frost, weather.FROST),
    (weather.fog, weather.FOG),
    (weather.brightness, weather.BRIGHTNESS),
    (digital.contrast, digital.CONTRAST),
    (digital.pixelate, digital.PIXELATE),
    (digital.jpeg_compression, digital.JPEG),
    (digital.saturate, digital.SATURATE),
    (digital.elastic_transform, digital.ELASTIC),
    (weather.spatter, weather.SPATTER),
    (camera.white_balance, camera.WHITE_BALANCE),
    (camera.gamma, camera.GAMMA),
    (camera.low_light, camera.LOW_LIGHT),
    (camera.jpeg_quality, camera.JPEG_QUALITY),
    (camera.resampling, camera.RESAMPLING),
    (camera.shift, camera.SHIFT),
    (camera.letterboxing, camera.LETTERBOXING),
)


def documented(cell: str) -> list[list[float]]:
    return [[float(one) for one in row.split(",")] for row in cell.split("·")]


@pytest.mark.parametrize(("one", "parameters"), PARAMETERS, ids=[one.name for one, _ in PARAMETERS])
def test_the_page_says_the_parameters(one: Condition, parameters: SeverityParameters) -> None:
    rows = [line for line in PAGE.read_text().splitlines() if line.startswith(f"| `{one.name}` |")]
    ((_, _, summary, _, small, large, _),) = (row.split("|") for row in rows)
    assert summary.strip() == one.summary
    if large.strip() == "the same":
        large = small
    for cell, expected in ((small, parameters.small), (large, parameters.large)):
        for ours, row in zip(documented(cell), expected, strict=True):
            assert ours == pytest.approx(row, abs=1e-4)
