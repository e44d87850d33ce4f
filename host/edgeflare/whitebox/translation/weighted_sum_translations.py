"""CONV_2D, DEPTHWISE_CONV_2D and FULLY_CONNECTED: float, int8 and hybrid.

Quantized sums are computed in float32 from whole numbers, which is exact up to 2^24, and scaled by
one float32 factor for each channel, as XNNPACK does. Hybrid operators take float32 and have 8-bit
weights: their input is quantized for each invocation.

The 8-bit quantization of a float input that hybrid operators make for each invocation. It is
XNNPACK's: asymmetric, from the least and largest value and zero, one scale for the whole input, or
one for each pixel or row where the operator is a product of matrices.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from edgeflare.whitebox.array_library import jnp, lax
from edgeflare.whitebox.translation.rounding import activated, one_scale, requantized, rounded
from edgeflare.whitebox.translation.translated_operator import Array, TranslatedOperator

_LEAST, _LARGEST = np.float32(-128.0), np.float32(127.0)

PADDINGS = ("SAME", "VALID")
"""The paddings by their numbers in a file; jax knows them by these names."""

_Sum = Callable[[Array], Array]
"""The weighted sum of an input, without its bias."""


def convolution(one: TranslatedOperator, inputs: Sequence[Array]) -> Array:
    """Translate CONV_2D; where its weights read fewer channels than there are, in groups."""
    weights = np.transpose(_weights(one, inputs[1]), (1, 2, 3, 0))
    groups = one.inputs[0].shape[3] // weights.shape[2]
    one_pixel = weights.shape[:2] == (1, 1) and _strides(one) == (1, 1)
    return _weighted(one, inputs, _window_sum(one, weights, groups), by_pixel=one_pixel)


def depthwise_convolution(one: TranslatedOperator, inputs: Sequence[Array]) -> Array:
    """Translate DEPTHWISE_CONV_2D."""
    weights = np.transpose(_weights(one, inputs[1]), (1, 2, 0, 3))
    return _weighted(one, inputs, _window_sum(one, weights, one.inputs[0].shape[3]))


def fully_connected(one: TranslatedOperator, inputs: Sequence[Array]) -> Array:
    """Translate FULLY_CONNECTED."""
    weights = _weights(one, inputs[1])
    flat = inputs[0].reshape(-1, weights.shape[1])
    made = _weighted(
        one, [flat, *inputs[1:]], lambda given: jnp.dot(given, weights.T), by_pixel=True
    )
    return made.reshape(one.output.shape)


def _weighted(
    one: TranslatedOperator, inputs: Sequence[Array], add_up: _Sum, *, by_pixel: bool = False
) -> Array:
    """Return the raw output of an operator, given the sum that it makes of its input."""
    given, weights, output = one.inputs[0], one.inputs[1], one.output
    bias = inputs[2] if len(inputs) > 2 else np.float32(0.0)
    if output.dtype == "float32" and given.dtype == "float32":
        if not weights.scales:
            return activated(one, add_up(inputs[0]) + bias)
        values, units = _dynamically_quantized(inputs[0], by_row=by_pixel)
        return activated(one, add_up(values) * (units * _weight_scales(one)) + bias)
    scale = one_scale(one, given) * _weight_scales(one) / one_scale(one, output)
    sums = add_up(inputs[0] - np.float32(given.zero_points[0])) + bias
    return requantized(one, sums * scale)


def _weights(one: TranslatedOperator, raw: Array) -> NDArray[np.float32]:
    """Return constant weights without their zero point."""
    if not isinstance(raw, np.ndarray):
        one.refuse("its weights are no constant")
    weights = one.inputs[1]
    values: NDArray[np.float32] = raw.astype(np.float32)
    if not weights.scales:
        return values
    if weights.dtype not in ("int8", "uint8") or len(set(weights.zero_points)) > 1:
        one.refuse(f"its weights are {weights.type_name} with {len(weights.scales)} scales")
    values -= np.float32(weights.zero_points[0])
    return values


def _weight_scales(one: TranslatedOperator) -> NDArray[np.float32]:
    return np.asarray(one.inputs[1].scales, np.float32)


def _window_sum(
    one: TranslatedOperator,
    weights: NDArray[np.float32],
    groups: int,
) -> _Sum:
    """Return the sum over windows; `weights` are (height, width, channels in, channels out)."""
    options = one.options

    def add_up(given: Array) -> Array:
        return lax.conv_general_dilated(
            given,
            weights,
            window_strides=_strides(one),
            padding=PADDINGS[options["padding"]],
            rhs_dilation=(options["dilationHFactor"], options["dilationWFactor"]),
            dimension_numbers=("NHWC", "HWIO", "NHWC"),
            feature_group_count=groups,
        )

    return add_up


def _strides(one: TranslatedOperator) -> tuple[int, int]:
    return one.options["strideH"], one.options["strideW"]


def _dynamically_quantized(values: Array, *, by_row: bool) -> tuple[Array, Array]:
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
