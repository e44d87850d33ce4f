"""Images from outside: seeds, and what their files claim."""

from __future__ import annotations

import contextlib
import io
import struct
import zlib
from collections.abc import Callable
from pathlib import Path
from random import Random

import cv2
import numpy as np
import pytest
from numpy.typing import NDArray

from edgeflare.core.seeds import SeedChoice
from edgeflare.domains.image.image_domain import load_image_seeds, resized
from edgeflare.domains.image.image_file import MOST_PIXELS, claimed_pixels, decode_image
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

Refusal = Callable[..., str]

IMAGES = np.random.default_rng(0).integers(0, 256, (6, 8, 10, 3)).astype(np.uint8)


def save(path: Path, **arrays: object) -> Path:
    np.savez(path, **arrays)  # type: ignore[arg-type]
    return path


def test_npz_with_labels(tmp_path: Path) -> None:
    path = save(tmp_path / "seeds.npz", images=IMAGES, labels=np.arange(6, dtype=np.uint8))
    seeds = load_image_seeds(path, (8, 10, 3))
    np.testing.assert_array_equal(seeds.inputs, IMAGES)
    assert seeds.labels is not None
    assert seeds.labels.dtype == np.int64
    assert seeds.labels.tolist() == [0, 1, 2, 3, 4, 5]
    assert seeds.names == ("0", "1", "2", "3", "4", "5")
    first = load_image_seeds(path, (8, 10, 3), choice=SeedChoice(first=2))
    assert len(first) == len(first.names) == 2
    np.testing.assert_array_equal(first.inputs, IMAGES[:2])


def test_npz_of_gray_images_without_channels(tmp_path: Path) -> None:
    seeds = load_image_seeds(save(tmp_path / "s.npz", images=IMAGES[..., 0]), (8, 10, 1))
    np.testing.assert_array_equal(seeds.inputs, IMAGES[..., :1])
    assert seeds.labels is None


def test_folder_in_the_order_of_names_as_rgb(tmp_path: Path) -> None:
    for index, name in enumerate(("b.png", "a.bmp", "c.PNG", ".hidden.png")):
        cv2.imwrite(str(tmp_path / name), IMAGES[index][..., ::-1])
    (tmp_path / "notes.txt").write_text("not an image")
    seeds = load_image_seeds(tmp_path, (8, 10, 3))
    assert seeds.names == ("a.bmp", "b.png", "c.PNG")
    np.testing.assert_array_equal(seeds.inputs, IMAGES[[1, 0, 2]])
    assert load_image_seeds(tmp_path, (8, 10, 3), choice=SeedChoice(first=1)).names == ("a.bmp",)


@pytest.mark.parametrize("suffix", ["jpg", "webp"])
def test_lossy_files_come_near(tmp_path: Path, suffix: str) -> None:
    flat = np.full((8, 10, 3), (200, 100, 20), np.uint8)
    cv2.imwrite(str(tmp_path / f"flat.{suffix}"), flat[..., ::-1])
    seeds = load_image_seeds(tmp_path, (8, 10, 3))
    assert np.abs(seeds.inputs[0].astype(int) - flat).max() <= 6


