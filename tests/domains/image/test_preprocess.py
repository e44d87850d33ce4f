"""How images become the inputs of a model."""

from __future__ import annotations

from collections.abc import Callable
from decimal import ROUND_HALF_UP, Decimal
from typing import Any, get_args

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.typing import NDArray

from edgeflare.core.tensor import Layout, Rounding, Tensor, dequantize, quantize
from edgeflare.domains.domain_registry import find_domain
from edgeflare.domains.image.preprocess import (
    PRESETS,
    Channels,
    ImageEncoder,
    ImageTensor,
    Preprocess,
    image_tensor,
    preset,
)


def read(shape: tuple[int, ...], layout: Layout | None = None) -> ImageTensor:
    return image_tensor(Tensor("image", shape, "float32"), layout)


@pytest.mark.parametrize(
    ("shape", "advice"),
    [
        ((8, 16, 16, 3), "a fixed batch size of 1"),
        ((8, 3, 16, 16), "a fixed batch size of 1"),
        ((1, 16, 16, 7), 'say domain = "array"'),
        ((1, 7, 16, 16), 'say domain = "array"'),
        ((1, 12), 'say domain = "array"'),
        ((1, 3, 3, 3), 'say layout = "NHWC" or layout = "NCHW"'),
    ],
)
def test_a_refused_shape_is_told_what_to_do(
    shape: tuple[int, ...], advice: str, refusal: Callable[..., str]
) -> None:
    assert advice in refusal(read, shape)


@pytest.mark.parametrize(
    ("shape", "layout", "image", "taken"),
    [
        ((1, 16, 12), None, (16, 12, 1), "NHWC"),
        ((1, 16, 12, 3), None, (16, 12, 3), "NHWC"),
        ((1, 16, 12, 3), "NCHW", (16, 12, 3), "NHWC"),
        ((1, 1, 16, 12), None, (16, 12, 1), "NCHW"),
        ((1, 4, 16, 12), "NHWC", (16, 12, 4), "NCHW"),
        ((1, 3, 4, 4), None, (3, 4, 4), "NHWC"),
        ((1, 3, 4, 4), "NCHW", (4, 4, 3), "NCHW"),
        ((1, 3, 3, 3), "NCHW", (3, 3, 3), "NCHW"),
        ((1, 1, 1, 1), None, (1, 1, 1), "NHWC"),
    ],
)
def test_a_layout_is_told_by_the_channels_and_said_where_it_may_be_either(
    shape: tuple[int, ...], layout: Layout | None, image: tuple[int, ...], taken: Layout
) -> None:
    assert read(shape, layout) == ImageTensor(image, taken)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["unit", "caffe"])
def test_channels_first_is_the_same_image_in_another_order(name: str) -> None:
    rng = np.random.default_rng(0)
    images = rng.integers(0, 256, (2, 5, 6, 3)).astype(np.uint8)
    last, first = (
        ImageEncoder(preset(name), Tensor("image", shape, "int8", 0.02, 3))
        for shape in ((1, 5, 6, 3), (1, 3, 5, 6))
    )
    encoded = first.encode(images)
    assert encoded.flags.c_contiguous
    np.testing.assert_array_equal(encoded.transpose(0, 2, 3, 1), last.encode(images))
    gradient = rng.normal(size=(5, 6, 3))
    np.testing.assert_array_equal(
        first.pulled_back(np.ascontiguousarray(gradient.transpose(2, 0, 1))),
        last.pulled_back(gradient),
    )


positive = st.floats(0.01, 300.0)
dtypes = st.sampled_from(["int8", "uint8"])


@st.composite
def preprocessings(draw: st.DrawFn, channels: int) -> Preprocess:
    values = st.one_of(st.just(1), st.just(channels))
    mean = draw(values.flatmap(lambda n: st.tuples(*[st.floats(-5, 5)] * n)))
    std = draw(values.flatmap(lambda n: st.tuples(*[positive] * n)))
    order: Channels = draw(st.sampled_from(["rgb", "bgr"]))
    return Preprocess(draw(positive), mean, std, channels=order)


