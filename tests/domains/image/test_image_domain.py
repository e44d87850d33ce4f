from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from edgeflare.core.input_view import ImageView
from edgeflare.domains.image.image_domain import ImageDomain
from edgeflare_operators.operator_registry import Image

IMAGES = st.tuples(st.integers(1, 9), st.integers(1, 9), st.sampled_from([1, 3, 4])).flatmap(
    lambda shape: arrays(np.uint8, shape)
)


@given(image=IMAGES)
def test_a_file_keeps_an_image_to_the_bit(image: Image) -> None:
    kept = ImageDomain.decode_file(ImageDomain.encode_file(image))
    assert kept is not None
    assert np.array_equal(kept, image)
    view = ImageDomain().view_file(ImageDomain.encode_file(image))
    assert isinstance(view, ImageView)
    assert np.array_equal(view.pixels, image)


@pytest.mark.parametrize("data", [b"", b"no image", b"\x89PNG\r\n\x1a\n"])
def test_what_is_no_image_is_none(data: bytes) -> None:
    assert ImageDomain.decode_file(data) is None
    assert ImageDomain().view_file(data) is None
