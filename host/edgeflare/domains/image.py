"""The domain of images: HWC, uint8, with 1, 3 or 4 channels."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Image = NDArray[np.uint8]
"""An image, HWC, uint8, with 1, 3 or 4 channels."""
