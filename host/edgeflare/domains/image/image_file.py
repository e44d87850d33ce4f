"""Decode image files without error messages of the decoding libraries on stderr."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final, cast

import cv2
import numpy as np
from numpy.typing import NDArray

_STDERR: Final = 2


def decode_image(encoded: NDArray[np.uint8], mode: int) -> NDArray[np.uint8] | None:
    """Return the pixels of an image file; None where it is none, for the caller to report.

    OpenCV, libpng and libjpeg write messages about it to stderr, which are suppressed. Those about
    a file that is decoded all the same, such as a JPEG with a damaged part, are passed on.

    Args:
        encoded: the file's bytes, (size,).
        mode: a mode of OpenCV's `imdecode`, such as `cv2.IMREAD_COLOR`.

    """
    if not encoded.size:
        return None
    with _held_back() as lines:
        pixels = cast("NDArray[np.uint8] | None", cv2.imdecode(encoded, mode))
    if pixels is not None and (said := lines()):
        os.write(_STDERR, said)
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
