"""The tensors of weighted sums: their types, made of a configuration, and read from a model.

Their scales fit each other, so that results use the range of their type.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod

import numpy as np
from numpy.typing import NDArray

from edgeflare.conform.operator_graph import GraphValue, Quantization, held_as
from edgeflare.conform.specification.activation_tensors import (
    ASYMMETRIC,
    BLOCKWISE,
    DYNAMIC,
    DYNAMIC4,
    FLOAT,
    INT8,
    INT8X4,
    INT16,
    INT16X4,
    UINT8,
    UnknownOperatorForm,
    single_quantization,
)
from edgeflare.conform.specification.parameter import (
    Choice,
    Configuration,
    OperatorParameter,
    ScaleParameter,
    Setting,
    Settings,
    ZeroPoint,
    number,
    whole,
)


@dataclass(frozen=True, slots=True)
class SumType:
    """The dtypes of a type.

    Attributes:
        data: dtype of the input and the result.
        weights: dtype of the weights.
        bias: dtype of the bias.
        per_channel: whether weights may have a scale for each channel of the result.
        zero_point: whether weights have a zero point.
        blocks: whether weights have a scale for each block of a row.

    """

    data: str
    weights: str
    bias: str
    per_channel: bool = False
    zero_point: bool = False
    blocks: bool = False

    @property
    def quantized(self) -> bool:
        """Whether input and result are quantized."""
        return self.data != "float32"


SUM_TYPES = {
    FLOAT: SumType("float32", "float32", "float32"),
    INT8: SumType("int8", "int8", "int32", per_channel=True),
    UINT8: SumType("uint8", "uint8", "int32", zero_point=True),
    INT16: SumType("int16", "int8", "int64", per_channel=True),
    DYNAMIC: SumType("float32", "int8", "float32", per_channel=True),
    ASYMMETRIC: SumType("int8", "int8", "int32", zero_point=True),
    INT8X4: SumType("int8", "int4", "int32", per_channel=True),
    INT16X4: SumType("int16", "int4", "int64", per_channel=True),
    DYNAMIC4: SumType("float32", "int4", "float32", per_channel=True),
    BLOCKWISE: SumType("float32", "int4", "float32", blocks=True),
}
"""All types."""

USUAL_TYPES = (FLOAT, INT8, UINT8, INT16, DYNAMIC, ASYMMETRIC)
"""Those without weights of four bits, which few kernels have."""

PER_CHANNEL = Choice("per_channel", (False, True), "quantization")

_BLOCK_SIZE = Choice("block_size", (32, 64, 128, 256), "quantization")
"""Values of a block, as litert-quantizer has them; the kernels take multiples of 32."""


class _OtherZeroPoint(ZeroPoint):
    """A zero point of int8 weights, which would be those of another type if it were 0."""

    def __init__(self) -> None:
        super().__init__("weight_zero_point", "int8")
        self.buckets, self.simplest = ("lowest", "between", "highest"), 1

    def bucket(self, setting: Setting) -> str:
        """Return the bucket of a setting."""
        if setting == 0:
            raise ValueError(f"{self.name} {setting}")
        return super().bucket(setting)

    def draw(self, rng: np.random.Generator) -> Setting:
        """Return a setting."""
        return super().draw(rng) or self.simplest


class _BlockScale(ScaleParameter):
    """The largest scale of blocks, which has the eight significant bits that quantizers keep."""

    def draw(self, rng: np.random.Generator) -> Setting:
        """Return a setting."""
        return float(_short(number({self.name: super().draw(rng)}, self.name)))


def _short(scales: NDArray[np.float64] | float) -> NDArray[np.float64]:
    """Return scales with eight significant bits, which float16 and bfloat16 both have.

    litert-quantizer rounds those of blocks so, since XNNPACK keeps them as bfloat16.
    """
    fraction, exponent = np.frexp(scales)
    return np.asarray(np.ldexp(np.round(fraction * 256) / 256, exponent))


def weight_parameters(type_: str) -> tuple[OperatorParameter, ...]:
    """Return what says how weights are quantized, but for whether channels have scales."""
    known = SUM_TYPES[type_]
    if known.weights == "float32":
        return ()
    if known.blocks:
        return (_BlockScale("weight_scale"), _BLOCK_SIZE)
    if not known.zero_point:
        return (ScaleParameter("weight_scale"),)
    zero_point = ZeroPoint("weight_zero_point", UINT8) if type_ == UINT8 else _OtherZeroPoint()
    return (ScaleParameter("weight_scale"), zero_point)


_LEAST_RATIO = 2.0**-5
"""Least ratio of the smallest to the largest scale of a weight's channels, or blocks."""


def weights_value(
    type_: str,
    shape: tuple[int, ...],
    axis: int,
    configuration: Configuration,
    rng: np.random.Generator,
) -> GraphValue:
    """Return drawn weights.

    Args:
        type_: the operator's type.
        shape: shape of the weights.
        axis: along which there is a scale for each channel, the greatest of which is the
            configuration's, if it has them; -1 for one scale in any case.
        configuration: the operator's configuration.
        rng: draws values and the ratios of scales.

    """
    dtype = SUM_TYPES[type_].weights
    if dtype == "float32":
        return GraphValue(dtype, shape).constant(rng.uniform(-1, 1, shape))
    quantization = _weight_quantization(type_, shape, axis, configuration, rng)
    lowest, highest = weight_limits(type_)
    raw = rng.integers(lowest, highest, shape, held_as(dtype), endpoint=True)
    return GraphValue(dtype, shape, quantization).constant(raw)