def test_a_large_folder_keeps_its_order_and_what_decoders_said(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    data = encoded(".jpg")
    with_rubbish = np.insert(data, len(data) - 2, np.arange(1, 9, dtype=np.uint8))
    for at in range(300):
        content = with_rubbish if at == 199 else data
        (tmp_path / f"{at:03}.jpg").write_bytes(content.tobytes())
        if at % 100 == 0:
            cv2.imwrite(str(tmp_path / f"{at:03}.png"), np.full((64, 64, 3), at % 255, np.uint8))
    seeds = load_image_seeds(tmp_path, (64, 64, 3))
    assert seeds.names == tuple(sorted(file.name for file in tmp_path.iterdir()))
    flat = [
        name for name, image in zip(seeds.names, seeds.inputs, strict=True) if np.ptp(image) == 0
    ]
    assert flat == ["000.png", "100.png", "200.png"]
    assert "extraneous bytes" in capfd.readouterr().err


def test_folder_for_models_with_one_and_four_channels(tmp_path: Path) -> None:
    gray, rgba = np.zeros((2, 2, 3), np.uint8) + 90, np.dstack([IMAGES[0], IMAGES[1][..., 0]])
    cv2.imwrite(str(tmp_path / "1.png"), gray)
    assert (load_image_seeds(tmp_path, (2, 2, 1)).inputs == 90).all()
    (tmp_path / "1.png").unlink()
    cv2.imwrite(str(tmp_path / "2.png"), rgba[..., [2, 1, 0, 3]])
    cv2.imwrite(str(tmp_path / "3.png"), IMAGES[2][..., ::-1])
    images = load_image_seeds(tmp_path, (8, 10, 4)).inputs
    np.testing.assert_array_equal(images[0], rgba)
    np.testing.assert_array_equal(images[1], np.dstack([IMAGES[2], np.full((8, 10), 255)]))


@pytest.mark.parametrize("orientation", range(2, 9))
def test_an_opacity_is_turned_as_the_colours_are(orientation: int, tmp_path: Path) -> None:
    upright = np.dstack([IMAGES[0], IMAGES[1][..., 0]])
    kept = upright if orientation < 5 else upright.transpose(1, 0, 2)
    kept = kept[:, ::-1] if orientation in (2, 3, 7, 8) else kept
    kept = kept[::-1] if orientation in (3, 4, 6, 7) else kept
    png = cv2.imencode(".png", kept[..., [2, 1, 0, 3]])[1].tobytes()
    tag = b"eXIfII*\0" + struct.pack("<IHHHIII", 8, 1, 0x112, 3, 1, orientation, 0)
    chunk = struct.pack(">I", len(tag) - 4) + tag + struct.pack(">I", zlib.crc32(tag))
    (tmp_path / "1.png").write_bytes(png[:33] + chunk + png[33:])
    np.testing.assert_array_equal(load_image_seeds(tmp_path, (8, 10, 4)).inputs[0], upright)


def test_stretching_keeps_the_whole_and_cropping_the_centre(tmp_path: Path) -> None:
    wide = np.zeros((4, 12, 3), np.uint8)
    wide[:, 4:8] = 255
    path = save(tmp_path / "s.npz", images=wide[None])
    cropped = load_image_seeds(path, (4, 4, 3), "center-crop").inputs[0]
    assert (cropped == 255).all()
    stretched = load_image_seeds(path, (4, 6, 3), "stretch").inputs[0]
    assert (stretched[:, 2:4] == 255).all()
    assert not stretched[:, [0, 1, 4, 5]].any()


@pytest.mark.parametrize("size", [(3, 7), (20, 9), (1, 1), (8, 10)])
@pytest.mark.parametrize("channels", [1, 3, 4])
def test_resizing_gives_the_size_asked_for(size: tuple[int, int], channels: int) -> None:
    image: NDArray[np.uint8] = np.full((8, 10, channels), 77, np.uint8)
    for how in ("stretch", "center-crop"):
        out = resized(image, *size, how)
        assert out.shape == (*size, channels)
        assert (out == 77).all()


def test_a_crop_is_at_the_centre_and_what_shrinks_is_averaged() -> None:
    columns = [255] * 4 + [0, 10, 20, 70, 100, 100, 100, 200] + [255] * 4
    image = np.tile(np.array(columns, np.uint8)[:, np.newaxis], (8, 1, 1))
    assert resized(image, 2, 2, "center-crop")[..., 0].tolist() == [[25, 125]] * 2


def test_refuses_images_of_another_shape(tmp_path: Path, refusal: Refusal) -> None:
    path = save(tmp_path / "s.npz", images=IMAGES)
    message = refusal(load_image_seeds, path, (28, 28, 3))
    assert "(8, 10, 3)" in message
    assert "(28, 28, 3)" in message
    assert "resize" in message
    message = refusal(load_image_seeds, path, (28, 28, 1), "stretch")
    assert "gray, 1-channel" in message
    message = refusal(load_image_seeds, path, (3, 8, 10), "stretch")
    assert 'say layout = "NCHW"' in message
    cv2.imwrite(str(tmp_path / "a.png"), IMAGES[0])
    assert "a.png" in refusal(load_image_seeds, tmp_path, (28, 28, 3))


@pytest.mark.parametrize(
    ("arrays", "words"),
    [
        ({"pictures": IMAGES, "labels": np.zeros(6, int)}, ["pictures", "labels"]),
        ({}, ["no arrays at all"]),
        ({"images": IMAGES / 255.0}, ["float64", "* 255", "uint8"]),
        ({"images": IMAGES.astype(np.int64)}, ["int64", "uint8"]),
        ({"images": IMAGES > 99}, ["bool", "* 255"]),
        ({"images": IMAGES[:0]}, ["no images"]),
        ({"images": IMAGES[:, :0]}, ["no images", "(6, 0, 10, 3)"]),
        ({"images": IMAGES[0, 0]}, ["(10, 3)"]),
        ({"images": IMAGES[..., :2]}, ["(6, 8, 10, 2)"]),
        ({"images": IMAGES, "labels": np.zeros(5, int)}, ["labels", "(5,)", "6"]),
        ({"images": IMAGES, "labels": np.zeros(6)}, ["labels", "float64"]),
        ({"images": np.array([None, {}])}, ["seeds.npz"]),
    ],
)
def test_refuses_npz_that_are_no_seeds(
    tmp_path: Path, refusal: Refusal, arrays: dict[str, object], words: list[str]
) -> None:
    path = save(tmp_path / "seeds.npz", **arrays)
    message = refusal(load_image_seeds, path, (8, 10, 3))
    for word in ("seeds.npz", *words):
        assert word in message


def test_refuses_what_is_no_npz_and_no_folder(tmp_path: Path, refusal: Refusal) -> None:
    assert "lost.npz" in refusal(load_image_seeds, tmp_path / "lost.npz", (8, 10, 3))
    whole = save(tmp_path / "whole.npz", images=IMAGES).read_bytes()
    for name, content in {
        "empty.npz": b"",
        "text.npz": b"hello",
        "cut.npz": whole[: len(whole) // 2],
        "bits.npz": whole[:200] + bytes(50) + whole[250:],
        "photo.png": b"",
        "array.npz": bytes_of_npy(),
    }.items():
        (tmp_path / name).write_bytes(content)
        assert name in refusal(load_image_seeds, tmp_path / name, (8, 10, 3))


def test_refuses_folders_without_images_and_files_that_are_none(
    tmp_path: Path, refusal: Refusal
) -> None:
    assert "no image files" in refusal(load_image_seeds, tmp_path, (8, 10, 3))
    for content in (b"", b"not an image"):
        (tmp_path / "broken.png").write_bytes(content)
        assert "broken.png" in refusal(load_image_seeds, tmp_path, (8, 10, 3))


def bytes_of_npy() -> bytes:
    file = io.BytesIO()
    np.save(file, IMAGES)
    return file.getvalue()


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
    assert claimed_pixels(head) == 4 * 8


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
