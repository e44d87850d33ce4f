"""The types of weighted sums: their dtypes, and the parameters of quantization."""

from __future__ import annotations

from dataclasses import dataclass

from edgeflare.conform.specification.operator_specification import (
    DYNAMIC,
    FLOAT,
    INT8,
    INT16,
    UINT8,
)
from edgeflare.conform.specification.parameter import (
    Choice,
    OperatorParameter,
    ScaleParameter,
    ZeroPoint,
)


@dataclass(frozen=True, slots=True)
class SumType:
    """The dtypes of a type.

    Attributes:
        data: of the input and the result.
        weights: of the weights.
        bias: of the bias.
        per_channel: whether weights may have a scale for each channel of the result.

    """

    data: str
    weights: str
    bias: str
    per_channel: bool

    @property
    def quantized(self) -> bool:
        """Whether input and result are quantized."""
        return self.data != "float32"


SUM_TYPES = {
    FLOAT: SumType("float32", "float32", "float32", per_channel=False),
    INT8: SumType("int8", "int8", "int32", per_channel=True),
    UINT8: SumType("uint8", "uint8", "int32", per_channel=False),
    INT16: SumType("int16", "int8", "int64", per_channel=True),
    DYNAMIC: SumType("float32", "int8", "float32", per_channel=True),
}
"""All types. Weights of uint8 have a zero point, those of int8 none."""

PER_CHANNEL = Choice("per_channel", (False, True), "quantization")


def quantization_parameters(type_: str) -> tuple[OperatorParameter, ...]:
    """Return the scales and zero points of a type, but for that per channel."""
    known = SUM_TYPES[type_]
    weights: tuple[OperatorParameter, ...] = (
        () if type_ == FLOAT else (ScaleParameter("weight_scale"),)
    )
    if type_ == UINT8:
        weights = (*weights, ZeroPoint("weight_zero_point", "uint8"))
    if not known.quantized:
        return weights
    return (*data_parameters(known.data, "input"), *weights, *data_parameters(known.data, "output"))


def data_parameters(dtype: str, name: str) -> tuple[OperatorParameter, ...]:
    """Return the scale and, where the dtype has one, the zero point of a tensor."""
    scale = ScaleParameter(f"{name}_scale")
    return (scale,) if dtype == "int16" else (scale, ZeroPoint(f"{name}_zero_point", dtype))