@given(st.data(), st.sampled_from([1, 3, 4]), dtypes)
def test_encoding_is_the_formula(data: st.DataObject, channels: int, dtype: str) -> None:
    preprocess = data.draw(preprocessings(channels))
    images = data.draw(arrays(np.uint8, (2, 3, 2, channels)))
    ordered = images
    if preprocess.channels == "bgr" and channels > 1:
        ordered = images[..., [2, 1, 0, 3][:channels]]
    inputs = (ordered.astype(np.float64) / preprocess.scale - preprocess.mean) / preprocess.std

    real = Tensor("image", (1, 3, 2, channels), "float32")
    encoded = ImageEncoder(preprocess, real).encode(images)
    assert encoded.dtype == np.float32
    assert encoded.flags.c_contiguous
    np.testing.assert_array_equal(encoded, inputs.astype(np.float32))

    zero_point = 3 if dtype == "int8" else 131
    quantized = Tensor("image", (1, 3, 2, channels), dtype, 0.02, zero_point)
    encoded = ImageEncoder(preprocess, quantized).encode(images)
    assert encoded.dtype == np.dtype(dtype)
    np.testing.assert_array_equal(encoded, quantize(inputs.astype(np.float32), quantized))


@given(st.floats(2**-13, 2.0, width=32), st.integers(-128, 127), dtypes, st.data())
def test_quantizing_and_back_is_half_a_step_off_at_most(
    scale: float, zero_point: int, dtype: str, data: st.DataObject
) -> None:
    if dtype == "uint8":
        zero_point += 128
    tensor = Tensor("x", (1, 2, 2, 1), dtype, scale, zero_point)
    limits = np.iinfo(dtype)
    low, high = (limits.min - zero_point) * scale, (limits.max - zero_point) * scale
    x = np.float32(data.draw(st.floats(low, high)))
    back = dequantize(quantize(np.array([x], np.float32), tensor), tensor)[0]
    assert abs(back - x) <= scale / 2 * (1 + 1e-4)


@given(st.integers(-600, 600), dtypes, st.integers(0, 100))
def test_halves_round_away_from_zero_and_what_is_outside_is_clipped(
    halves: int, dtype: str, zero_point: int
) -> None:
    tensor = Tensor("x", (1, 2, 2, 1), dtype, 0.25, zero_point)
    expected = int((Decimal(halves) / 2).to_integral_value(ROUND_HALF_UP)) + zero_point
    limits = np.iinfo(dtype)
    raw = quantize(np.array([halves * 0.125], np.float32), tensor)
    assert raw[0] == min(max(expected, limits.min), limits.max)


@pytest.mark.parametrize(
    ("rounding", "halves", "others"),
    [
        ("half-away", [-129, -128, -126, -125, -124], [-127, -126]),
        ("half-even", [-128, -128, -126, -126, -124], [-127, -126]),
        ("truncate", [-128, -127, -126, -125, -124], [-126, -125]),
    ],
)
def test_rounding_is_that_of_the_code_that_quantizes(
    rounding: Rounding, halves: list[int], others: list[int]
) -> None:
    tensor = Tensor("x", (1, 5), "int8", 0.25, -126)
    steps = np.array([-2.5, -1.5, 0.0, 0.5, 1.5], np.float32)
    expected = np.maximum(halves, -128)
    np.testing.assert_array_equal(quantize(steps * 0.25, tensor, rounding), expected)
    near = np.array([-0.6, 0.4], np.float32) * 0.25
    np.testing.assert_array_equal(quantize(near, tensor, rounding), others)


@pytest.mark.parametrize(("dtype", "zero_point"), [("uint8", 127), ("uint8", 128), ("int8", -1)])
@pytest.mark.parametrize(("name", "whole"), [("half-even", np.round), ("truncate", np.trunc)])
def test_pixels_between_two_steps_are_rounded_as_numpy_rounds_them(
    dtype: str, zero_point: int, name: Rounding, whole: Callable[[Any], Any]
) -> None:
    """Of pixels from -1 to 1 and the scale 2/255 every one lies between two steps."""
    for pixels in (PRESETS["signed"].table(1), PRESETS["unit"].table(1)):
        scale, limits = float(np.float32(2 / 255)), np.iinfo(dtype)
        steps = np.clip(whole(pixels / scale + zero_point), limits.min, limits.max)
        made = quantize(pixels, Tensor("x", (1, 256), dtype, scale, zero_point), name)
        np.testing.assert_array_equal(made, steps.astype(dtype))


