"""ADD, MUL, the activations that stand alone, and SOFTMAX."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from edgeflare.whitebox.array_library import jax, jnp, lax
from edgeflare.whitebox.translation.rounding import (
    activated,
    clipped,
    one_scale,
    requantized,
    straight_through,
)
from edgeflare.whitebox.translation.translated_operator import (
    Array,
    TranslatedOperator,
    Translation,
)

_FRACTION_BITS = 20
"""Bits of the larger factor of XNNPACK's sum of two quantized values."""


def add(one: TranslatedOperator, inputs: Sequence[Array]) -> Array:
    """Translate ADD; quantized sums are computed in fixed point, as XNNPACK does."""
    if not one.quantized:
        return activated(one, inputs[0] + inputs[1])
    unit = one_scale(one, one.output)
    factors = [one_scale(one, tensor) / unit for tensor in one.inputs]
    shift = _FRACTION_BITS - int(np.floor(np.log2(max(factors))))
    whole = [int(np.rint(factor * 2.0**shift)) for factor in factors]
    zeros = [tensor.zero_points[0] for tensor in one.inputs]
    exact, real = np.int32(1 << (shift - 1)), np.float32(0.0)
    for raw, factor, times, zero_point in zip(inputs, factors, whole, zeros, strict=True):
        exact += lax.stop_gradient(raw).astype(jnp.int32) * times - np.int32(times * zero_point)
        real += (raw - zero_point) * factor
    rounded_down = jnp.right_shift(exact, shift).astype(jnp.float32)
    return clipped(one, straight_through(real, rounded_down) + one.output.zero_points[0])


def multiply(one: TranslatedOperator, inputs: Sequence[Array]) -> Array:
    """Translate MUL."""
    if not one.quantized:
        return activated(one, inputs[0] * inputs[1])
    first, second = one.inputs
    scale = one_scale(one, first) * one_scale(one, second) / one_scale(one, one.output)
    product = (inputs[0] - first.zero_points[0]) * (inputs[1] - second.zero_points[0])
    return requantized(one, product * scale)


def softmax(one: TranslatedOperator, inputs: Sequence[Array]) -> Array:
    """Translate SOFTMAX."""
    beta = np.float32(one.options["beta"])
    return _of_real_values(lambda real: jax.nn.softmax(beta * real))(one, inputs)


def _of_real_values(function: Callable[[Array], Array]) -> Translation:
    """Return the translation of a function of each real value, or of a row of them."""

    def translate(one: TranslatedOperator, inputs: Sequence[Array]) -> Array:
        if not one.quantized:
            return function(inputs[0])
        given = one.inputs[0]
        real = (inputs[0] - given.zero_points[0]) * one_scale(one, given)
        return requantized(one, function(real) / one_scale(one, one.output))

    return translate


relu = _of_real_values(jax.nn.relu)
relu6 = _of_real_values(lambda real: jnp.clip(real, 0.0, 6.0))
logistic = _of_real_values(jax.nn.sigmoid)
hard_swish = _of_real_values(lambda real: real * jnp.clip(real + 3.0, 0.0, 6.0) / 6.0)
