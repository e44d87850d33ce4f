"""The operators that have a differentiable translation: functions that compute what XNNPACK does.

Quantized sums are computed in float32 from whole numbers, which is exact up to 2^24, and scaled by
one float32 factor for each channel, as XNNPACK does. Hybrid operators take float32 and have 8-bit
weights: their input is quantized for each invocation. That quantization is XNNPACK's: asymmetric,
from the least and largest value and zero, one scale for the whole input, or one for each pixel or
row where the operator is a product of matrices.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import prod
from typing import Final

import numpy as np
from numpy.typing import NDArray

from edgeflare.whitebox.array_library import jax, jnp, lax
from edgeflare.whitebox.operator_translation import (
    Array,
    TranslatedOperator,
    Translation,
    activated,
    clipped,
    one_scale,
    requantized,
    rounded,
    straight_through,
)

_LEAST, _LARGEST = np.float32(-128.0), np.float32(127.0)

_PADDINGS = ("SAME", "VALID")
"""The paddings by their numbers in a file; jax knows them by these names."""

_Sum = Callable[[Array], Array]
"""The weighted sum of an input, without its bias."""


def convolution(operator: TranslatedOperator, inputs: Sequence[Array]) -> Array:
    """Translate CONV_2D; where its weights read fewer channels than there are, in groups."""
    weights = jnp.transpose(_weights(operator, inputs[1]), (1, 2, 3, 0))
    groups = operator.inputs[0].shape[3] // weights.shape[2]
    one_pixel = weights.shape[:2] == (1, 1) and _strides(operator) == (1, 1)
    return _weighted(operator, inputs, _window_sum(operator, weights, groups), by_pixel=one_pixel)


def depthwise_convolution(operator: TranslatedOperator, inputs: Sequence[Array]) -> Array:
    """Translate DEPTHWISE_CONV_2D."""
    weights = jnp.transpose(_weights(operator, inputs[1]), (1, 2, 0, 3))
    return _weighted(operator, inputs, _window_sum(operator, weights, operator.inputs[0].shape[3]))


def fully_connected(operator: TranslatedOperator, inputs: Sequence[Array]) -> Array:
    """Translate FULLY_CONNECTED."""
    weights = _weights(operator, inputs[1])
    flat = inputs[0].reshape(-1, weights.shape[1])
    made = _weighted(
        operator, [flat, *inputs[1:]], lambda given: jnp.dot(given, weights.T), by_pixel=True
    )
    return made.reshape(operator.output.shape)


def _weighted(
    operator: TranslatedOperator, inputs: Sequence[Array], add_up: _Sum, *, by_pixel: bool = False
) -> Array:
    """Return the raw output of an operator, given the sum that it makes of its input."""
    given, weights, output = operator.inputs[0], operator.inputs[1], operator.output
    bias = inputs[2] if len(inputs) > 2 else np.float32(0.0)
    if output.dtype == "float32" and given.dtype == "float32":
        if not weights.scales:
            return activated(operator, add_up(inputs[0]) + bias)
        values, units = _dynamically_quantized(inputs[0], by_row=by_pixel)
        return activated(operator, add_up(values) * (units * _weight_scales(operator)) + bias)
    scale = one_scale(operator, given) * _weight_scales(operator) / one_scale(operator, output)
    sums = add_up(inputs[0] - np.float32(given.zero_points[0])) + bias
    return requantized(operator, sums * scale)


def _weights(operator: TranslatedOperator, raw: Array) -> Array:
    """Return weights, constants or what takes the place of such, without their zero point."""
    weights = operator.inputs[1]
    if not (weights.constant or isinstance(raw, np.ndarray)):
        operator.refuse("its weights are no constant")
    values = raw.astype(np.float32)
    if not weights.scales:
        return values
    if weights.dtype not in ("int8", "uint8") or len(set(weights.zero_points)) > 1:
        operator.refuse(f"its weights are {weights.type_name} with {len(weights.scales)} scales")
    return values - np.float32(weights.zero_points[0])


def _weight_scales(operator: TranslatedOperator) -> NDArray[np.float32]:
    return np.asarray(operator.inputs[1].scales, np.float32)


def _window_sum(
    operator: TranslatedOperator,
    weights: Array,
    groups: int,
) -> _Sum:
    """Return the sum over windows; `weights` are (height, width, channels in, channels out)."""
    options = operator.options

    def add_up(given: Array) -> Array:
        return lax.conv_general_dilated(
            given,
            weights,
            window_strides=_strides(operator),
            padding=_PADDINGS[options["padding"]],
            rhs_dilation=(options["dilationHFactor"], options["dilationWFactor"]),
            dimension_numbers=("NHWC", "HWIO", "NHWC"),
            feature_group_count=groups,
        )

    return add_up


def _strides(operator: TranslatedOperator) -> tuple[int, int]:
    return operator.options["strideH"], operator.options["strideW"]


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


def max_pool(operator: TranslatedOperator, inputs: Sequence[Array]) -> Array:
    """Translate MAX_POOL_2D, whose input and output have one quantization."""
    made = lax.reduce_window(inputs[0], -jnp.inf, lax.max, *_window(operator))
    return clipped(operator, made) if operator.quantized else activated(operator, made)


def average_pool(operator: TranslatedOperator, inputs: Sequence[Array]) -> Array:
    """Translate AVERAGE_POOL_2D; quantized means round halves away from zero, as built-in kernels.

    XNNPACK has no such kernel for int8, and leaves it to those.
    """
    sums = lax.reduce_window(inputs[0], 0.0, lax.add, *_window(operator))
    counts = lax.reduce_window(jnp.ones_like(inputs[0][..., :1]), 0.0, lax.add, *_window(operator))
    if not operator.quantized:
        return activated(operator, sums / counts)
    half = jnp.floor(counts / 2)
    up, down = jnp.floor((sums + half) / counts), jnp.ceil((sums - half) / counts)
    return clipped(operator, straight_through(sums / counts, jnp.where(sums > 0, up, down)))


def mean(operator: TranslatedOperator, inputs: Sequence[Array]) -> Array:
    """Translate MEAN."""
    given, shape = operator.inputs[0], operator.output.shape
    axes = tuple(int(axis) % len(given.shape) for axis in np.atleast_1d(inputs[1]))
    if not operator.quantized:
        return inputs[0].mean(axes).reshape(shape)
    sums = (inputs[0] - np.float32(given.zero_points[0])).sum(axes)
    count = np.float32(prod(given.shape[axis] for axis in axes))
    scale = one_scale(operator, given) / one_scale(operator, operator.output) / count
    return requantized(operator, sums * scale).reshape(shape)


def _window(operator: TranslatedOperator) -> tuple[tuple[int, ...], tuple[int, ...], str]:
    options = operator.options
    return (
        (1, options["filterHeight"], options["filterWidth"], 1),
        (1, options["strideH"], options["strideW"], 1),
        _PADDINGS[options["padding"]],
    )


def quantize(operator: TranslatedOperator, inputs: Sequence[Array]) -> Array:
    """Translate QUANTIZE, from float32 or from another quantization."""
    given, unit = operator.inputs[0], one_scale(operator, operator.output)
    if not given.scales:
        return requantized(operator, inputs[0] / unit)
    return requantized(
        operator, (inputs[0] - given.zero_points[0]) * (one_scale(operator, given) / unit)
    )


def dequantize(operator: TranslatedOperator, inputs: Sequence[Array]) -> Array:
    """Translate DEQUANTIZE."""
    given = operator.inputs[0]
    if not given.scales:
        return jnp.asarray(inputs[0], jnp.float32)
    return (inputs[0] - given.zero_points[0]) * one_scale(operator, given)


def reshape(operator: TranslatedOperator, inputs: Sequence[Array]) -> Array:
    """Translate RESHAPE, whose output has the shape that the file declares."""
    return inputs[0].reshape(operator.output.shape)


def transpose(_: TranslatedOperator, inputs: Sequence[Array]) -> Array:
    """Translate TRANSPOSE, as of inputs with channels first, whose order of axes is a constant."""
    return jnp.transpose(inputs[0], np.asarray(inputs[1]).tolist())


def concatenation(operator: TranslatedOperator, inputs: Sequence[Array]) -> Array:
    """Translate CONCATENATION of activations, whose inputs and output have one quantization."""
    made = jnp.concatenate(inputs, operator.options["axis"])
    return clipped(operator, made) if operator.quantized else activated(operator, made)


def split(operator: TranslatedOperator, inputs: Sequence[Array]) -> Array:
    """Translate SPLIT into equal parts, whose axis is a constant."""
    axis = int(np.asarray(inputs[0]).ravel()[0])
    return jnp.split(inputs[1], operator.options["numSplits"], axis)[operator.at]


def pad(operator: TranslatedOperator, inputs: Sequence[Array]) -> Array:
    """Translate PAD, which fills with zeros."""
    zero = operator.output.zero_points[0] if operator.quantized else 0.0
    widths = np.asarray(inputs[1]).tolist()
    return jnp.pad(inputs[0], widths, constant_values=zero)


_FRACTION_BITS = 20
"""Bits of the larger factor of XNNPACK's sum of two quantized values."""


