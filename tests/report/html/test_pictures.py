"""The pictures of a finding: what they show, and what they weigh."""

from __future__ import annotations

from base64 import b64decode
from typing import Any

import cv2
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from documents import REFINED, Document, finding
from edgeflare.domains.image.image_domain import ImageDomain
from edgeflare.report.html.page_allowance import BUDGET, MOST, allowance
from edgeflare.report.html.pictures import GAINS, SIDE, Picture, difference, pictures_of
from edgeflare.report.html.stored_views import stored_views
from edgeflare.run.run_directory import RunDirectory
from edgeflare_operators.operator_registry import Image


def data(picture: Picture) -> bytes:
    assert picture.uri is not None
    head, text = picture.uri.split(",")
    assert head in {"data:image/png;base64", "data:image/webp;base64"}
    return b64decode(text)


def pixels(picture: Picture) -> Image:
    decoded = cv2.imdecode(np.frombuffer(data(picture), np.uint8), cv2.IMREAD_COLOR_RGB)
    return np.asarray(decoded, np.uint8)


def stored(directory: RunDirectory, seed: Image, trigger: Image) -> Document:
    """An entry whose images are those."""
    change = trigger.astype(int) - seed.astype(int)
    return {
        "seed_image": directory.store_input("seeds", 1, seed, ImageDomain()).path,
        "image": directory.store_input("findings", 1, trigger, ImageDomain()).path,
        "distortion": {"linf": float(np.abs(change).max())},
        "refined": None,
    }


def pictures_in(directory: RunDirectory, entry: Document, most: int) -> tuple[Picture, ...]:
    return pictures_of(stored_views(directory, finding(**entry), {}), most)


images = st.tuples(st.integers(1, 8), st.integers(1, 8), st.sampled_from([1, 3, 4])).flatmap(
    lambda shape: st.tuples(arrays(np.uint8, shape), arrays(np.uint8, shape))
)


@given(images)
def test_a_difference_tells_every_change_and_its_direction(pair: tuple[Image, Image]) -> None:
    seed, trigger = (image[:, :, :3] for image in pair)
    shown, gain = difference(*pair)
    change = trigger.astype(int) - seed
    assert gain in GAINS
    assert shown.shape == change.shape
    assert np.array_equal(np.sign(shown.astype(int) - 128)[gain >= 1 or change % 2 == 0],
                          np.sign(change)[gain >= 1 or change % 2 == 0])  # fmt: skip
    restored = (shown.astype(float) - 128) / gain
    assert np.abs(restored - change).max() <= 1 / gain, "nothing is cut off"


def test_a_small_difference_is_magnified_as_far_as_it_goes() -> None:
    seed = np.full((4, 4, 1), 100, np.uint8)
    trigger = seed.copy()
    trigger[0, 0], trigger[1, 1] = 107, 97
    shown, gain = difference(seed, trigger)
    assert gain == 16
    assert shown[0, 0] == 128 + 16 * 7
    assert shown[1, 1] == 128 - 16 * 3
    assert shown[3, 3] == 128


@settings(deadline=None, max_examples=30)
@given(images)
def test_small_images_are_shown_to_the_pixel(
    tmp_path_factory: pytest.TempPathFactory, pair: tuple[Image, Image]
) -> None:
    directory = RunDirectory(tmp_path_factory.mktemp("run"))
    seed, trigger = (image[:, :, : min(3, image.shape[2])] for image in pair)
    shown = pictures_of(
        stored_views(directory, finding(**stored(directory, seed, trigger)), {}), MOST
    )
    by_name = {picture.what: picture for picture in shown}
    assert np.array_equal(pixels(by_name["seed"]), np.broadcast_to(seed, (*seed.shape[:2], 3)))
    if (seed != trigger).any():
        assert list(by_name) == ["seed", "trigger", "difference"]
        expected = np.broadcast_to(trigger, (*seed.shape[:2], 3))
        assert np.array_equal(pixels(by_name["trigger"]), expected)
    else:
        assert list(by_name) == ["seed"]


@pytest.mark.slow
@pytest.mark.parametrize("most", [900, 2_000, 10_000, MOST])
@pytest.mark.parametrize("shape", [(32, 32, 3), (224, 224, 3), (300, 500, 1), (128, 128, 4)])
def test_no_picture_weighs_more_than_its_allowance(
    tmp_path: Any, shape: tuple[int, ...], most: int
) -> None:
    directory = RunDirectory(tmp_path)
    rng = np.random.default_rng(3)
    seed, trigger = (rng.integers(0, 256, shape, dtype=np.uint8) for _ in range(2))
    for picture in pictures_of(
        stored_views(directory, finding(**stored(directory, seed, trigger)), {}), most
    ):
        assert len(data(picture)) <= most
        height, width = pixels(picture).shape[:2]
        assert max(height, width) <= SIDE
        assert width / height == pytest.approx(shape[1] / shape[0], rel=0.1)
        assert (picture.width, picture.height) == (shape[1], shape[0])


def test_pictures_share_a_budget() -> None:
    assert allowance(0) == allowance(3) == MOST
    assert all(n * allowance(n) <= BUDGET for n in (300, 1_000, 4_000, 10_000))


def test_a_lost_file_leaves_the_others(tmp_path: Any) -> None:
    directory = RunDirectory(tmp_path)
    rng = np.random.default_rng(3)
    seed, trigger = (rng.integers(0, 256, (6, 6, 3), dtype=np.uint8) for _ in range(2))
    entry = stored(directory, seed, trigger)
    (tmp_path / entry["seed_image"]).write_bytes(b"no picture")
    shown = pictures_in(directory, entry, MOST)
    assert [(picture.what, picture.uri is None) for picture in shown] == [
        ("seed", True),
        ("trigger", False),
    ]


def test_what_was_before_refinement_is_shown(tmp_path: Any) -> None:
    directory = RunDirectory(tmp_path)
    rng = np.random.default_rng(3)
    seed, trigger, before = (rng.integers(0, 256, (6, 6, 3), dtype=np.uint8) for _ in range(3))
    entry = stored(directory, seed, trigger)
    stored_before = directory.store_input("refined", 1, before, ImageDomain()).path
    entry["refined"] = {**REFINED, "image_before": stored_before}
    shown = pictures_in(directory, entry, MOST)
    assert [picture.what for picture in shown] == ["seed", "before", "trigger", "difference"]
    assert np.array_equal(pixels(shown[1]), before)
