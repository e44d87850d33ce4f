"""Scales and zero points that are drawn so that most results spread over their range."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from edgeflare.conform.operator_graph import GraphValue
from edgeflare.conform.specification.activation_tensors import DTYPES, INT16
from edgeflare.conform.specification.parameter import Configuration, Setting, ZeroPoint, number


def levels(value: GraphValue, most: int = 256) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
    """Return real values over the whole range of a quantized tensor, (≤ most,)."""
    known = np.iinfo(value.dtype)
    raw = np.unique(np.linspace(known.min, known.max, most).round())
    return np.asarray(value.real(raw), np.float64)


def reaching_scale(
    type_: str, rng: np.random.Generator, reaches: tuple[float, float] = (-1, 5)
) -> float:
    """Return a scale at which functions bend within the range of a quantized type.

    Args:
        type_: a quantized one.
        rng: draws how far its values reach.
        reaches: exponents of 2 between which the type's largest real value lies.

    """
    reach = 2 ** rng.uniform(*reaches)
    return float(np.float32(reach / np.iinfo(DTYPES[type_]).max))


_LEAST, _MOST = 2.0**-20, 2.0**30
"""Least and greatest scale of results that is drawn; operands' lie closer together."""

_SATURATING, _COARSE = 0.15, 0.15
"""Shares of results whose ends are cut off, and of those that have only a few steps."""

_ANY_ZERO_POINT = 0.2
"""The share of results whose zero point does not fit their values."""


def drawn_output(
    type_: str, real: NDArray[np.float64], rng: np.random.Generator, least: float = 0.0
) -> dict[str, Setting]:
    """Return settings of a result's quantization.

    Args:
        type_: a quantized one.
        real: values that the result may have, of any shape; those that are not finite are ignored.
        rng: draws whether they fit, saturate or are coarse.
        least: the scale is greater.

    """
    known = np.iinfo(DTYPES[type_])
    finite = real[np.isfinite(real)]
    low, high = float(finite.min(initial=0.0)), float(finite.max(initial=0.0))
    if type_ == INT16:
        low, high = -max(-low, high), max(-low, high)
    fitting = (high - low) / (float(known.max) - float(known.min))
    chance, exponent = rng.random(), rng.uniform(-0.3, 0.3)
    if chance < _SATURATING:
        exponent = rng.uniform(-5, -1)
    elif chance < _SATURATING + _COARSE:
        exponent = rng.uniform(1, 6)
    scale = float(
        np.float32(np.clip(fitting * 2**exponent, max(_LEAST, 2 * least), max(_MOST, 2 * least)))
    )
    settings: dict[str, Setting] = {"output_scale": scale}
    if type_ != INT16:
        name = "output_zero_point"
        fitted = int(np.clip(round(known.min - low / scale), known.min, known.max))
        drawn = ZeroPoint(name, DTYPES[type_]).draw(rng)
        settings[name] = drawn if rng.random() < _ANY_ZERO_POINT else fitted
    return settings


def scale_ratio(configuration: Configuration) -> Mapping[str, Setting]:
    """Return the ratio of the operand's scale to the result's as a fact, if both have one."""
    if not {"input_scale", "output_scale"} <= set(configuration):
        return {}
    ratio = number(configuration, "input_scale") / number(configuration, "output_scale")
    return {"scale_ratio_log2": round(np.log2(ratio))}
