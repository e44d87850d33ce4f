"""The types of operators, and the tensors and values that these are given and compute."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from edgeflare.conform.operator_graph import GraphValue, Option, Quantization, Values
from edgeflare.conform.specification.parameter import (
    Configuration,
    OperatorParameter,
    ScaleParameter,
    Settings,
    ZeroPoint,
    number,
    whole,
)

FLOAT, INT8, UINT8, INT16, DYNAMIC = "float32", "int8", "uint8", "int16x8", "dynamic"
INT32, INT64, BOOL = "int32", "int64", "bool"
ASYMMETRIC, INT8X4, INT16X4 = "asymmetric", "int8x4", "int16x4"
DYNAMIC4, BLOCKWISE = "dynamic4", "blockwise"
"""The types of operators. "int16x8" has int16 activations and int8 weights, if any; "dynamic" has
float32 activations and int8 weights; of all others the name is that of the activations' dtype, but
for those that differ from these in their weights: "asymmetric" has int8 activations and int8
weights with a zero point, "int8x4", "int16x4" and "dynamic4" have weights of four bits, and
"blockwise" has float32 activations and weights of four bits with a scale for each block of a
row."""

Shape = tuple[int, ...]
"""The shape of a tensor."""

Reals = NDArray[np.float64]
"""The values that raw ones stand for."""


class UnknownOperatorForm(ValueError):  # noqa: N818 - a fact about a model, as the message says
    """A model's operator has a form that its specification does not know; the message says why."""


DTYPES = {
    FLOAT: "float32",
    INT8: "int8",
    UINT8: "uint8",
    INT16: "int16",
    INT32: "int32",
    INT64: "int64",
    BOOL: "bool",
    DYNAMIC: "float32",
    ASYMMETRIC: "int8",
    INT8X4: "int8",
    INT16X4: "int16",
    DYNAMIC4: "float32",
    BLOCKWISE: "float32",
}
"""The dtypes of activations, by type."""

FLOAT_INPUTS = (DYNAMIC, DYNAMIC4, BLOCKWISE)
"""Types whose float inputs kernels round to eight bits, since weights are quantized."""

_BY_WEIGHTS = (*FLOAT_INPUTS, ASYMMETRIC, INT8X4, INT16X4)
"""Types that differ from others in their weights alone."""

TYPES = {dtype: type_ for type_, dtype in DTYPES.items() if type_ not in _BY_WEIGHTS}
"""The types by the dtypes of activations."""

QUANTIZED = (INT8, UINT8, INT16, ASYMMETRIC, INT8X4, INT16X4)


def type_of(value: GraphValue) -> str:
    """Return the type that an operator on a tensor has.

    Raises:
        UnknownOperatorForm: there is none, as of a quantized tensor of int32.

    """
    type_ = TYPES.get(value.dtype)
    quantized = value.quantization is not None
    if type_ is None or (type_ in QUANTIZED) != quantized:
        kind = "quantized " if quantized else ""
        raise UnknownOperatorForm(f"no type has {kind}tensors of {value.dtype}")
    quantization_settings(value, "")
    return type_


def quantization_parameters(type_: str, role: str) -> tuple[OperatorParameter, ...]:
    """Return what says how a tensor is quantized, such as `input_scale` for the role "input"."""
    if type_ not in QUANTIZED:
        return ()
    scale = ScaleParameter(f"{role}_scale")
    # The zero points of int16 tensors are 0.
    dtype = DTYPES[type_]
    return (scale,) if dtype == "int16" else (scale, ZeroPoint(f"{role}_zero_point", dtype))


def activation(
    type_: str, shape: tuple[int, ...], configuration: Configuration, role: str
) -> GraphValue:
    """Return the tensor of a role."""
    if type_ not in QUANTIZED:
        return GraphValue(DTYPES[type_], shape)
    int16 = DTYPES[type_] == "int16"
    zero_point = 0 if int16 else whole(configuration, f"{role}_zero_point")
    scale = number(configuration, f"{role}_scale")
    return GraphValue(DTYPES[type_], shape, Quantization((scale,), zero_point))


