"""MAX_POOL_2D, AVERAGE_POOL_2D and MEAN."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np

from edgeflare.whitebox.array_library import jnp, lax
from edgeflare.whitebox.translation.rounding import (
    activated,
    clipped,
    one_scale,
    requantized,
    straight_through,
)
from edgeflare.whitebox.translation.translated_operator import Array, TranslatedOperator
from edgeflare.whitebox.translation.weighted_sum_translations import PADDINGS


def max_pool(one: TranslatedOperator, inputs: Sequence[Array]) -> Array:
    """Translate MAX_POOL_2D, whose input and output have one quantization."""
    made = lax.reduce_window(inputs[0], -jnp.inf, lax.max, *_window(one))
    return clipped(one, made) if one.quantized else activated(one, made)


def average_pool(one: TranslatedOperator, inputs: Sequence[Array]) -> Array:
    """Translate AVERAGE_POOL_2D; quantized means round halves away from zero, as built-in kernels.

    XNNPACK has no such kernel for int8, and leaves it to those.
    """
    sums = lax.reduce_window(inputs[0], 0.0, lax.add, *_window(one))
    counts = lax.reduce_window(jnp.ones_like(inputs[0]), 0.0, lax.add, *_window(one))
    if not one.quantized:
        return activated(one, sums / counts)
    half = jnp.floor(counts / 2)
    up, down = jnp.floor((sums + half) / counts), jnp.ceil((sums - half) / counts)
    return clipped(one, straight_through(sums / counts, jnp.where(sums > 0, up, down)))


def mean(one: TranslatedOperator, inputs: Sequence[Array]) -> Array:
    """Translate MEAN."""
    given, shape = one.inputs[0], one.output.shape
    axes = tuple(int(axis) % len(given.shape) for axis in np.atleast_1d(inputs[1]))
    if not one.quantized:
        return inputs[0].mean(axes).reshape(shape)
    sums = (inputs[0] - np.float32(given.zero_points[0])).sum(axes)
    count = np.float32(prod(given.shape[axis] for axis in axes))
    scale = one_scale(one, given) / one_scale(one, one.output) / count
    return requantized(one, sums * scale).reshape(shape)


def _window(one: TranslatedOperator) -> tuple[tuple[int, ...], tuple[int, ...], str]:
    options = one.options
    return (
        (1, options["filterHeight"], options["filterWidth"], 1),
        (1, options["strideH"], options["strideW"], 1),
        PADDINGS[options["padding"]],
    )
