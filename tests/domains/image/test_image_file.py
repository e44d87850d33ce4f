from __future__ import annotations

import cv2
import numpy as np
import pytest
from numpy.typing import NDArray

from edgeflare.domains.image.image_file import decode_image

NOISE = np.random.default_rng(0).integers(0, 256, (64, 64, 3)).astype(np.uint8)


def encoded(suffix: str) -> NDArray[np.uint8]:
    data: NDArray[np.uint8] = np.array(cv2.imencode(suffix, NOISE)[1], np.uint8)
    return data


def damaged(suffix: str) -> NDArray[np.uint8]:
    data = encoded(suffix)
    data[len(data) // 2] ^= 0x55
    return data


def test_a_whole_image_is_decoded_as_it_is(capfd: pytest.CaptureFixture[str]) -> None:
    np.testing.assert_array_equal(decode_image(encoded(".png"), cv2.IMREAD_COLOR), NOISE)
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize(
    "data",
    [
        damaged(".png"),
        encoded(".png")[:200],
        encoded(".jpg")[:40],
        np.zeros(0, np.uint8),
        np.frombuffer(b"miaow", np.uint8),
    ],
)
def test_what_is_no_image_is_none_without_a_line_of_the_libraries(
    data: NDArray[np.uint8], capfd: pytest.CaptureFixture[str]
) -> None:
    assert decode_image(data, cv2.IMREAD_UNCHANGED) is None
    assert capfd.readouterr() == ("", "")


def test_what_is_said_of_an_image_that_is_decoded_all_the_same_is_passed_on(
    capfd: pytest.CaptureFixture[str],
) -> None:
    data = encoded(".jpg")
    with_rubbish = np.insert(data, len(data) - 2, np.arange(1, 9, dtype=np.uint8))
    assert decode_image(with_rubbish, cv2.IMREAD_COLOR) is not None
    assert "extraneous bytes" in capfd.readouterr().err
    assert decode_image(data, cv2.IMREAD_COLOR) is not None
    assert capfd.readouterr().err == ""