def add(operator: TranslatedOperator, inputs: Sequence[Array]) -> Array:
    """Translate ADD."""
    return _signed_sum(operator, inputs, (1, 1))


def subtract(operator: TranslatedOperator, inputs: Sequence[Array]) -> Array:
    """Translate SUB."""
    return _signed_sum(operator, inputs, (1, -1))


def _signed_sum(
    operator: TranslatedOperator, inputs: Sequence[Array], signs: tuple[int, int]
) -> Array:
    """Return the sum of two inputs; a quantized one in fixed point, as XNNPACK computes it."""
    if not operator.quantized:
        return activated(operator, signs[0] * inputs[0] + signs[1] * inputs[1])
    unit = one_scale(operator, operator.output)
    factors = [one_scale(operator, tensor) / unit for tensor in operator.inputs]
    shift = _FRACTION_BITS - int(np.floor(np.log2(max(factors))))
    factors = [sign * factor for sign, factor in zip(signs, factors, strict=True)]
    whole = [int(np.rint(factor * 2.0**shift)) for factor in factors]
    zeros = [tensor.zero_points[0] for tensor in operator.inputs]
    exact, real = np.int32(1 << (shift - 1)), np.float32(0.0)
    for raw, factor, times, zero_point in zip(inputs, factors, whole, zeros, strict=True):
        exact += lax.stop_gradient(raw).astype(jnp.int32) * times - np.int32(times * zero_point)
        real += (raw - zero_point) * factor
    rounded_down = jnp.right_shift(exact, shift).astype(jnp.float32)
    return clipped(operator, straight_through(real, rounded_down) + operator.output.zero_points[0])


