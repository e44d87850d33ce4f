"""The pictures and sounds that the package brings along, for models that come without inputs.

The pictures are of scikit-image, as `examples/face_detection` has them, at 64 × 64: `chelsea`,
`coffee`, `rocket`, `brick`, `coins`, `hubble_deep_field`, `gravel` and `astronaut`, which are in
the public domain or CC0. The sounds are four words that espeak-ng speaks, a second each at 8 kHz,
of `examples/spoken_words`.
"""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import Any, Final

import cv2
import numpy as np
from numpy.typing import NDArray

PICTURES: Final = 8
"""How many pictures there are."""

SOUNDS: Final = 4
"""How many sounds there are."""

_WITH_ALPHA: Final = 4
"""Channels of a picture with transparency."""


def sample_picture(at: int, height: int, width: int, channels: int) -> NDArray[np.float32]:
    """Return a picture, stretched to a size.

    Args:
        at: number of the sample, from 0.
        height: in pixels.
        width: in pixels.
        channels: 1 for brightness, 3 for red, green and blue, 4 with an opaque fourth one.

    Returns:
        From 0 to 1: (height, width, channels).

    """
    one = cv2.resize(_samples()["pictures"][at], (width, height), interpolation=cv2.INTER_LINEAR)
    if channels == 1:
        one = cv2.cvtColor(one, cv2.COLOR_RGB2GRAY)[..., None]
    if channels == _WITH_ALPHA:
        one = cv2.cvtColor(one, cv2.COLOR_RGB2RGBA)
    return np.asarray(one / 255, np.float32)


def sample_sound(at: int, values: int) -> NDArray[np.float32]:
    """Return a sound, stretched to a number of values.

    Args:
        at: number of the sample, from 0.
        values: how many values the sound has.

    Returns:
        From -1 to 1: (values,).

    """
    wave = _samples()["sounds"][at].astype(np.float32)
    places = np.linspace(0, len(wave) - 1, values)
    stretched = np.interp(places, np.arange(len(wave)), wave / np.abs(wave).max())
    return np.asarray(stretched, np.float32)


@cache
def _samples() -> dict[str, NDArray[Any]]:
    with files("edgeflare.check").joinpath("samples.npz").open("rb") as file:
        return dict(np.load(file))
