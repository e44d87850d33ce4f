"""Decode image files that may be a stranger's; nothing else does.

What a file claims is bounded before, and messages of the decoding libraries are held back.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final, cast

import cv2
import numpy as np
from numpy.typing import NDArray

from edgeflare.domains.image.image_header import claimed_pixels
from edgeflare.errors import UserError
from edgeflare.untrusted_text import for_terminal

MOST_PIXELS: Final = 2**26
"""Of an image; it takes 200 MB in colours, and a second."""

_MOST_LINES = 8
"""That are passed on of what a decoder says of an image."""

_STDERR: Final = 2


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
    claimed = claimed_pixels(encoded.tobytes())
    if claimed is None:
        return None
    if claimed > MOST_PIXELS:
        raise UserError(
            f"the image claims {claimed:,} pixels, and at most {MOST_PIXELS:,} are decoded: make it"
            " smaller"
        )
    with _held_back() as told:
        try:
            pixels = cast("NDArray[np.uint8] | None", cv2.imdecode(encoded, mode))
        except (cv2.error, MemoryError):  # what a decoder allocates beside the pixels
            return None
    if pixels is not None and (said := told()):
        lines = said.decode(errors="replace").splitlines()[:_MOST_LINES]
        os.write(_STDERR, "".join(f"{for_terminal(line)}\n" for line in lines).encode())
    return pixels


@contextmanager
def _held_back() -> Iterator[Callable[[], bytes]]:
    """Hold back what C libraries write to stderr; yield what returns it once the context ended."""
    logging = cv2.utils.logging
    level = logging.getLogLevel()
    with os.fdopen(os.memfd_create("stderr"), "r+b") as file:
        stderr = os.dup(_STDERR)
        logging.setLogLevel(logging.LOG_LEVEL_SILENT)
        os.dup2(file.fileno(), _STDERR)
        said = b""
        try:
            yield lambda: said
        finally:
            os.dup2(stderr, _STDERR)
            os.close(stderr)
            logging.setLogLevel(level)
            file.seek(0)
            said = file.read()
