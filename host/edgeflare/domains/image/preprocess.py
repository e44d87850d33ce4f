"""How images become the input of a model: channels last (NHWC) or first (NCHW), and preprocessing.

Of 8-bit pixels, input = (pixel / scale - mean) / std, which is then quantized. A pixel has 256
values, so preprocessing and quantization together are a table of 256 entries for each channel:
exact, and the same for every arm.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from math import isfinite
from typing import Literal

import cv2
import numpy as np
from numpy.typing import NDArray

from edgeflare.core.tensor import Layout, Rounding, Tensor, quantize
from edgeflare.errors import UserError, suggestion
from edgeflare.record.json_types import JsonValue

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


Resize = Literal["none", "stretch", "center-crop"]
Channels = Literal["rgb", "bgr"]


@dataclass(frozen=True, slots=True)
class Preprocess:
    """How images become inputs: input = (pixel / scale - mean) / std.

    Attributes:
        scale: what pixels, 0 to 255, are divided by.
        mean: one value, or one for each channel in the model's own channel order.
        std: one value, or one for each channel in the model's own channel order.
        resize: how seeds of another size are brought to the model's; once, before the search.
        channels: the model's own channel order; seeds are RGB.
        layout: layout of models whose input may have its channels last or first, by its shape; None
            where nothing is said of them, see `image_tensor`.
        rounding: rounding of inputs that are quantized, see `quantize`.

    """

    scale: float = 255.0
    mean: tuple[float, ...] = (0.0,)
    std: tuple[float, ...] = (1.0,)
    resize: Resize = "none"
    channels: Channels = "rgb"
    layout: Layout | None = None
    rounding: Rounding = "half-away"

    def __post_init__(self) -> None:
        for key, values in (("scale", (self.scale,)), ("mean", self.mean), ("std", self.std)):
            if not values or not all(isfinite(value) for value in values):
                raise UserError(f"preprocess: {key} has to be finite numbers, not {list(values)}")
            if key != "mean" and min(values) <= 0:
                raise UserError(f"preprocess: {key} has to be above 0, not {list(values)}")

    def to_json(self) -> dict[str, JsonValue]:
        """Return this as plain JSON values; layout and rounding only where something is said."""
        fields = asdict(self)
        if self.layout is None:
            del fields["layout"]
        if self.rounding == "half-away":
            del fields["rounding"]
        return fields

    def table(self, channels: int) -> NDArray[np.float32]:
        """Return the inputs of all pixel values: (256, channels), in the model's channel order.

        Raises:
            UserError: mean or std has neither one value nor one for each channel.

        """
        for key, values in (("mean", self.mean), ("std", self.std)):
            if len(values) not in (1, channels):
                raise UserError(
                    f"preprocess: {key} has {len(values)} values, but the model takes {channels} "
                    f"channel{'s: give 1 or ' + str(channels) if channels > 1 else ': give 1'}"
                )
        pixels = np.arange(256, dtype=np.float64)[:, None]
        inputs = (pixels / self.scale - np.array(self.mean)) / np.array(self.std)
        return np.broadcast_to(inputs, (256, channels)).astype(np.float32)


PRESETS = {
    "unit": Preprocess(),
    "raw": Preprocess(scale=1.0),
    "signed": Preprocess(scale=127.5, mean=(1.0,)),
    "imagenet": Preprocess(mean=(0.485, 0.456, 0.406), std=(0.229, 0.224, 0.225)),
    "caffe": Preprocess(scale=1.0, mean=(103.939, 116.779, 123.68), channels="bgr"),
}
"""Preprocessing by name: inputs in 0..1, in 0..255, in -1..1; torchvision's; Caffe's."""


def preset(name: str) -> Preprocess:
    """Return the preprocessing of that name.

    Raises:
        UserError: there is none.

    """
    if name not in PRESETS:
        raise UserError(
            f"preprocess: there is no preset {name!r}{suggestion(name, PRESETS)}; presets are "
            + ", ".join(PRESETS)
        )
    return PRESETS[name]


_OPENCV_TYPES = ("float32", "float64", "int8", "uint8", "int16", "uint16", "int32")
"""Types of tables that every version of OpenCV reads; it takes int64 for int32."""


class ImageEncoder:
    """Encodes images as a model's input, by one table look-up for each pixel."""

    def __init__(self, preprocess: Preprocess, tensor: Tensor) -> None:
        """Make the tables.

        Raises:
            UserError: the input takes no images, its layout has to be said, or mean or std does not
                fit its channels.

        """
        self.tensor = tensor
        self._held = image_tensor(tensor, preprocess.layout)
        self._shape = self._held.shape
        channels = self._shape[2]
        table = quantize(preprocess.table(channels), tensor, preprocess.rounding)
        as_they_are = preprocess.channels == "rgb" or channels == 1
        self._order = None if as_they_are else [2, 1, 0, 3][:channels]
        self._slope = np.broadcast_to(1.0 / (preprocess.scale * np.array(preprocess.std)), channels)
        uniform = bool((table == table[:, :1]).all())
        self._row = (self._shape[1] * channels,) if uniform else self._shape[1:]
        self._table = (table[:, 0] if uniform else table).reshape(1, 256, -1).copy()

    def describe(self) -> str:
        """Return what the model is given: shape, type, layout, and the numbers of a pixel."""
        black, white = (
            ", ".join(f"{value:.4g}" for value in self._table[0, pixel]) for pixel in (0, 255)
        )
        return (
            f"{self.tensor.shape} {self.tensor.dtype}, channels"
            f" {'first (NCHW)' if self._held.layout == 'NCHW' else 'last (NHWC)'}; black is given"
            f" as {black} and white as {white}"
        )

    def encode(self, images: NDArray[np.uint8]) -> NDArray[np.generic]:
        """Encode images.

        Args:
            images: (batch, H, W, C), uint8, RGB.

        Returns:
            (batch, *input shape without its batch dimension), C-contiguous, in the input's dtype.

        Raises:
            UserError: the images are not of the model's size.

        """
        if images.shape[1:] != self._shape:
            raise UserError(
                f"input {self.tensor.name!r} takes images of {self._shape} (height, width, "
                f"channels), but these are {images.shape[1:]}: both models have to take images of "
                "one size, to which resize brings the seeds"
            )
        batch = len(images)
        if self._order is not None:
            images = images[..., self._order]
        if not batch:
            return np.empty((0, *self.tensor.shape[1:]), self.tensor.dtype)
        rows = np.ascontiguousarray(images).reshape(batch * self._shape[0], *self._row)
        encoded = self._looked_up(rows).reshape(batch, *self._shape)
        return self._held.arranged(encoded).reshape(batch, *self.tensor.shape[1:])

    def _looked_up(self, rows: NDArray[np.uint8]) -> NDArray[np.generic]:
        """Return the inputs of pixels: of rows without channels, or with all of them."""
        if self.tensor.dtype in _OPENCV_TYPES:  # 2 to 3 times as fast as numpy
            return cv2.LUT(rows, self._table)
        (table,) = self._table
        channels = table.shape[1]
        return np.asarray(table[rows, 0 if channels == 1 else np.arange(channels)])

    def pulled_back(self, gradient: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return a gradient by pixels; see `DifferentiableEncoder`."""
        by_pixel = self._held.as_image(gradient) * self._slope
        if self._order is None:
            return by_pixel
        ordered = np.empty_like(by_pixel)
        ordered[..., self._order] = by_pixel
        return ordered
