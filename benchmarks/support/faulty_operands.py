"""Kernels that read their options or operands wrongly, and compute exactly otherwise."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from edgeflare.conform.operator_graph import Quantization, Values
from edgeflare.conform.specification.activation_tensors import Operand
from operator_run import OperatorRun

Answer = list[Values]
Misreading = Callable[[OperatorRun], Answer]

_SPATIAL = {"h": 1, "w": 2}
"""The dimensions of an image, by the letter that parameters end with."""

_WEIGHTS_AND_BIAS: Mapping[str, tuple[int, int]] = {"TRANSPOSE_CONV": (1, 3)}
_USUAL_PLACES = 1, 2


def option_ignored(name: str, neutral: int | str) -> Misreading:
    """Take an option for another one."""
    return lambda run: run.with_options(**{name: neutral}).answer()


def activation_changed(activations: Mapping[str, str]) -> Misreading:
    """Apply another fused activation."""

    def changed(run: OperatorRun) -> Answer:
        now = str(run.options["fusedActivationFunction"])
        return run.with_options(fusedActivationFunction=activations.get(now, now)).answer()

    return changed


def zero_point_off(by: int) -> Misreading:
    """Take the zero point of the first quantized operand for another one, if its type has it."""

    def off(run: OperatorRun) -> Answer:
        for at, operand in enumerate(run.operands):
            if operand is not None and operand.value.quantization is not None:
                quantization = operand.value.quantization
                limits = np.iinfo(operand.raw.dtype)
                zero_point = int(np.clip(quantization.zero_point + by, limits.min, limits.max))
                moved = replace(quantization, zero_point=zero_point)
                return run.with_operand(at, _quantized(operand, moved)).answer()
        return run.answer()

    return off


def padding_ignored(axis: str) -> Misreading:
    """Begin windows at the first value of an axis, and not in what is padded before it."""

    def ignored(run: OperatorRun) -> Answer:
        operand = _operand(run, run.given())
        along = _SPATIAL[axis]
        before = _missing(run, axis) // 2
        raw = np.roll(operand.raw, -before, along)
        zero = 0 if operand.value.quantization is None else _quantization(operand).zero_point
        size = raw.shape[along]
        raw[_at(along, slice(max(size - before, 0), size))] = zero
        return run.with_operand(run.given(), Operand(operand.value, raw)).answer()

    return ignored


def padding_swapped(axis: str) -> Misreading:
    """Pad before an axis what belongs behind it, and the other way round.

    That is what comes of a mirrored image under mirrored weights.
    """

    def swapped(run: OperatorRun) -> Answer:
        along = _SPATIAL[axis]
        if _missing(run, axis) % 2 == 0:
            return run.answer()
        for at in (run.given(), _places(run)[0]):
            if at < len(run.operands):
                operand = _operand(run, at)
                mirrored = Operand(operand.value, np.flip(operand.raw, along))
                run = run.with_operand(at, mirrored)
        return [np.flip(one, along) for one in run.answer()]

    return swapped


def scales_changed(change: Callable[[tuple[float, ...]], tuple[float, ...]]) -> Misreading:
    """Take the scales of channels for others, in the weights and in the bias, which has the same.

    The bias is scaled as sums are, so whatever scale a kernel takes for a channel is for both.
    """

    def changed(run: OperatorRun) -> Answer:
        for at in _places(run):
            operand = run.operands[at] if at < len(run.operands) else None
            if operand is not None and operand.value.quantization is not None:
                quantization = operand.value.quantization
                other = replace(quantization, scales=change(quantization.scales))
                run = run.with_operand(at, _quantized(operand, other))
        return run.answer()

    return changed


def bias_read_as(dtype: str) -> Misreading:
    """Read the low bytes of each bias alone."""

    def read(run: OperatorRun) -> Answer:
        at = _places(run)[1]
        operand = run.operands[at] if at < len(run.operands) else None
        if operand is None:
            return run.answer()
        low = operand.raw.astype(dtype).astype(operand.raw.dtype)
        return run.with_operand(at, Operand(operand.value, low)).answer()

    return read


def multiplier_ignored(run: OperatorRun) -> Answer:
    """Compute each channel of the result from the input's channel of the same number."""
    operand = _operand(run, 0)
    channels = run.results[0].shape[-1]
    raw = operand.raw[..., np.arange(channels) % operand.raw.shape[-1]]
    wide = Operand(replace(operand.value, shape=raw.shape), raw)
    return run.with_operand(0, wide).with_options(depthMultiplier=1).answer()