def quantization_settings(value: GraphValue, role: str) -> Settings:
    """Return the settings by which a tensor is quantized; none if no tensor of its dtype is.

    Raises:
        UnknownOperatorForm: it has not one scale, or a zero point that its dtype does not have.

    """
    if TYPES.get(value.dtype) not in QUANTIZED:
        return {}
    scale, zero_point = single_quantization(value)
    if value.dtype != "int16":
        return {f"{role}_scale": scale, f"{role}_zero_point": zero_point}
    if zero_point:
        raise UnknownOperatorForm(f"an int16 tensor has the zero point {zero_point}")
    return {f"{role}_scale": scale}


def single_quantization(value: GraphValue) -> tuple[float, int]:
    """Return scale and zero point of a tensor; UnknownOperatorForm where it has none or several."""
    known = value.quantization
    if known is None or len(known.scales) != 1:
        raise UnknownOperatorForm(f"a tensor of {value.dtype} has not one scale")
    return known.scales[0], known.zero_point


@dataclass(frozen=True, slots=True)
class Operand:
    """A tensor that an operator reads, with its values.

    Attributes:
        value: the tensor.
        raw: (*shape) in its dtype.

    """

    value: GraphValue
    raw: Values

    @property
    def real(self) -> Reals:
        """The values that the raw ones stand for, as float64."""
        return np.asarray(self.value.real(self.raw), np.float64)


Operands = Sequence[Operand | None]
"""The operands of an operator in its order, None where one is left out."""

Options = Mapping[str, Option]
"""The options of an operator, by their names in the schema."""

Results = Sequence[GraphValue]
"""The tensors that an operator writes."""

OperandStyle = Literal["uniform", "extreme", "narrow", "special"]
"""How values are drawn: over the whole range; at its ends; from a few neighbouring values; and for
floats also denormals, NaN and infinities."""

OPERAND_STYLES: tuple[OperandStyle, ...] = get_args(OperandStyle)

_LARGEST_REAL = 8.0
"""Largest float that is drawn uniformly: beyond the ranges of all bounded activations."""

_LARGEST_WHOLE = 1000
"""Largest of 32-bit and 64-bit integers that are drawn uniformly."""

_SPECIAL = (0.0, -0.0, 1e-40, -1e-40, 1e38, -1e38, np.inf, -np.inf, np.nan)


def operand_values(value: GraphValue, style: OperandStyle, rng: np.random.Generator) -> Values:
    """Return values for a tensor: (*shape) in its dtype."""
    if value.dtype == "bool":
        return rng.random(value.shape) < (0.5 if style != "narrow" else 0.95)
    if value.dtype.startswith("float"):
        return _floats(value.shape, style, rng).astype(value.dtype)
    known = np.iinfo(value.dtype)
    low, high = int(known.min), int(known.max)
    if high > _LARGEST_WHOLE * 100 and style != "extreme":
        low, high = -_LARGEST_WHOLE, _LARGEST_WHOLE
    if style == "extreme":
        ends = np.array([low, low + 1, 0, high - 1, high], known.dtype)
        return ends[rng.integers(len(ends), size=value.shape)]
    if style == "narrow":
        begin = int(rng.integers(low, high - 3))
        low, high = begin, begin + 3
    return rng.integers(low, high, value.shape, known.dtype, endpoint=True)


def _floats(shape: tuple[int, ...], style: OperandStyle, rng: np.random.Generator) -> Values:
    if style == "extreme":
        return rng.choice([-_LARGEST_REAL, -1.0, 0.0, 1.0, _LARGEST_REAL], shape)
    if style == "narrow":
        return rng.uniform(-_LARGEST_REAL, _LARGEST_REAL) + rng.uniform(0, 0.01, shape)
    values = rng.uniform(-_LARGEST_REAL, _LARGEST_REAL, shape)
    if style == "special":
        # Mostly ordinary values: sums in which everything is NaN show little.
        special = rng.choice(_SPECIAL, shape)
        values = np.where(rng.random(shape) < 1 / 8, special, values)
    return values
