"""Operators on images: HWC, uint8, any size, 1, 3 or 4 channels.

OpenCV's threads are left as they are, since the setting is the whole process's and hardly matters:
up to 96 pixels a side no filter here is faster with two threads than with one, at 224 only the
largest Gaussian is.
"""

from edgeflare_operators.image.blur import average_blur, gaussian_blur, median_blur
from edgeflare_operators.image.noise import gaussian_noise, multiplicative_noise
from edgeflare_operators.image.pixels import pixel_change
from edgeflare_operators.image.salt_and_pepper import salt_and_pepper

__all__ = [
    "average_blur",
    "gaussian_blur",
    "gaussian_noise",
    "median_blur",
    "multiplicative_noise",
    "pixel_change",
    "salt_and_pepper",
]
