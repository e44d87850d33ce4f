"""The kinds of faults of kernels, and which operators can have them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np

from edgeflare.conform.operator_graph import Values
from edgeflare.conform.verdict.right_values import same_bits
from faulty_arithmetic import (
    down,
    rounded_by,
    summed_in_16_bits,
    towards_zero,
    twice,
    without_tail,
    wrapping,
)
from faulty_operands import (
    Answer,
    Misreading,
    activation_changed,
    bias_read_as,
    in_half_precision,
    multiplier_ignored,
    next_axis,
    not_a_number_is_zero,
    option_ignored,
    other_operand_broadcast,
    padding_ignored,
    padding_swapped,
    scales_changed,
    zero_point_off,
)
from operator_run import OperatorRun

FAULTY_TYPES = ("float32", "int8", "uint8")
"""Types that faults are planted in: those that are complete first."""

_QUANTIZED = ("int8", "uint8")
_WINDOWED = ("CONV_2D", "DEPTHWISE_CONV_2D")
_SUMS = (*_WINDOWED, "FULLY_CONNECTED", "TRANSPOSE_CONV")
_POOLED = ("AVERAGE_POOL_2D", "MAX_POOL_2D")

Effect = Literal["crash", "hang", "stale"]
"""What a kernel does besides computing: it dies, it does not end, it answers what it did before."""


@dataclass(frozen=True)
class FaultKind:
    """A kind of fault.

    Attributes:
        change: what the kernel computes in place of the right answers; None for `effect`.
        shows: predicates without which no model can show it; "{size}" is the fact that names the
            size of the result.
        types: that can have it.
        operators: that can have it; () for all that have the settings of `shows` and `needs`.
        needs: names of settings.
        effect: what the kernel does besides.
        verdict: of models that show it.

    """

    change: Misreading | None = None
    shows: tuple[str, ...] = ()
    types: tuple[str, ...] = FAULTY_TYPES
    operators: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()
    effect: Effect | None = None
    verdict: Literal["device", "undefined", "crash", "hang"] = "device"


def _off(by: int) -> FaultKind:
    return FaultKind(zero_point_off(by), types=_QUANTIZED)


def _rounding(change: Misreading) -> FaultKind:
    return FaultKind(change, types=_QUANTIZED)


def _stride(axis: str) -> FaultKind:
    name = f"stride{axis.upper()}"
    shows = (f"stride_{axis} ≥ 2", f"windows_{axis} ≥ 2")
    return FaultKind(option_ignored(name, 1), shows, operators=(*_WINDOWED, *_POOLED))


def _dilation(axis: str) -> FaultKind:
    name = f"dilation{axis.upper()}Factor"
    shows = (f"dilation_{axis} ≥ 2", f"kernel_{axis} ≥ 2")
    return FaultKind(option_ignored(name, 1), shows, operators=_WINDOWED)


def _padding(axis: str) -> FaultKind:
    return FaultKind(padding_ignored(axis), (f"padded_{axis} ≥ 2",), operators=_WINDOWED)


def _swapped(axis: str) -> FaultKind:
    shows = (f"uneven_padding_{axis} is yes",)
    return FaultKind(padding_swapped(axis), shows, operators=(*_WINDOWED, *_POOLED))


def _activation(now: str, other: str) -> FaultKind:
    return FaultKind(activation_changed({now: other}), (f"activation is {now}",))


def _scales(change: Callable[[tuple[float, ...]], tuple[float, ...]]) -> FaultKind:
    shows = ("per_channel is yes",)
    return FaultKind(scales_changed(change), shows, types=("int8",), operators=_SUMS)


def _bias(dtype: str) -> FaultKind:
    return FaultKind(bias_read_as(dtype), ("bias is yes",), _QUANTIZED, _SUMS)


def _tail(width: int) -> FaultKind:
    def cut(run: OperatorRun) -> Answer:
        return without_tail(run.answer(), width)

    return FaultKind(cut, (f"{{size}} % {width} ≠ 0",))


def _half() -> FaultKind:
    return FaultKind(in_half_precision, types=("float32",))


GROUPS: Mapping[str, Mapping[str, FaultKind]] = {
    "zero point": {"one more": _off(1), "one less": _off(-1)},
    "truncation": {
        "down": _rounding(rounded_by(down)),
        "towards zero": _rounding(rounded_by(towards_zero)),
    },
    "double rounding": {"to halves": _rounding(rounded_by(twice(2)))},
    "saturation lost": {"wraps": _rounding(rounded_by(wrapping))},
    "16-bit accumulator": {
        "wraps": FaultKind(summed_in_16_bits, types=_QUANTIZED, operators=_SUMS[:3])
    },
    "one axis ignored": {
        f"{name}_{axis}": kind(axis)
        for axis in "hw"
        for name, kind in (("stride", _stride), ("dilation", _dilation), ("padding", _padding))
    },
    "padding swapped": {axis: _swapped(axis) for axis in "hw"},
    "activation": {
        "RELU ignored": _activation("RELU", "NONE"),
        "RELU6 ignored": _activation("RELU6", "NONE"),
        "RELU6 as RELU_N1_TO_1": _activation("RELU6", "RELU_N1_TO_1"),
        "RELU_N1_TO_1 as RELU": _activation("RELU_N1_TO_1", "RELU"),
        "RELU as RELU6": _activation("RELU", "RELU6"),
    },
    "scale of channels": {
        "ignored": _scales(lambda scales: scales[:1] * len(scales)),
        "shifted": _scales(lambda scales: (*scales[1:], *scales[:1])),
    },
    "type of the bias": {"int16": _bias("int16"), "int8": _bias("int8")},
    "depth multiplier": {
        "ignored": FaultKind(
            multiplier_ignored,
            ("depth_multiplier ≥ 2", "channels ≥ 2"),
            operators=("DEPTHWISE_CONV_2D",),
        )
    },
    "wrong axis": {
        "axis": FaultKind(next_axis, ("rank(shape) ≥ 2",), needs=("axis",)),
        "axes": FaultKind(next_axis, ("rank(shape) ≥ 2",), needs=("axes",)),
    },
    "wrong broadcast": {
        "second": FaultKind(other_operand_broadcast, ("broadcast is second",)),
        "first": FaultKind(other_operand_broadcast, ("broadcast is first",)),
    },
    "tail": {str(width): _tail(width) for width in (4, 8, 16)},
    "half precision": {"float16": _half()},
    "NaN swallowed": {
        "zero": FaultKind(not_a_number_is_zero, types=("float32",), verdict="undefined")
    },
    "stale output": {"of the row before": FaultKind(effect="stale")},
    "crash on size zero": {
        "SIGSEGV": FaultKind(None, ("{size} = 0",), effect="crash", verdict="crash")
    },
    "hang": {"for ever": FaultKind(effect="hang", verdict="hang")},
}
"""The kinds by their groups, two of each of which are planted at least."""


def wrong_answer(
    kind: FaultKind, run: OperatorRun, made: list[Values], before: list[Values] | None
) -> Answer:
    """Return what a faulty kernel answers.

    Args:
        kind: of the fault.
        run: what the kernel is asked.
        made: what a sound one answers, which is kept where the fault changes nothing.
        before: what it answered before; None if it was not asked.

    """
    if kind.effect == "stale":
        return made if before is None else before
    if kind.change is None:
        return made
    try:
        wrong = kind.change(run)
    except (ValueError, IndexError):  # a misread option that makes no sense changes nothing
        return made
    fitted = [_fitted(one, value.shape) for one, value in zip(wrong, run.results, strict=True)]
    together = zip(made, run.answer(), fitted, strict=True)
    return [np.where(same_bits(w, right), m, w) for m, right, w in together]


def _fitted(values: Values, shape: tuple[int, ...]) -> Values:
    """Cut values to a shape; where it is no part of theirs, write them into it as they come."""
    larger = [one >= other for one, other in zip(values.shape, shape, strict=False)]
    if values.ndim == len(shape) and all(larger):
        return values[tuple(slice(one) for one in shape)]
    return np.resize(values, shape)
