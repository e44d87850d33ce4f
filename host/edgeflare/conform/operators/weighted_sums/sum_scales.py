"""Scales of weighted sums that fit each other, so that results use the range of their type."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from edgeflare.conform.operators.weighted_sums.sum_types import SUM_TYPES
from edgeflare.conform.specification.settings import Configuration, Setting, number

_LEAST, _MOST = 2.0**-12, 2.0**10
_FILLED = (1.0, 1.0, 1.0, 1.0, 1.0, 0.4, 4.0, 0.02)
"""The share of the range that results reach, drawn from these: mostly all of it; sometimes they
saturate or are within a few steps."""


def usual_sum(type_: str, configuration: Configuration, terms: int) -> float:
    """Return the usual size of a sum of products of raw values, less their zero points.

    Args:
        type_: of the operator, with quantized input and result.
        configuration: has the zero points.
        terms: how many products are added.

    """
    known = SUM_TYPES[type_]
    x = _spread(known.data, configuration, "input_zero_point")
    w = _spread(known.weights, configuration, "weight_zero_point")
    return usual_product(x, w, terms)


def usual_product(x: tuple[float, float], w: tuple[float, float], terms: int) -> float:
    """Return the usual size of a sum of products, given the mean and mean square of factors."""
    return terms * abs(x[0] * w[0]) + 2 * float(np.sqrt(max(terms, 1) * x[1] * w[1]))


def _spread(dtype: str, configuration: Configuration, zero_point: str) -> tuple[float, float]:
    return raw_spread(
        dtype, number(configuration, zero_point) if zero_point in configuration else 0
    )


def raw_spread(dtype: str, zero_point: float) -> tuple[float, float]:
    """Return the mean and the mean square of uniform raw values of a dtype, less a zero point."""
    known = np.iinfo(dtype)
    mean = (float(known.max) + float(known.min)) / 2 - zero_point
    return mean, mean**2 + (float(known.max) - float(known.min)) ** 2 / 12


def fitting_scales(
    dtype: str, usual: float, settings: Mapping[str, Setting], factor: str, rng: np.random.Generator
) -> dict[str, Setting]:
    """Return scales with which results have about the range of their type.

    Args:
        dtype: of the result.
        usual: size of the sum of raw products.
        settings: with `input_scale` and `output_scale` as they are drawn.
        factor: name of the scale of the other factor, which follows from these.
        rng: draws how much of the range results reach.

    """
    known = np.iinfo(dtype)
    steps = (float(known.max) - float(known.min)) / 2 * _FILLED[int(rng.integers(len(_FILLED)))]
    given, made = number(settings, "input_scale"), number(settings, "output_scale")
    other = _scale(made * steps / (given * usual))
    # The result's scale stays as drawn, but where the other factor's would be out of its limits.
    return {factor: other, "output_scale": _scale(given * other * usual / steps)}


def _scale(size: float) -> float:
    return float(np.float32(min(max(size, _LEAST), _MOST)))


def rescaled(configuration: Configuration, name: str, ratio: float) -> float:
    """Return a scale multiplied by a ratio, as float32 has it."""
    return float(np.float32(number(configuration, name) * ratio))