@pytest.mark.parametrize(
    ("domain", "settings", "shape", "inputs"),
    [
        ("image", {"preset": "raw"}, (1, 2, 5, 1), np.ones((1, 2, 5, 1), np.uint8)),
        ("frames", {"preset": "raw"}, (2, 1, 2, 5, 1), np.ones((1, 2, 2, 5, 1), np.uint8)),
        ("array", {}, (1, 4), np.ones((1, 4), np.float32)),
        ("audio", {}, (1, 4), np.full((1, 4), 16384, np.int16)),
    ],
)
def test_every_domain_rounds_as_it_is_told(
    domain: str, settings: dict[str, Any], shape: tuple[int, ...], inputs: NDArray[Any]
) -> None:
    tensor = Tensor("x", shape, "uint8", 1.0 if domain == "audio" else 2.0, 4)
    made = {
        rounding: find_domain(domain, {**settings, "rounding": rounding}).encoder(tensor)
        for rounding in get_args(Rounding)
    }
    encoded = {name: set(one.encode(inputs).ravel().tolist()) for name, one in made.items()}
    assert encoded == {"half-away": {5}, "half-even": {4}, "truncate": {4}}


@given(arrays(np.int8, (7,)), st.floats(2**-13, 2.0, width=32), st.integers(-128, 127))
def test_dequantizing_and_back_changes_nothing(
    raw: np.ndarray[tuple[int], np.dtype[np.int8]], scale: float, zero_point: int
) -> None:
    tensor = Tensor("x", (1, 7), "int8", scale, zero_point)
    real = dequantize(raw, tensor).astype(np.float32)
    np.testing.assert_array_equal(quantize(real, tensor), raw)


def test_an_integer_input_without_quantization_takes_the_rounded_values() -> None:
    tensor = Tensor("image", (1, 1, 4, 1), "uint8")
    images = np.array([0, 7, 200, 255], np.uint8).reshape(1, 1, 4, 1)
    np.testing.assert_array_equal(ImageEncoder(preset("raw"), tensor).encode(images), images)


@pytest.mark.parametrize("dtype", ["float16", "uint32", "int64", "uint64", "bool"])
@pytest.mark.parametrize("name", ["raw", "imagenet"])
def test_inputs_of_types_that_opencv_does_not_know_are_encoded_likewise(
    dtype: str, name: str
) -> None:
    images = np.arange(24, dtype=np.uint8).reshape(1, 2, 4, 3) * 10
    made = ImageEncoder(preset(name), Tensor("image", (1, 2, 4, 3), dtype)).encode(images)
    real = ImageEncoder(preset(name), Tensor("image", (1, 2, 4, 3), "float32")).encode(images)
    assert made.dtype == dtype
    np.testing.assert_array_equal(
        made, quantize(real.astype(np.float32), Tensor("image", (1, 2, 4, 3), dtype))
    )


def test_an_input_without_a_channel_dimension_takes_gray_images() -> None:
    encoder = ImageEncoder(Preprocess(), Tensor("image", (1, 2, 3), "float32"))
    assert encoder.encode(np.full((4, 2, 3, 1), 255, np.uint8)).shape == (4, 2, 3)
    assert encoder.encode(np.empty((0, 2, 3, 1), np.uint8)).shape == (0, 2, 3)


@pytest.mark.parametrize(
    ("name", "black", "white"),
    [
        ("unit", [0, 0, 0], [1, 1, 1]),
        ("raw", [0, 0, 0], [255, 255, 255]),
        ("signed", [-1, -1, -1], [1, 1, 1]),
        ("imagenet", [-2.1179, -2.0357, -1.8044], [2.2489, 2.4286, 2.64]),
        ("caffe", [-103.939, -116.779, -123.68], [151.061, 138.221, 131.32]),
    ],
)
def test_presets(name: str, black: list[float], white: list[float]) -> None:
    table = preset(name).table(3)
    np.testing.assert_allclose(table[[0, 255]], [black, white], atol=1e-4)
    assert name in PRESETS


def test_refuses_what_does_not_fit(refusal: Callable[..., str]) -> None:
    gray, color = (Tensor("image", (1, 4, 5, c), "float32") for c in (1, 3))
    message = refusal(ImageEncoder(Preprocess(), color).encode, np.zeros((2, 8, 9, 3), np.uint8))
    assert "(4, 5, 3)" in message
    assert "(8, 9, 3)" in message
    assert "resize" in message
    assert "mean has 3 values" in refusal(ImageEncoder, preset("imagenet"), gray)
    assert "std" in refusal(Preprocess, std=(0.0,))
    assert "scale" in refusal(Preprocess, scale=0.0)
    assert "mean" in refusal(Preprocess, mean=(float("nan"),))
    assert "did you mean 'imagenet'" in refusal(preset, "imagnet")
