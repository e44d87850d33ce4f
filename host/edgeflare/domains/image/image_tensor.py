"""The inputs of models that take images, with channels last (NHWC) or first (NCHW)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from edgeflare.core.tensor import Layout, Tensor
from edgeflare.errors import UserError

CHANNELS = (1, 3, 4)
"""Numbers of channels that an image may have."""


@dataclass(frozen=True, slots=True)
class ImageTensor:
    """How an input of a model holds an image.

    Attributes:
        shape: (height, width, channels) of the images.
        layout: layout of the input.

    """

    shape: tuple[int, int, int]
    layout: Layout = "NHWC"

    @property
    def channel_axis(self) -> int:
        """The axis of the channels in a batch of inputs."""
        return 1 if self.layout == "NCHW" else 3

    def arranged(self, images: NDArray[np.generic]) -> NDArray[np.generic]:
        """Return images, (batch, H, W, C), in the layout of the input; C-contiguous."""
        if self.layout == "NCHW":
            images = images.transpose(0, 3, 1, 2)
        return np.ascontiguousarray(images)

    def as_image(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the values of one input of the model as an image has them, (H, W, C)."""
        height, width, channels = self.shape
        if self.layout == "NHWC":
            return values.reshape(self.shape)
        by_channel: NDArray[np.float64] = values.reshape(channels, height, width)
        return np.transpose(by_channel, (1, 2, 0))


def image_tensor(
    tensor: Tensor, layout: Layout | None = None, model: str = "the model"
) -> ImageTensor:
    """Return how an input holds an image, by its shape.

    Args:
        tensor: (1, H, W, C) or (1, C, H, W) with 1, 3 or 4 channels, or (1, H, W).
        layout: is taken where the shape may be either. Unless given, these have their channels
            last, as TensorFlow writes them.
        model: what the user calls the model, for messages.

    Raises:
        UserError: the input has another shape; or it is (1, 3, 3, 3) or (1, 4, 4, 4), which no
            size of seeds tells apart, and no layout is given.

    """
    batch, *sizes = tensor.shape or (0,)
    if len(sizes) == 2:
        sizes = [*sizes, 1]
    if batch != 1 or len(sizes) != 3 or min(sizes) < 1:
        raise UserError(f"{_expected(tensor, model)}: {_advice(tensor)}")
    first, second, third = sizes
    readings: dict[Layout, ImageTensor] = {}
    if third in CHANNELS:
        readings["NHWC"] = ImageTensor((first, second, third))
    if first in CHANNELS and len(tensor.shape) == 4:
        readings["NCHW"] = ImageTensor((second, third, first), "NCHW")
    if not readings:
        raise UserError(f"{_expected(tensor, model)}: {_advice(tensor)}")
    if layout is None and len(readings) == 2 and first == second == third > 1:
        raise UserError(
            f"{model}: input {tensor.name!r} has shape {tensor.shape}, which does not say whether"
            ' its channels come last or first: say layout = "NHWC" or layout = "NCHW" under'
            " [preprocess] or [inputs.NAME]"
        )
    return readings[layout] if layout in readings else next(iter(readings.values()))


def _expected(tensor: Tensor, model: str) -> str:
    return (
        f"{model}: input {tensor.name!r} has shape {tensor.shape}; an image model takes one image"
        " at a time, (1, height, width, channels) or (1, channels, height, width), with 1, 3 or 4"
        " channels"
    )


def _advice(tensor: Tensor) -> str:
    sizes = tensor.shape
    if len(sizes) in (3, 4) and sizes[0] != 1:
        return "convert it with a fixed batch size of 1"
    return 'its inputs are no images: say domain = "array", with seeds of its shape'
