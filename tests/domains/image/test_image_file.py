from __future__ import annotations

import contextlib
import struct
import zlib
from random import Random

import cv2
import numpy as np
import pytest
from numpy.typing import NDArray

from edgeflare.domains.image.image_file import MOST_PIXELS, decode_image
from edgeflare.domains.image.image_header import claimed_pixels
from edgeflare.errors import UserError
from mutated_binaries import (
    Mutation,
    bmp_header,
    jpeg_header,
    png_header,
    pnm_header,
    tiff_header,
    webp_header,
)

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


def claimed(suffix: str, width: int, height: int) -> NDArray[np.uint8]:
    """A small file that says that it is of another size."""
    data = bytearray(encoded(suffix))
    sizes = {".png": (16, ">II"), ".bmp": (18, "<ii"), ".jpg": (data.find(b"\xff\xc0") + 5, ">HH")}
    at, form = sizes[suffix]
    both = (height, width) if suffix == ".jpg" else (width, height)
    struct.pack_into(form, data, at, *both)
    if suffix == ".png":
        struct.pack_into(">I", data, 29, zlib.crc32(data[12:29]))
    return np.frombuffer(bytes(data), np.uint8)


@pytest.mark.parametrize("suffix", [".png", ".bmp", ".jpg"])
def test_a_claim_of_gigapixels_is_refused_before_anything_is_decoded(suffix: str) -> None:
    with pytest.raises(UserError, match=r"claims 3,600,000,000 pixels, and at most 67,108,864"):
        decode_image(claimed(suffix, 60_000, 60_000), cv2.IMREAD_COLOR)


@pytest.mark.parametrize("suffix", [".png", ".jpg", ".bmp", ".webp", ".tif", ".ppm"])
def test_a_header_says_how_many_pixels_there_are(suffix: str) -> None:
    assert claimed_pixels(encoded(suffix).tobytes()) == 64 * 64
    assert claimed_pixels(encoded(suffix).tobytes()[:20]) in (None, 64 * 64)


def test_a_picture_that_is_gone_over_very_often_counts_as_many() -> None:
    data = encoded(".jpg").tobytes()
    scan = data[data.index(b"\xff\xda") : -2]
    assert claimed_pixels(data[:-2] + scan * 799 + data[-2:]) == 100 * 64 * 64


def test_what_lies_behind_a_picture_is_not_counted() -> None:
    data = encoded(".jpg").tobytes()
    assert claimed_pixels(data + b"\xff\xda" * 800_000) == 64 * 64


def test_an_end_within_a_segment_is_none() -> None:
    data = encoded(".jpg").tobytes()
    at = data.index(b"\xff\xda")
    hiding = data[:at] + b"\xff\xfe\0\4\xff\xd9" + data[at:-2]
    assert claimed_pixels(hiding + data[at:-2] * 799 + data[-2:]) == 100 * 64 * 64


def test_segments_without_end_are_those_of_no_picture() -> None:
    data = encoded(".jpg").tobytes()
    assert claimed_pixels(data[:2] + b"\xff\xfe\0\2" * 70_000 + data[2:]) is None


def test_a_stray_byte_before_a_marker_is_passed_over() -> None:
    data = np.array([*encoded(".jpg")[:20], 7, *encoded(".jpg")[20:]], np.uint8)
    pixels = decode_image(data, cv2.IMREAD_COLOR)
    assert pixels is not None
    assert pixels.shape == NOISE.shape


def test_a_comment_of_a_pgm_may_be_long() -> None:
    head = b"P5\n# " + b"c" * 5000 + b"\n# more\n8 #\n 4\n255\n"
    pixels = decode_image(np.frombuffer(head + bytes(32), np.uint8), cv2.IMREAD_GRAYSCALE)
    assert pixels is not None
    assert pixels.shape == (4, 8)


@pytest.mark.parametrize("number", range(20))
@pytest.mark.parametrize(
    ("suffix", "change"),
    [
        (".png", png_header),
        (".jpg", jpeg_header),
        (".bmp", bmp_header),
        (".webp", webp_header),
        (".tif", tiff_header),
        (".ppm", pnm_header),
    ],
)
def test_changed_files_are_decoded_or_refused(suffix: str, change: Mutation, number: int) -> None:
    data = change(encoded(suffix).tobytes(), Random(number))  # noqa: S311 - no secret
    with contextlib.suppress(UserError):
        pixels = decode_image(np.frombuffer(data, np.uint8), cv2.IMREAD_COLOR)
        assert pixels is None or pixels.size <= 3 * MOST_PIXELS
