from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from edgeflare.core.tensor import Layout, Tensor
from edgeflare.domains.image.image_tensor import ImageTensor, image_tensor
from edgeflare.domains.image.preprocess import ImageEncoder, preset


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
