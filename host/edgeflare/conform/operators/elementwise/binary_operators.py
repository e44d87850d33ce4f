"""Operators with several operands: their functions, a row for each, and the sum of many tensors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod

import numpy as np

from edgeflare.conform.operator_graph import Values
from edgeflare.conform.operators.elementwise.broadcast import BroadcastingFunction
from edgeflare.conform.operators.elementwise.broadcasting_operator import BroadcastingOperator
from edgeflare.conform.operators.elementwise.real_answers import Loss, answer
from edgeflare.conform.specification.activation_tensors import (
    BOOL,
    FLOAT,
    INT8,
    INT16,
    INT32,
    INT64,
    UINT8,
    Operand,
    Operands,
    Options,
    Results,
    UnknownOperatorForm,
)
from edgeflare.conform.specification.exact_answer import EPSILON, ExactAnswers, reals
from edgeflare.conform.specification.model_parts import CountOf, ModelParts, ShapeOf
from edgeflare.conform.specification.operator_specification import (
    OperatorReading,
    OperatorSpecification,
)
from edgeflare.conform.specification.parameter import (
    Configuration,
    Dimensions,
    Whole,
    dimensions,
    number,
)

_FUSED = ("NONE", "RELU", "RELU6", "RELU_N1_TO_1")
_ANY_SCALE = {INT16: {"potScaleInt16": False}}
"""Scales that are powers of 2 only are what the schema has for int16 by default."""


def _least_of_sum(type_: str, configuration: Configuration) -> float:
    """Return the scale below which kernels cannot rescale a sum."""
    scales = (number(configuration, f"{role}_scale") for role in ("first", "second"))
    return max(scales) * 2.0 ** (-14 if type_ == INT16 else -19)


def _beyond_rank_4(version: int) -> Callable[[Configuration], int]:
    """Return what raises the version where operands of rank 5 are broadcast."""

    def raised(configuration: Configuration) -> int:
        roles = ("first", "second")
        plain = all(configuration[f"{role}_broadcast"] == "none" for role in roles)
        return 1 if plain or len(dimensions(configuration, "shape")) <= 4 else version

    return raised


def _version_of_product(configuration: Configuration) -> int:
    """Return the version, a higher one for a product that is rescaled by 1 or more."""
    if "output_scale" not in configuration:
        return 1
    first, second, written = (
        np.float32(number(configuration, f"{role}_scale")) for role in ("first", "second", "output")
    )
    return 3 if first * second / written >= 1 else 1


def _quotient(x: Values, y: Values) -> Values:
    """Return a quotient; of whole numbers, rounded towards 0."""
    if x.dtype.kind != "i":
        return np.asarray(x / y)
    return np.asarray(np.sign(x) * np.sign(y) * (np.abs(x) // np.abs(y)))


def _floor_quotient(x: Values, y: Values) -> Values:
    # The quotient is a float32 number, whose floor is taken.
    return np.asarray(x // y) if x.dtype.kind == "i" else np.floor((x / y).astype(np.float32))


def _divisible(operands: Sequence[Operand]) -> None:
    """Take zero out of the divisors, and the dividend of which -1 would be too large."""
    dividend, divisor = operands
    quantization = divisor.value.quantization
    zero = 0 if quantization is None else quantization.zero_point
    highest = zero == np.iinfo(divisor.raw.dtype).max if quantization is not None else False
    one = zero - 1 if highest else zero + 1
    divisor.raw[divisor.raw == zero] = one
    if dividend.raw.dtype.kind == "i":
        least = np.iinfo(dividend.raw.dtype).min
        dividend.raw[dividend.raw == least] = least + 1


def _with_a_power(operands: Sequence[Operand]) -> None:
    """Keep powers real, and those of whole numbers in their range."""
    base, exponent = operands
    if base.raw.dtype.kind == "f":
        base.raw[...] = np.abs(base.raw) + np.float32(2**-6)
    else:
        base.raw[...] = base.raw % 31 - 15
        exponent.raw[...] = exponent.raw % 8


def _with_a_shift(operands: Sequence[Operand]) -> None:
    """Keep shifts below the number of bits."""
    operands[1].raw[...] = operands[1].raw % 32


def make_values_equal(operands: Sequence[Operand]) -> None:
    """Make every other value of one operand, in place, what it is compared with.

    Two floats that are drawn are hardly ever equal, so that kernels that compare the wrong ones
    would answer rightly.
    Quantized values are left as they are: several steps of one operand are one of the other's.

    Args:
        operands: the two, broadcast with each other; the larger one that is no constant is changed.

    """
    changeable = [operand for operand in operands if operand.value.values is None]
    if not changeable or changeable[0].value.quantization is not None:
        return
    changed = max(changeable, key=lambda operand: operand.raw.size)
    first, second = operands
    other = second if changed is first else first
    shape = np.broadcast_shapes(first.raw.shape, second.raw.shape)
    if 0 in shape:
        return
    own = (1,) * (len(shape) - changed.raw.ndim) + changed.raw.shape
    compared = np.broadcast_to(other.raw, shape)
    changed.raw.flat[1::2] = compared[tuple(map(slice, own))].flat[1::2]
    if changed.raw.size == 1:
        changed.raw[...] = compared.flat[-1]


def _comparison(
    operator: str, versions: dict[str, int], of: Callable[..., Values]
) -> BroadcastingFunction:
    return BroadcastingFunction(
        operator,
        versions,
        of,
        scales="operands",
        result=BOOL,
        most_rank=4,
        adjust=make_values_equal,
    )


_ORDERED = {FLOAT: 1, INT8: 2, UINT8: 1, INT32: 1, INT64: 1}
_EQUATED = {**_ORDERED, BOOL: 1}
_EXTREMES = {FLOAT: 1, INT8: 2, UINT8: 1, INT16: 4, INT32: 1, INT64: 1}
_CHOSEN = {FLOAT: 1, INT8: 1, UINT8: 1, INT16: 1, INT32: 1, INT64: 1, BOOL: 1}

_FUNCTIONS = (
    BroadcastingFunction(
        "ADD",
        {FLOAT: 1, INT8: 2, UINT8: 1, INT16: 3, INT32: 1, INT64: 4},
        np.add,
        Loss(1),
        activations=_FUSED,
        fixed_options=_ANY_SCALE,
        least_output=_least_of_sum,
    ),
    BroadcastingFunction(
        "SUB",
        {FLOAT: 1, INT8: 2, UINT8: 1, INT16: 5, INT32: 1, INT64: 4},
        np.subtract,
        Loss(1),
        activations=_FUSED,
        fixed_options=_ANY_SCALE,
        raised_version=_beyond_rank_4(3),
        least_output=_least_of_sum,
    ),
    BroadcastingFunction(
        "MUL",
        {FLOAT: 1, INT8: 2, UINT8: 1, INT16: 4, INT32: 1, INT64: 5},
        np.multiply,
        Loss(1),
        activations=_FUSED,
        raised_version=_version_of_product,
    ),
    BroadcastingFunction(
        "DIV",
        {FLOAT: 1, INT8: 1, UINT8: 1, INT16: 1, INT32: 1},
        _quotient,
        Loss(2),
        activations=_FUSED,
        raised_version=_beyond_rank_4(2),
        adjust=_divisible,
    ),
    BroadcastingFunction(
        "MAXIMUM",
        _EXTREMES,
        np.maximum,
        kind="order",
        scales="one",
        raised_version=_beyond_rank_4(3),
    ),
    BroadcastingFunction(
        "MINIMUM",
        _EXTREMES,
        np.minimum,
        kind="order",
        scales="one",
        raised_version=_beyond_rank_4(3),
    ),
    BroadcastingFunction(
        "FLOOR_DIV", {FLOAT: 2, INT32: 1}, _floor_quotient, most_rank=4, adjust=_divisible
    ),
    BroadcastingFunction(
        "FLOOR_MOD", {FLOAT: 1, INT32: 1, INT64: 1}, np.mod, Loss(1), most_rank=4, adjust=_divisible
    ),
    BroadcastingFunction(
        "POW", {FLOAT: 1, INT32: 1}, np.power, Loss(4), most_rank=4, adjust=_with_a_power
    ),
    BroadcastingFunction(
        "SQUARED_DIFFERENCE",
        {FLOAT: 1, INT8: 2, INT32: 1},
        lambda x, y: (x - y) * (x - y),
        Loss(3),
    ),
    BroadcastingFunction("ATAN2", {FLOAT: 1}, np.arctan2, Loss(3), stretched=()),
    _comparison("EQUAL", _EQUATED, np.equal),
    _comparison("NOT_EQUAL", _EQUATED, np.not_equal),
    _comparison("LESS", _ORDERED, np.less),
    _comparison("LESS_EQUAL", _ORDERED, np.less_equal),
    _comparison("GREATER", _ORDERED, np.greater),
    _comparison("GREATER_EQUAL", _ORDERED, np.greater_equal),
    BroadcastingFunction("LOGICAL_AND", {BOOL: 1}, np.logical_and, most_rank=4),
    BroadcastingFunction("LOGICAL_OR", {BOOL: 1}, np.logical_or, most_rank=4),
    BroadcastingFunction("BITWISE_XOR", {INT32: 1}, np.bitwise_xor),
    BroadcastingFunction("RIGHT_SHIFT", {INT32: 1}, np.right_shift, adjust=_with_a_shift),
    BroadcastingFunction(
        "PRELU",
        {FLOAT: 1, INT8: 1, UINT8: 1},
        lambda x, alpha: np.where(x < 0, alpha * x, x),
        Loss(1),
        roles=("input", "alpha"),
        stretched=("alpha",),
        constants=("alpha",),
    ),
    BroadcastingFunction(
        "SELECT",
        _CHOSEN,
        np.where,
        kind="choice",
        roles=("condition", "first", "second"),
        scales="one",
        stretched=(),
    ),
    BroadcastingFunction(
        "SELECT_V2",
        _CHOSEN,
        np.where,
        kind="choice",
        roles=("condition", "first", "second"),
        scales="one",
        stretched=("condition", "first", "second"),
    ),
)

BINARY_OPERATORS = tuple(map(BroadcastingOperator.of, _FUNCTIONS))
"""Operators with several operands."""


_FEWEST, _MOST = 2, 5
"""Tensors that are added."""


@dataclass(frozen=True, eq=False)
class _SumOfMany(OperatorSpecification):
    """A sum of several tensors of one shape."""

    def results(self, type_: str, configuration: Configuration, parts: ModelParts) -> Results:
        """Return a tensor as each of those that are added."""
        del type_, configuration
        return (parts.tensors[0],)

    def check(self, reading: OperatorReading, parts: ModelParts) -> None:
        """Raise UnknownOperatorForm unless all tensors are alike."""
        (result,), tensors = parts.results, parts.tensors.values()
        if not _FEWEST <= len(tensors) <= _MOST:
            raise UnknownOperatorForm(f"{self.operator} of {len(tensors)} tensors")
        forms = {(value.dtype, value.shape, value.values is None) for value in (*tensors, result)}
        if len(forms) > 1:
            raise UnknownOperatorForm(f"{self.operator} of a constant, or of several shapes")
        super().check(reading, parts)

    def exact(self, options: Options, operands: Operands, results: Results) -> ExactAnswers:
        """Return the sum of the operands."""
        del options
        present = [operand for operand in operands if operand is not None]
        exact = answer(lambda *x: np.asarray(sum(x)), present, results[0], loss=Loss(1))
        if exact.kind == "bits":
            return (exact,)
        with np.errstate(all="ignore"):
            magnitude = sum(np.abs(operand.real) for operand in present)
        return (reals(exact.values, exact.slack + len(present) * EPSILON * magnitude),)


SUM_OF_MANY = _SumOfMany(
    "ADD_N",
    (FLOAT, INT32),
    (ShapeOf(Dimensions("shape")), CountOf(Whole("terms", _FEWEST, _MOST))),
    known=lambda settings: {"size": prod(dimensions(settings, "shape"))},
)
