"""The tensors of elementwise operators: what type they have, and how they are quantized.

Scales and zero points of results are drawn so that most results spread over their range.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from edgeflare.conform.operator_graph import GraphValue, Quantization
from edgeflare.conform.specification.operator_specification import (
    BOOL,
    FLOAT,
    INT8,
    INT16,
    INT32,
    INT64,
    UINT8,
    UnknownOperatorForm,
)
from edgeflare.conform.specification.parameter import (
    Configuration,
    OperatorParameter,
    ScaleParameter,
    Setting,
    ZeroPoint,
    number,
    whole,
)

DTYPES = {
    FLOAT: "float32",
    INT8: "int8",
    UINT8: "uint8",
    INT16: "int16",
    INT32: "int32",
    INT64: "int64",
    BOOL: "bool",
}
"""The types of elementwise operators, and the dtypes of their activations."""

QUANTIZED = (INT8, UINT8, INT16)


def type_of(value: GraphValue) -> str:
    """Return the type that an operator on a tensor has.

    Raises:
        UnknownOperatorForm: no elementwise operator has such tensors.

    """
    quantization = value.quantization
    if quantization is not None and len(quantization.scales) != 1:
        raise UnknownOperatorForm("activations are quantized by one scale each")
    types = (one for one, dtype in DTYPES.items() if dtype == value.dtype)
    type_ = next(types, None)
    if type_ is None or (type_ in QUANTIZED) != (quantization is not None):
        kind = "" if quantization is None else "quantized "
        raise UnknownOperatorForm(f"no elementwise operator has {kind}tensors of {value.dtype}")
    if type_ == INT16 and quantization is not None and quantization.zero_point:
        raise UnknownOperatorForm(f"an int16 tensor has the zero point {quantization.zero_point}")
    return type_


def quantization_parameters(type_: str, role: str) -> tuple[OperatorParameter, ...]:
    """Return what says how a tensor is quantized, such as `input_scale` for the role "input"."""
    if type_ not in QUANTIZED:
        return ()
    scale = ScaleParameter(f"{role}_scale")
    # The zero points of int16 tensors are 0.
    return (scale,) if type_ == INT16 else (scale, ZeroPoint(f"{role}_zero_point", DTYPES[type_]))


def activation(
    type_: str, shape: tuple[int, ...], configuration: Configuration, role: str
) -> GraphValue:
    """Return the tensor of a role."""
    value = GraphValue(DTYPES[type_], shape)
    if type_ not in QUANTIZED:
        return value
    zero_point = 0 if type_ == INT16 else whole(configuration, f"{role}_zero_point")
    scale = number(configuration, f"{role}_scale")
    return replace(value, quantization=Quantization((scale,), zero_point))


def quantization_settings(value: GraphValue, role: str) -> dict[str, Setting]:
    """Return the settings by which a tensor is quantized; none if it is not."""
    if value.quantization is None:
        return {}
    settings: dict[str, Setting] = {f"{role}_scale": value.quantization.scales[0]}
    if value.dtype != "int16":
        settings[f"{role}_zero_point"] = value.quantization.zero_point
    return settings


def check_alike(read: GraphValue, written: GraphValue) -> None:
    """Raise UnknownOperatorForm unless two tensors have one quantization."""
    if read.quantization != written.quantization:
        raise UnknownOperatorForm("the result is quantized otherwise than what is read")


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