def multiply(operator: TranslatedOperator, inputs: Sequence[Array]) -> Array:
    """Translate MUL."""
    if not operator.quantized:
        return activated(operator, inputs[0] * inputs[1])
    first, second = operator.inputs
    scale = (
        one_scale(operator, first)
        * one_scale(operator, second)
        / one_scale(operator, operator.output)
    )
    product = (inputs[0] - first.zero_points[0]) * (inputs[1] - second.zero_points[0])
    return requantized(operator, product * scale)


def softmax(operator: TranslatedOperator, inputs: Sequence[Array]) -> Array:
    """Translate SOFTMAX."""
    beta = np.float32(operator.options["beta"])
    return _of_real_values(lambda real: jax.nn.softmax(beta * real))(operator, inputs)


def _of_real_values(function: Callable[[Array], Array]) -> Translation:
    """Return the translation of a function of each real value, or of a row of them."""

    def translate(operator: TranslatedOperator, inputs: Sequence[Array]) -> Array:
        if not operator.quantized:
            return function(inputs[0])
        given = operator.inputs[0]
        real = (inputs[0] - given.zero_points[0]) * one_scale(operator, given)
        return requantized(operator, function(real) / one_scale(operator, operator.output))

    return translate


relu = _of_real_values(jax.nn.relu)
relu6 = _of_real_values(lambda real: jnp.clip(real, 0.0, 6.0))
logistic = _of_real_values(jax.nn.sigmoid)
tanh = _of_real_values(jnp.tanh)
hard_swish = _of_real_values(lambda real: real * jnp.clip(real + 3.0, 0.0, 6.0) / 6.0)


TRANSLATIONS: Final[Mapping[str, Translation]] = {
    "ADD": add,
    "AVERAGE_POOL_2D": average_pool,
    "CONCATENATION": concatenation,
    "CONV_2D": convolution,
    "DEPTHWISE_CONV_2D": depthwise_convolution,
    "DEQUANTIZE": dequantize,
    "FULLY_CONNECTED": fully_connected,
    "HARD_SWISH": hard_swish,
    "LOGISTIC": logistic,
    "MAX_POOL_2D": max_pool,
    "MEAN": mean,
    "MUL": multiply,
    "PAD": pad,
    "QUANTIZE": quantize,
    "RELU": relu,
    "RELU6": relu6,
    "RESHAPE": reshape,
    "SOFTMAX": softmax,
    "SPLIT": split,
    "SUB": subtract,
    "TANH": tanh,
    "TRANSPOSE": transpose,
}
"""Translations of the operators of LeNet, ResNet and MobileNet, with channels last or first, and of
recurrent networks that are run step by step."""
