"""The contents of image files, which OpenCV reads without a word of its own."""

from __future__ import annotations

from typing import cast

import cv2
import numpy as np
from numpy.typing import NDArray


def decode_image(encoded: NDArray[np.uint8], mode: int) -> NDArray[np.uint8] | None:
    """Return the pixels of an image file; None where it is none, which the caller has to tell.

    OpenCV would tell of it too, in lines of its log on stderr.

    Args:
        encoded: the file's bytes, (size,).
        mode: what OpenCV calls how to read it, such as `cv2.IMREAD_COLOR`.

    """
    if not encoded.size:
        return None
    logging = cv2.utils.logging
    level = logging.getLogLevel()
    logging.setLogLevel(logging.LOG_LEVEL_SILENT)
    try:
        return cast("NDArray[np.uint8] | None", cv2.imdecode(encoded, mode))
    finally:
        logging.setLogLevel(level)
