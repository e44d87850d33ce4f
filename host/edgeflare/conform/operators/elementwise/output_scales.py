"""Scales and zero points of results, drawn so that most results spread over their range."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from edgeflare.conform.operators.elementwise.activation_tensors import DTYPES
from edgeflare.conform.specification.operator_specification import INT16
from edgeflare.conform.specification.parameter import ZeroPoint
from edgeflare.conform.specification.settings import Setting

_LEAST, _MOST = 2.0**-20, 2.0**30
"""Between these lie the scales that are drawn, further apart than those of operands."""

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