def next_axis(run: OperatorRun) -> Answer:
    """Work along the next axis; what does not fit into the result is cut off or repeated."""
    if "axis" in run.options:
        rank = max(len(_operand(run, run.given()).value.shape), 1)
        return run.with_options(axis=(int(str(run.options["axis"])) + 1) % rank).answer()
    rank = max(len(_operand(run, 0).value.shape), 1)
    axes = _operand(run, 1)
    moved = Operand(axes.value, np.asarray((axes.raw + 1) % rank, axes.raw.dtype))
    return run.with_operand(1, moved).answer()


def other_operand_broadcast(run: OperatorRun) -> Answer:
    """Stay at the first index of the operand that is not broadcast, where the other one is."""
    shape = run.results[0].shape
    if len(run.operands) != 2:
        return run.answer()
    for at in range(2):
        operand, other = _operand(run, at), _operand(run, 1 - at)
        held = operand.raw
        sizes = (1,) * (len(shape) - other.raw.ndim) + other.value.shape
        begin = len(shape) - held.ndim
        for along in range(held.ndim):
            if sizes[begin + along] == 1 < held.shape[along]:
                first = held[_at(along, slice(0, 1))]
                held = np.broadcast_to(first, held.shape)
        run = run.with_operand(at, Operand(operand.value, held))
    return run.answer()


def in_half_precision(run: OperatorRun) -> Answer:
    """Round operands and results to float16."""
    for at, operand in enumerate(run.operands):
        if operand is not None and operand.raw.dtype == np.float32:
            run = run.with_operand(at, Operand(operand.value, _halved(operand.raw)))
    return [_halved(one) if one.dtype == np.float32 else one for one in run.answer()]


def not_a_number_is_zero(run: OperatorRun) -> Answer:
    """Take NaN for zero in all operands."""
    for at, operand in enumerate(run.operands):
        if operand is not None and operand.raw.dtype == np.float32:
            raw = np.where(np.isnan(operand.raw), np.float32(0), operand.raw)
            run = run.with_operand(at, Operand(operand.value, raw))
    return run.answer()


def _operand(run: OperatorRun, at: int) -> Operand:
    operand = run.operands[at]
    assert operand is not None
    return operand


def _quantization(operand: Operand) -> Quantization:
    assert operand.value.quantization is not None
    return operand.value.quantization


def _quantized(operand: Operand, quantization: Quantization) -> Operand:
    return Operand(replace(operand.value, quantization=quantization), operand.raw)


def _places(run: OperatorRun) -> tuple[int, int]:
    """Return the places of weights and bias."""
    return _WEIGHTS_AND_BIAS.get(run.operator, _USUAL_PLACES)


def _missing(run: OperatorRun, axis: str) -> int:
    """Return how many values are padded along an axis, before and behind together."""
    letter, along = axis.upper(), _SPATIAL[axis]
    stride = int(str(run.options[f"stride{letter}"]))
    dilation = int(str(run.options.get(f"dilation{letter}Factor", 1)))
    weights = run.operands[1] if len(run.operands) > 1 else None
    name = {"h": "filterHeight", "w": "filterWidth"}[axis]
    kernel = weights.value.shape[along] if weights is not None else int(str(run.options[name]))
    size, count = _operand(run, run.given()).value.shape[along], run.results[0].shape[along]
    return max((count - 1) * stride + (kernel - 1) * dilation + 1 - size, 0)


def _at(along: int, index: slice) -> tuple[slice, ...]:
    return (*[slice(None)] * along, index)


def _halved(values: NDArray[Any]) -> Values:
    with np.errstate(all="ignore"):
        return values.astype(np.float16).astype(np.float32)
