"""The 8-bit quantization of a float input that hybrid operators make for each invocation.

It is XNNPACK's: asymmetric, from the least and largest value and zero, one scale for the whole
input, or one for each pixel or row where the operator is a product of matrices.
"""

from __future__ import annotations

import numpy as np

from edgeflare.whitebox.array_library import jnp, lax
from edgeflare.whitebox.translation.rounding import rounded
from edgeflare.whitebox.translation.translated_operator import Array

_LEAST, _LARGEST = np.float32(-128.0), np.float32(127.0)


def dynamically_quantized(values: Array, *, by_row: bool) -> tuple[Array, Array]:
    """Quantize float values as XNNPACK does.

    The gradient passes straight through the rounding, and the range counts as a constant.

    Args:
        values: (..., channels) float32.
        by_row: whether each row along the last axis has a scale of its own.

    Returns:
        The values as whole numbers less their zero point, and the size of one unit, which
        broadcasts to them.

    """
    fixed = lax.stop_gradient(values)
    axes = -1 if by_row else tuple(range(values.ndim))
    least = jnp.minimum(fixed.min(axes, keepdims=True), 0.0)
    largest = jnp.maximum(fixed.max(axes, keepdims=True), 0.0)
    empty = least == largest
    steps = jnp.where(empty, 1.0, (_LARGEST - _LEAST) / jnp.where(empty, 1.0, largest - least))
    low, high = least * steps, largest * steps
    nearer = (_LEAST + low) + (_LARGEST + high) > 0.0
    zero_point = jnp.where(nearer, _LEAST - low, _LARGEST - high)
    zero_point = jnp.round(jnp.clip(zero_point, _LEAST, _LARGEST))
    raw = jnp.clip(rounded(values * steps) + zero_point, _LEAST, _LARGEST)
    return raw - zero_point, 1.0 / steps
