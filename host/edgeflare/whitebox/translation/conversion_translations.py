"""QUANTIZE, DEQUANTIZE, RESHAPE, TRANSPOSE and PAD."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from edgeflare.whitebox.array_library import jnp
from edgeflare.whitebox.translation.rounding import one_scale, requantized
from edgeflare.whitebox.translation.translated_operator import Array, TranslatedOperator


def quantize(one: TranslatedOperator, inputs: Sequence[Array]) -> Array:
    """Translate QUANTIZE, from float32 or from another quantization."""
    given, unit = one.inputs[0], one_scale(one, one.output)
    if not given.scales:
        return requantized(one, inputs[0] / unit)
    return requantized(one, (inputs[0] - given.zero_points[0]) * (one_scale(one, given) / unit))


def dequantize(one: TranslatedOperator, inputs: Sequence[Array]) -> Array:
    """Translate DEQUANTIZE."""
    given = one.inputs[0]
    if not given.scales:
        return jnp.asarray(inputs[0], jnp.float32)
    return (inputs[0] - given.zero_points[0]) * one_scale(one, given)


def reshape(one: TranslatedOperator, inputs: Sequence[Array]) -> Array:
    """Translate RESHAPE, whose output has the shape that the file declares."""
    return inputs[0].reshape(one.output.shape)


def transpose(_: TranslatedOperator, inputs: Sequence[Array]) -> Array:
    """Translate TRANSPOSE, as of inputs with channels first, whose order of axes is a constant."""
    return jnp.transpose(inputs[0], np.asarray(inputs[1]).tolist())


def pad(one: TranslatedOperator, inputs: Sequence[Array]) -> Array:
    """Translate PAD, which fills with zeros."""
    zero = one.output.zero_points[0] if one.quantized else 0.0
    widths = np.asarray(inputs[1]).tolist()
    return jnp.pad(inputs[0], widths, constant_values=zero)
