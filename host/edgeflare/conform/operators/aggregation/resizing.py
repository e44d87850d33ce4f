"""Images in another size, by the nearest value or between the four around."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from edgeflare.conform.operator_graph import GraphValue
from edgeflare.conform.operators.aggregation.aggregate_operator import AggregateOperator
from edgeflare.conform.operators.one_input_operator import Answers
from edgeflare.conform.specification.activation_tensors import FLOAT, INT8, INT16, UINT8, Operand
from edgeflare.conform.specification.exact_answer import EPSILON, ExactAnswer, bits, reals, steps
from edgeflare.conform.specification.model_parts import ItemOf, OptionOf, SizeOf
from edgeflare.conform.specification.parameter import (
    Choice,
    Configuration,
    Settings,
    Whole,
    whole,
    yes,
)

_RESIZED = ("output_h", "output_w")
_USUAL_SIZE = 24
_LARGEST_SIZE = 2**20
_MOST_VALUES = 1000
"""Most values of a tensor that is drawn."""

_TEN_PLACES = 2.0**-10
_ROUNDINGS = 6
"""Roundings in a mean of four values in float32."""


def _size(name: str) -> Whole:
    return Whole(name, 1, _USUAL_SIZE, limit=_LARGEST_SIZE, unit="size")


def _count(name: str, high: int) -> Whole:
    return Whole(name, 0, high, limit=_LARGEST_SIZE, rare=(0,))


_EXCLUSIVE = {"align_corners": "half_pixel_centers", "half_pixel_centers": "align_corners"}

_PLACES = (
    SizeOf(_count("batch", 3), 0, 4),
    SizeOf(_size("input_h"), 1, 4),
    SizeOf(_size("input_w"), 2, 4),
    SizeOf(_count("channels", _USUAL_SIZE), 3, 4),
    ItemOf(_size("output_h"), 0, 2),
    ItemOf(_size("output_w"), 1, 2),
    OptionOf(Choice("align_corners", [False, True]), "alignCorners", False),
    OptionOf(Choice("half_pixel_centers", [False, True]), "halfPixelCenters", False),
)


def _draw_moderate(settings: Settings, rng: np.random.Generator) -> Settings:
    """Return settings that are allowed together, and fewer channels of large images."""
    fitting = dict(settings)
    if all(yes(settings, option) for option in _EXCLUSIVE):
        fitting["align_corners" if rng.random() < 1 / 2 else "half_pixel_centers"] = False
    pixels = max(
        whole(settings, f"{place}_h") * whole(settings, f"{place}_w")
        for place in ("input", "output")
    )
    images = max(_MOST_VALUES // pixels, 1)
    batch = min(whole(settings, "batch"), images)
    channels = min(whole(settings, "channels"), images // max(batch, 1))
    return {**fitting, "batch": batch, "channels": channels}


def _fit_modes(settings: Settings, changed: str) -> Settings:
    if changed in _EXCLUSIVE and yes(settings, changed):
        return {**settings, _EXCLUSIVE[changed]: False}
    return settings


def _exclude(_: str, settings: Configuration) -> str | None:
    if all(yes(settings, option) for option in _EXCLUSIVE):
        return "align_corners and half_pixel_centers exclude each other"
    return None


def _resized(form: GraphValue, settings: Configuration) -> tuple[GraphValue, ...]:
    shape = ("batch", *_RESIZED, "channels")
    return (replace(form, shape=tuple(whole(settings, axis) for axis in shape)),)


def _nearest_values(settings: Configuration, operand: Operand, _: GraphValue) -> ExactAnswer:
    """Return the raw values that lie nearest."""
    raw = operand.raw
    for at, name in enumerate(_RESIZED, 1):
        raw = np.take(raw, _nearest(raw.shape[at], whole(settings, name), settings), at)
    return bits(raw)


def _bilinear(settings: Configuration, operand: Operand, _: GraphValue) -> ExactAnswer:
    """Return the means of the four values around, weighted by how near they are.

    With what rounding them and their places loses. Places among int16 values are fixed-point
    numbers of ten places, whatever the kernel.
    """
    values, dtype = operand.real, operand.raw.dtype
    lost = (_ROUNDINGS * EPSILON if dtype == np.float32 else 0.0) * np.abs(values)
    for axis, name in enumerate(_RESIZED, 1):
        size = whole(settings, name)
        among = _Among.of(values.shape[axis], size, axis, settings)
        if dtype in (np.float32, np.int16):
            rounding = _TEN_PLACES if dtype == np.int16 else 4 * EPSILON * among.size / size
            lost = among.lost(values, lost, rounding)
        values = among.interpolated(values)
    if operand.value.quantization is None:
        # Real values of another operator's result, which is a graph's, lose nothing.
        return reals(values, lost if dtype == np.float32 else 0.0)
    return steps(values, lost if dtype == np.int16 else 0.0)


@dataclass(frozen=True, slots=True)
class _Among:
    """Where the values of a result lie among those of an operand, along one axis.

    Attributes:
        size: size of the operand along the axis.
        axis: 1 or 2.
        first: index of the value before each place, (results).
        weights: weight of the value behind it, from 0 to 1, (results).

    """

    size: int
    axis: int
    first: NDArray[np.int64]
    weights: NDArray[np.float64]

    @classmethod
    def of(cls, size: int, wanted: int, axis: int, settings: Configuration) -> _Among:
        places = np.clip(_places(size, wanted, settings), 0, size - 1)
        first = np.floor(places).astype(np.int64)
        return cls(size, axis, first, places - first)

    def interpolated(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the values of the result: (batch, h, w, channels)."""
        one, other = self._taken(values, 0), self._taken(values, 1)
        return one + (other - one) * self._column(self.weights)

    def lost(
        self, values: NDArray[np.float64], lost: NDArray[np.float64], rounding: float
    ) -> NDArray[np.float64]:
        """Return by how much each value of the result may be off.

        Args:
            values: values of the operand, (batch, h, w, channels).
            lost: what each of them may be off by, likewise.
            rounding: rounding of the distance of two places, which is added up.

        """
        # A place that lies on a value may be shifted to before it.
        around = [self._taken(values, step) for step in (-1, 0, 1, 2)]
        spread = np.max(around, 0) - np.min(around, 0)
        shifts = (np.arange(len(self.first)) + 2) / 2 * rounding
        most = np.maximum(self._taken(lost, 0), self._taken(lost, 1))
        return np.asarray(most + spread * self._column(shifts), np.float64)

    def _taken(self, values: NDArray[np.float64], step: int) -> NDArray[np.float64]:
        places = np.clip(self.first + step, 0, self.size - 1)
        return np.asarray(np.take(values, places, self.axis), np.float64)

    def _column(self, numbers: NDArray[np.float64]) -> NDArray[np.float64]:
        return numbers.reshape((-1, 1, 1) if self.axis == 1 else (-1, 1))


