"""Masks of the arms as translucent pictures, and where the compared ones differ."""

from __future__ import annotations

from base64 import b64decode
from itertools import groupby
from typing import Any

import cv2
import msgspec
import numpy as np
import pytest
from numpy.typing import NDArray

from documents import finding
from edgeflare.core.answer_view import SegmentationView
from edgeflare.report.html.answered_input import AnsweredInput
from edgeflare.report.html.mask_group import (
    OPACITY,
    SMALLEST,
    MaskGroup,
    colour,
    mask_group,
    mask_pictures,
)
from edgeflare.report.html.pictures import SIDE, Picture
from structured_views import MASKS, structured_finding


def group(picture: Picture | None = None, most: int = 24_000, **fields: Any) -> MaskGroup:
    view = msgspec.convert({**MASKS, **fields}, SegmentationView)
    return mask_group(view, AnsweredInput("trigger", ("original", "device"), picture, most))


def runs(mask: NDArray[np.int64]) -> str:
    pairs = ((label, len(list(same))) for label, same in groupby(mask.ravel().tolist()))
    return " ".join(str(number) for pair in pairs for number in pair)


def pixels(uri: str) -> NDArray[np.uint8]:
    data = np.frombuffer(b64decode(uri.partition(",")[2]), np.uint8)
    image = cv2.imdecode(data, cv2.IMREAD_UNCHANGED)
    assert image is not None
    return np.asarray(image, np.uint8)[:, :, [2, 1, 0, 3]]


def test_each_arm_has_a_mask_and_the_difference_one_of_its_own() -> None:
    made = group()
    assert [panel.name for panel in made.panels] == ["original", "twin", "device", "difference"]
    original, _, device, difference = (pixels(panel.uri) for panel in made.panels)
    assert original[:2].max() == 0
    assert np.all(original[2:] == (*colour(1), OPACITY))
    assert np.all(device[:3, :, 3] == 0)
    assert (difference[..., 3] > 0).tolist() == [[False] * 4, [False] * 4, [True] * 4, [False] * 4]
    assert made.panels[3].words == "25.00% of the pixels"
    assert made.panels[2].words == "background 75.0%, person 25.0%"
    assert [name for name, _ in made.legend] == ["person"]


def test_it_has_the_size_of_the_picture_or_of_the_mask() -> None:
    made = group(Picture("trigger", "data:,", 64, 48))
    assert (made.picture, made.width, made.height) == ("data:,", 64, 48)
    assert (group().picture, group().width, group().height) == (None, 4, 4)


def test_an_arm_that_failed_has_no_mask() -> None:
    masks = {"original": MASKS["masks"]["original"], "device": None}
    made = group(masks=masks, mean_iou=None, region=None)
    assert [panel.name for panel in made.panels] == ["original"]
    assert made.words == "the mean IoU is not known"


@pytest.mark.parametrize("most", [300, 3_000])
def test_a_mask_is_shrunk_until_it_weighs_what_it_may(most: int) -> None:
    mask = np.random.default_rng(0).integers(0, 9, (128, 96))
    made = group(most=most, rows=128, columns=96, masks={"original": runs(mask)}, classes=[])
    data = b64decode(made.panels[0].uri.partition(",")[2])
    shrunk = pixels(made.panels[0].uri)
    assert len(data) <= most or max(shrunk.shape) == SMALLEST
    assert max(shrunk.shape) < 128
    known = {(0, 0, 0, 0), *((*colour(label), OPACITY) for label in range(1, 9))}
    assert {tuple(one) for one in shrunk.reshape(-1, 4).tolist()} <= known
    assert len(made.legend) == 8


def test_no_mask_is_larger_than_pictures_are() -> None:
    made = group(rows=1024, columns=512, masks={"original": f"1 {1024 * 512}"}, mean_iou=None)
    assert pixels(made.panels[0].uri).shape[:2] == (SIDE, SIDE // 2)


def test_classes_have_colours_of_their_own() -> None:
    assert len({colour(label) for label in range(1, 100)}) == 99


def test_the_pictures_of_masks_are_counted() -> None:
    entry = finding(**structured_finding("segmentation", seed_answers=[MASKS]))
    assert mask_pictures(entry) == 2 * (2 + 3)
    assert mask_pictures(finding(**structured_finding("detection"))) == 0
    assert mask_pictures(finding()) == 0
