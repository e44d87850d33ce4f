"""Decode image files that may be a stranger's; nothing else does.

How many pixels a file claims to have is read from its header and bounded before: decoders allocate
what a header claims, and files of a few bytes may claim gigapixels. Messages of the decoding
libraries are held back.
"""

from __future__ import annotations

import os
import re
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final, cast

import cv2
import numpy as np
from numpy.typing import NDArray

from edgeflare.errors import UserError
from edgeflare.stderr_diversion import STDERR, diverted_stderr
from edgeflare.untrusted_text import for_terminal

_PNG = b"\x89PNG\r\n\x1a\n"
_NUMBER_OF_PNM = re.compile(rb"(?=[\s#])\s*(?:#[^\n\r]*[\n\r]\s*)*(\d{1,9})")
_LONGEST_PNM_HEADER = 2**20
_FRAMES_OF_JPEG = frozenset({*range(0xC0, 0xD0)} - {0xC4, 0xC8, 0xCC})
"""Markers of a JPEG's frame, which has the size; the others of that row are tables."""

_SCAN_OF_JPEG, _END_OF_JPEG = 0xDA, 0xD9
_MARKER_OF_JPEG = re.compile(rb"\xff[\xc0-\xcf\xd9-\xfe]")
"""A marker that begins a segment, or the end; what decoders pass over before one is no match."""

_MOST_SEGMENTS_OF_JPEG = 2**16
_SIZES_OF_TIFF = (256, 257, 322, 323)
"""Tags of the width and height of an image, and of a tile."""

_FORMATS_OF_TIFF = {1: "B", 3: "H", 4: "I", 16: "Q"}

MOST_PIXELS: Final = 2**26
"""Most pixels of an image, which takes 200 MB in colours, and a second."""

_MOST_LINES = 8
"""Most lines that are passed on of what a decoder says of an image."""


def decode_image(encoded: NDArray[np.uint8], mode: int) -> NDArray[np.uint8] | None:
    """Return the pixels of an image file; None where it is none, for the caller to report.

    OpenCV, libpng and libjpeg write messages about it to stderr, which are suppressed. Those about
    a file that is decoded all the same, such as a JPEG with a damaged part, are passed on.

    Args:
        encoded: the file's bytes, (size,).
        mode: a mode of OpenCV's `imdecode`, such as `cv2.IMREAD_COLOR`.

    Raises:
        UserError: it claims more pixels than are decoded.

    """
    with held_back() as told:
        pixels = decode_held_back(encoded, mode)
    if pixels is not None:
        pass_on(told())
    return pixels


def decode_held_back(encoded: NDArray[np.uint8], mode: int) -> NDArray[np.uint8] | None:
    """Return the pixels of an image file as `decode_image` does, where `held_back` is about it.

    So several threads can decode at once.

    Raises:
        UserError: it claims more pixels than are decoded.

    """
    claimed = claimed_pixels(encoded.tobytes())
    if claimed is None:
        return None
    if claimed > MOST_PIXELS:
        raise UserError(
            f"the image claims {claimed:,} pixels, and at most {MOST_PIXELS:,} are decoded: make it"
            " smaller"
        )
    try:
        return cast("NDArray[np.uint8] | None", cv2.imdecode(encoded, mode))
    except (cv2.error, MemoryError):  # what a decoder allocates beside the pixels
        return None


def pass_on(said: bytes) -> None:
    """Write the first lines of what decoders said to stderr."""
    if said:
        lines = said.decode(errors="replace").splitlines()[:_MOST_LINES]
        os.write(STDERR, "".join(f"{for_terminal(line)}\n" for line in lines).encode())


_holding: Final = threading.Lock()
"""OpenCV has one level of logging, which threads would put back in any order."""


@contextmanager
def held_back() -> Iterator[Callable[[], bytes]]:
    """Hold back what C libraries write to stderr; yield what returns it once the context ended."""
    logging = cv2.utils.logging
    with _holding, os.fdopen(os.memfd_create("stderr"), "r+b") as file:
        level = logging.getLogLevel()
        logging.setLogLevel(logging.LOG_LEVEL_SILENT)
        said = b""
        try:
            with diverted_stderr(file.fileno()):
                yield lambda: said
        finally:
            logging.setLogLevel(level)
            file.seek(0)
            said = file.read()


