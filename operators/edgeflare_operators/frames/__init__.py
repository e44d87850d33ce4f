"""Operators on clips: (frames, H, W, C), uint8, with 1, 3 or 4 channels.

Those of the domain `image` go by the same names here; what else there is concerns time.
"""

from edgeflare_operators.frames.frame_order import dropped_frame, jitter, swapped_frames
from edgeflare_operators.frames.framewise import (
    average_blur,
    gaussian_blur,
    gaussian_noise,
    median_blur,
    multiplicative_noise,
    pixel_change,
    salt_and_pepper,
)

__all__ = [
    "average_blur",
    "dropped_frame",
    "gaussian_blur",
    "gaussian_noise",
    "jitter",
    "median_blur",
    "multiplicative_noise",
    "pixel_change",
    "salt_and_pepper",
    "swapped_frames",
]