def _weight_quantization(
    type_: str,
    shape: tuple[int, ...],
    axis: int,
    configuration: Configuration,
    rng: np.random.Generator,
) -> Quantization:
    """Return how drawn weights are quantized; see `weights_value`."""
    scale = number(configuration, "weight_scale")
    if SUM_TYPES[type_].zero_point:
        return Quantization((scale,), whole(configuration, "weight_zero_point"))
    if SUM_TYPES[type_].blocks:
        block = whole(configuration, "block_size")
        ratios = _scale_ratios(prod(shape) // block, rng)
        return Quantization(tuple(_short(ratios * scale).tolist()), block=block)
    ratios = _scale_ratios(shape[axis], rng) if axis >= 0 else np.ones(1)
    return Quantization(tuple(np.float32(ratios * scale).tolist()), 0, max(axis, 0))


def _scale_ratios(count: int, rng: np.random.Generator) -> NDArray[np.float64]:
    """Return drawn ratios of scales to the greatest of them."""
    ratios = 2.0 ** rng.uniform(np.log2(_LEAST_RATIO), 0, count)
    ratios[int(rng.integers(count))] = 1.0
    return ratios


def weight_limits(type_: str) -> tuple[int, int]:
    """Return the least and the greatest raw value of weights, symmetric without a zero point."""
    known = SUM_TYPES[type_]
    if known.weights == "int4":
        return -7, 7
    of_dtype = np.iinfo(known.weights)
    return int(of_dtype.min) + (not known.zero_point), int(of_dtype.max)


def bias_value(
    type_: str,
    weights: GraphValue,
    channels: int,
    terms: int,
    configuration: Configuration,
    rng: np.random.Generator,
) -> GraphValue:
    """Return a drawn bias, about as large as the sums are, with the scale of their products.

    Args:
        type_: the operator's type.
        weights: the operator's weights.
        channels: channels of the result.
        terms: how many products are added.
        configuration: has `bias_type` where a type has a choice of it.
        rng: draws the values.

    """
    known = SUM_TYPES[type_]
    if not known.quantized or weights.quantization is None:
        return GraphValue(known.bias, (channels,)).constant(rng.uniform(-2, 2, channels))
    scale = number(configuration, "input_scale")
    scales = tuple(
        float(np.float32(scale * weight_scale)) for weight_scale in weights.quantization.scales
    )
    most = int(usual_sum(type_, configuration, terms))
    drawn = rng.integers(-most, most, channels, endpoint=True)
    dtype = str(configuration.get("bias_type", known.bias))
    value = GraphValue(dtype, (channels,), Quantization(scales))
    return value.constant(drawn | 1)  # odd, so that no bias looks like one that is left out


def sum_type(data: GraphValue, weights: GraphValue, result: GraphValue) -> str:
    """Return the type with the dtypes of an input, of weights and of a result.

    Raises:
        UnknownOperatorForm: there is none.

    """
    quantization = weights.quantization
    symmetric = weights.dtype != "uint8" and (quantization is None or not quantization.zero_point)
    blocks = quantization is not None and quantization.block > 0
    for type_, known in SUM_TYPES.items():
        dtypes = (known.data, known.weights, known.data)
        form = (not known.zero_point, known.blocks)
        if (dtypes, form) == ((data.dtype, weights.dtype, result.dtype), (symmetric, blocks)):
            return type_
    form_of = " with a zero point" * (not symmetric) + " in blocks" * blocks
    raise UnknownOperatorForm(
        f"{data.dtype} with weights of {weights.dtype}{form_of} to {result.dtype}"
    )


def read_weights(type_: str, weights: GraphValue, axis: int) -> Settings:
    """Return the settings of the quantization of weights.

    Args:
        type_: the operator's type.
        weights: constant.
        axis: the axis that a scale for each channel has to be along.

    """
    if weights.values is None:
        raise UnknownOperatorForm("weights that are computed")
    if weights.dtype == "float32":
        return {}
    known = weights.quantization
    if known is None or not known.scales:
        raise UnknownOperatorForm("weights without scales")
    if SUM_TYPES[type_].zero_point:
        scale, zero_point = single_quantization(weights)
        return {"weight_scale": scale, "weight_zero_point": zero_point}
    if SUM_TYPES[type_].blocks:
        return {"weight_scale": max(known.scales), "block_size": known.block}
    several = len(known.scales) > 1
    if several and known.axis != axis:
        raise UnknownOperatorForm(f"weights with scales along the dimension {known.axis}")
    found: dict[str, Setting] = {"weight_scale": max(known.scales)}
    return found | ({"per_channel": several} if SUM_TYPES[type_].per_channel else {})


def has_bias(bias: GraphValue | None) -> bool:
    """Return whether there is a bias: one of zeros is none."""
    return bias is not None and bool(np.any(bias.values))


_LEAST, _MOST = 2.0**-12, 2.0**10
_FILLED = (1.0, 1.0, 1.0, 1.0, 1.0, 0.4, 4.0, 0.02)
"""The share of the range that results reach, drawn from these: mostly all of it; sometimes they
saturate or are within a few steps."""


def usual_sum(type_: str, configuration: Configuration, terms: int) -> float:
    """Return the usual size of a sum of products of raw values, less their zero points.

    Args:
        type_: the operator's type, with quantized input and result.
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
    low, high = (-8, 7) if dtype == "int4" else (np.iinfo(dtype).min, np.iinfo(dtype).max)
    mean = (float(high) + float(low)) / 2 - zero_point
    return mean, mean**2 + (float(high) - float(low)) ** 2 / 12


def fitting_scales(
    dtype: str, usual: float, settings: Mapping[str, Setting], factor: str, rng: np.random.Generator
) -> dict[str, Setting]:
    """Return scales with which results have about the range of their type.

    Args:
        dtype: dtype of the result.
        usual: size of the sum of raw products.
        settings: settings with `input_scale` and `output_scale` as they are drawn.
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