def claimed_pixels(content: bytes) -> int | None:
    """Return how many pixels a file of one of the formats that are read has to be decoded to.

    That is the largest of what its header names: the picture, a tile of it, or the picture as often
    as a JPEG goes over it, in steps of 8.

    Args:
        content: the file: BMP, JPEG, PNG, PNM, TIFF or WebP.

    Returns:
        None where it is of another format, or has no header.

    """
    try:
        return max((abs(width * height) for width, height in _sizes(content)), default=None)
    except (struct.error, ValueError):  # it ends within its header
        return None


def _sizes(content: bytes) -> Iterator[tuple[int, int]]:
    if content.startswith(_PNG):
        yield struct.unpack_from(">II", content, 16)
    elif content.startswith(b"\xff\xd8\xff"):
        yield from _sizes_of_jpeg(content)
    elif content.startswith(b"BM"):
        (header,) = struct.unpack_from("<I", content, 14)
        yield struct.unpack_from("<HH" if header == 12 else "<ii", content, 18)
    elif content.startswith(b"RIFF") and content[8:12] == b"WEBP":
        yield _size_of_webp(content)
    elif content.startswith((b"II*\0", b"MM\0*", b"II+\0", b"MM\0+")):
        yield from _sizes_of_tiff(content)
    elif re.match(rb"P[1-6]\s", content):
        head = content[2:_LONGEST_PNM_HEADER]
        width = _NUMBER_OF_PNM.match(head)
        height = width and _NUMBER_OF_PNM.match(head, width.end())
        if width and height:
            yield int(width[1]), int(height[1])


def _sizes_of_jpeg(content: bytes) -> Iterator[tuple[int, int]]:
    size, scans = None, 0
    for marker, at in _segments_of_jpeg(content):
        if size is None and marker in _FRAMES_OF_JPEG:
            size = struct.unpack_from(">HH", content, at + 5)
        scans += marker == _SCAN_OF_JPEG
    if size is not None:
        height, width = size
        yield width, height * max(1, scans // 8)


def _segments_of_jpeg(content: bytes) -> Iterator[tuple[int, int]]:
    """Yield the marker and the place of each segment up to the end of the first picture.

    Behind it a file may have anything, such as more pictures or a film.
    """
    at = 2
    for _ in range(_MOST_SEGMENTS_OF_JPEG):
        found = _MARKER_OF_JPEG.search(content, at)
        if found is None or content[found.start() + 1] == _END_OF_JPEG:
            return
        at = found.start()
        yield content[at + 1], at
        at += 2 + max(2, int.from_bytes(content[at + 2 : at + 4], "big"))
    raise ValueError("no picture has so many segments")


def _size_of_webp(content: bytes) -> tuple[int, int]:
    kind = content[12:16]
    if kind == b"VP8 ":
        width, height = struct.unpack_from("<HH", content, 26)
        return width & 0x3FFF, height & 0x3FFF
    if kind == b"VP8L":
        (bits,) = struct.unpack_from("<I", content, 21)
        return (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
    if kind == b"VP8X":
        low, high, more, most = struct.unpack_from("<HBHB", content, 24)
        return (low | high << 16) + 1, (more | most << 16) + 1
    raise ValueError("no kind of WebP")


def _sizes_of_tiff(content: bytes) -> Iterator[tuple[int, int]]:
    order = "<" if content.startswith(b"II") else ">"
    big = 0x2B in content[2:4]
    # Offset of the first directory, number of its entries, and one entry's size and value's place.
    (at,) = struct.unpack_from(order + ("Q" if big else "I"), content, 8 if big else 4)
    (count,) = struct.unpack_from(order + ("Q" if big else "H"), content, at)
    at, size, place = (at + 8, 20, 12) if big else (at + 2, 12, 8)
    found: tuple[list[int], list[int], list[int], list[int]] = ([], [], [], [])
    for entry in range(at, at + size * min(count, 2**16), size):
        tag, kind = struct.unpack_from(order + "HH", content, entry)
        if tag in _SIZES_OF_TIFF and kind in _FORMATS_OF_TIFF:
            value = struct.unpack_from(order + _FORMATS_OF_TIFF[kind], content, entry + place)
            found[_SIZES_OF_TIFF.index(tag)].append(*value)
    for widths, heights in (found[:2], found[2:]):
        if widths and heights:
            yield max(widths), max(heights)
