"""The inputs of models that take images."""

from __future__ import annotations

from edgeflare.core.tensor import Tensor
from edgeflare.errors import UserError

CHANNELS = (1, 3, 4)
"""Numbers of channels that an image may have."""


def image_shape(tensor: Tensor, model: str = "the model") -> tuple[int, int, int]:
    """Return (height, width, channels) of the images that an input takes.

    Raises:
        UserError: the input is neither (1, H, W, C) with 1, 3 or 4 channels, nor (1, H, W).

    """
    shape = tensor.shape
    if len(shape) == 3:
        shape = (*shape, 1)
    if len(shape) != 4 or shape[0] != 1 or shape[3] not in CHANNELS or min(shape) < 1:
        raise UserError(
            f"{model}: input {tensor.name!r} has shape {tensor.shape}; an image model takes one "
            "image at a time, (1, height, width, channels) with 1, 3 or 4 channels: convert it "
            "with a fixed batch size of 1"
        )
    return shape[1], shape[2], shape[3]