def _places(size: int, wanted: int, settings: Configuration) -> NDArray[np.float64]:
    """Return where the values of a result lie among those of the operand: (wanted,)."""
    index = np.arange(wanted, dtype=np.float64)
    if yes(settings, "align_corners") and wanted > 1:
        return index * ((size - 1) / (wanted - 1))
    if yes(settings, "half_pixel_centers"):
        return (index + 0.5) * (size / wanted) - 0.5
    return index * (size / wanted)


def _nearest(size: int, wanted: int, settings: Configuration) -> NDArray[np.int64]:
    """Return the indexes of the nearest values: (wanted,).

    Places are numbers of float32 by definition, which decides where two values are equally near.
    """
    index = np.arange(wanted, dtype=np.float32)
    if yes(settings, "align_corners") and wanted > 1:
        places = index * (np.float32(size - 1) / np.float32(wanted - 1)) + np.float64(0.5)
    elif yes(settings, "half_pixel_centers"):
        places = (index + np.float32(0.5)) * (np.float32(size) / np.float32(wanted))
    else:
        places = index * (np.float32(size) / np.float32(wanted))
    return np.asarray(np.clip(np.floor(places), 0, size - 1), np.int64)


def _resizing(operator: str, answers: Answers, late: Sequence[str]) -> AggregateOperator:
    """Return an operator from (batch, h, w, channels) to another h and w.

    The modes that are `late` came in version 3.
    """
    return AggregateOperator(
        operator,
        (FLOAT, INT8, UINT8, INT16),
        _PLACES,
        answers,
        written=_resized,
        quantized_result="operand",
        versions={INT8: 2, INT16: 4},
        least_version=lambda settings: 3 if any(yes(settings, option) for option in late) else 1,
        varied=_draw_moderate,
        fit=_fit_modes,
        refused=_exclude,
    )


RESIZINGS = (
    _resizing("RESIZE_BILINEAR", _bilinear, ("half_pixel_centers",)),
    _resizing("RESIZE_NEAREST_NEIGHBOR", _nearest_values, tuple(_EXCLUSIVE)),
)
"""Operators that give images another size."""
