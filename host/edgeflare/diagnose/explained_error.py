"""How large an error of an operator's output quantization explains."""

from __future__ import annotations

import numpy as np

from edgeflare.diagnose.original_layers import Real
from edgeflare.diagnose.rounding_noise import WEIGHTED
from edgeflare.models.tflite_graph import GraphOp, GraphTensor

SIGMAS = 7.0
"""Standard deviations of rounding noise that are explained. The far tails of such a sum are not
those of a normal distribution, and a network has a million outputs."""

_ROUNDING_UNITS = 1.0
"""Units of an operator's output that rounding explains; some kernels round twice."""

_TABLE_UNITS = 2.0
"""The same of operators without weights, some of which use tables or fixed-point arithmetic."""

_TABLE_UNITS_OF_16_BITS = 64.0
"""The same for outputs of 16 bits: tables have 512 intervals over their range, and interpolation
between their entries may be off by half an interval. 18 units have been observed."""

_FLOAT_SHARE = 1e-4
"""Share of a float tensor's largest value by which kernels may differ."""


def explained_error(one: GraphOp, tensor: GraphTensor, wanted: Real, noise: Real) -> Real:
    """Return the error of an operator's outputs that quantization explains, in real values."""
    most = _least_units(one, tensor) * unit_of(tensor, wanted) + SIGMAS * noise
    return np.broadcast_to(most, wanted.shape)


def unit_of(tensor: GraphTensor, wanted: Real) -> float:
    """Return the unit in which residuals are counted, as a real value."""
    if tensor.scales:
        return max(tensor.scales)
    finite = np.abs(wanted[np.isfinite(wanted)])
    return _FLOAT_SHARE * float(finite.max(initial=0.0)) or 1.0


def clipped(tensor: GraphTensor, real: Real) -> Real:
    """Return values clipped to the range of a tensor."""
    if not tensor.scales:
        return real
    ends = (np.full((1,) * len(tensor.shape), limit) for limit in tensor.limits)
    low, high = map(tensor.real, ends)
    return np.clip(real, low, high)


def _least_units(one: GraphOp, tensor: GraphTensor) -> float:
    """Return the error of an operator's output, in units, that is explained for any input."""
    if one.name in WEIGHTED:
        return _ROUNDING_UNITS
    return _TABLE_UNITS_OF_16_BITS if tensor.dtype == "int16" else _TABLE_UNITS
