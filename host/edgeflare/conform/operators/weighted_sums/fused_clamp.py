"""Activations that sums and pools end with."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from edgeflare.conform.specification.operator_specification import UnknownOperatorForm
from edgeflare.conform.specification.parameter import Choice

_LIMITS = {
    "NONE": (-np.inf, np.inf),
    "RELU": (0.0, np.inf),
    "RELU_N1_TO_1": (-1.0, 1.0),
    "RELU6": (0.0, 6.0),
}

ACTIVATION = Choice("activation", tuple(_LIMITS))
"""The activations that kernels of sums and pools fuse."""


def clamp_limits(activation: str) -> tuple[float, float]:
    """Return the least and the greatest result of an activation."""
    return _LIMITS[activation]


def clamped(values: NDArray[np.float64], activation: str) -> NDArray[np.float64]:
    """Return real values after an activation; NaN stays NaN."""
    return np.clip(values, *_LIMITS[activation]) if activation != "NONE" else values


def known_activation(name: object) -> str:
    """Return an activation's name; UnknownOperatorForm for one that is not fused."""
    if not isinstance(name, str) or name not in _LIMITS:
        raise UnknownOperatorForm(f"an activation {name}")
    return name
