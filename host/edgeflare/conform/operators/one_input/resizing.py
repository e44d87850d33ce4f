"""Images in another size, by the nearest value or between the four around."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from edgeflare.conform.operator_graph import GraphValue, Option, Values
from edgeflare.conform.operators.one_input.one_input_operator import (
    OneInputOperator,
    ResultQuantization,
    constant,
    switched,
)
from edgeflare.conform.specification.operator_specification import (
    EPSILON,
    FLOAT,
    INT8,
    INT16,
    UINT8,
    ExactAnswer,
    Operand,
    UnknownOperatorForm,
    bits,
    reals,
    steps,
)
from edgeflare.conform.specification.parameter import (
    Choice,
    Configuration,
    OperatorParameter,
    Setting,
    Whole,
    whole,
    yes,
)

_SIZES = ("batch", "input_h", "input_w", "channels")
_RESIZED = (1, 2)
"""The dimensions that change their size."""

_USUAL_SIZE = 24
_LARGEST_SIZE = 2**20
_MOST_VALUES = 1000
"""Most values of a tensor that is drawn."""

_TEN_PLACES = 2.0**-10
_ROUNDINGS = 6
"""Roundings in a mean of four values in float32."""


class Resizing(OneInputOperator):
    """An operator from (batch, h, w, channels) to another h and w."""

    quantized_result: ResultQuantization = "equal"
    ranks = (4, 4)
    constant_operands = 1
    own = (
        Whole("output_h", 1, _USUAL_SIZE, limit=_LARGEST_SIZE, unit="size"),
        Whole("output_w", 1, _USUAL_SIZE, limit=_LARGEST_SIZE, unit="size"),
        Choice("align_corners", [False, True]),
        Choice("half_pixel_centers", [False, True]),
    )

    def shapes(self) -> tuple[OperatorParameter, ...]:
        """Return the sizes of the operand."""
        return (
            Whole("batch", 0, 3, limit=_LARGEST_SIZE, rare=(0,)),
            Whole("input_h", 1, _USUAL_SIZE, limit=_LARGEST_SIZE, unit="size"),
            Whole("input_w", 1, _USUAL_SIZE, limit=_LARGEST_SIZE, unit="size"),
            Whole("channels", 0, _USUAL_SIZE, limit=_LARGEST_SIZE, rare=(0,)),
        )

    def input_shape(self, configuration: Configuration) -> tuple[int, ...]:
        """Return the shape of the operand."""
        return tuple(whole(configuration, name) for name in _SIZES)

    def input_sizes(self, shape: tuple[int, ...]) -> Mapping[str, Setting]:
        """Return the sizes of the operand."""
        return dict(zip(_SIZES, shape, strict=True))

    def options(self, configuration: Configuration) -> Mapping[str, Option]:
        """Return where values are taken to lie."""
        return {
            "alignCorners": yes(configuration, "align_corners"),
            "halfPixelCenters": yes(configuration, "half_pixel_centers"),
        }

    def constants(self, configuration: Configuration) -> tuple[GraphValue, ...]:
        """Return the size: (2,)."""
        size = whole(configuration, "output_h"), whole(configuration, "output_w")
        return (constant(size),)

    def settings(
        self, options: Mapping[str, Option], constants: Sequence[Values]
    ) -> Mapping[str, Setting]:
        """Return the size, and where values are taken to lie."""
        if constants[0].size != len(_RESIZED):
            raise UnknownOperatorForm(f"a size of {constants[0].size} dimensions")
        height, width = (int(one) for one in constants[0].ravel())
        return {
            "output_h": height,
            "output_w": width,
            "align_corners": switched(options, "alignCorners"),
            "half_pixel_centers": switched(options, "halfPixelCenters"),
        }

    def fitting(
        self, configuration: Configuration, rng: np.random.Generator
    ) -> Mapping[str, Setting]:
        """Return settings that are allowed together, and fewer channels of large images."""
        fitting: dict[str, Setting] = {}
        if yes(configuration, "align_corners") and yes(configuration, "half_pixel_centers"):
            fitting["align_corners" if rng.random() < 1 / 2 else "half_pixel_centers"] = False
        pixels = max(
            whole(configuration, f"{place}_h") * whole(configuration, f"{place}_w")
            for place in ("input", "output")
        )
        images = max(_MOST_VALUES // pixels, 1)
        batch = min(whole(configuration, "batch"), images)
        channels = min(whole(configuration, "channels"), images // max(batch, 1))
        return {**fitting, "batch": batch, "channels": channels}

    def adapted(self, type_: str, configuration: Configuration, changed: str) -> Configuration:
        """Return a configuration after one setting was changed, with others that follow it."""
        following = super().adapted(type_, configuration, changed)
        exclusive = {"align_corners": "half_pixel_centers", "half_pixel_centers": "align_corners"}
        if changed in exclusive and yes(configuration, changed):
            return {**following, exclusive[changed]: False}
        return following

    def fault(self, type_: str, configuration: Configuration) -> str | None:  # noqa: ARG002
        """Return why a configuration is no valid model, or None."""
        if yes(configuration, "align_corners") and yes(configuration, "half_pixel_centers"):
            return "align_corners and half_pixel_centers exclude each other"
        return None

    def version(self, type_: str, configuration: Configuration) -> int:
        """Return the lowest version that has a configuration."""
        late = yes(configuration, "half_pixel_centers") or (
            self.operator == "RESIZE_NEAREST_NEIGHBOR" and yes(configuration, "align_corners")
        )
        return max(super().version(type_, configuration), 3 if late else 1)

    def results(self, type_: str, configuration: Configuration) -> tuple[GraphValue, ...]:
        """Return the images in their new size."""
        batch, _, _, channels = self.input_shape(configuration)
        height, width = whole(configuration, "output_h"), whole(configuration, "output_w")
        return (self.result(type_, configuration, (batch, height, width, channels)),)


class NearestResizing(Resizing):
    """The value that lies nearest."""

    def answers(
        self,
        options: Mapping[str, Option],
        operand: Operand,
        constants: Sequence[Values],
        results: Sequence[GraphValue],  # noqa: ARG002
    ) -> tuple[ExactAnswer, ...]:
        """Return raw values."""
        raw = operand.raw
        for at, size in zip(_RESIZED, constants[0].ravel(), strict=True):
            raw = np.take(raw, _nearest(raw.shape[at], int(size), options), at)
        return (bits(raw),)


class BilinearResizing(Resizing):
    """The mean of the four values around, weighted by how near they are."""

    def answers(
        self,
        options: Mapping[str, Option],
        operand: Operand,
        constants: Sequence[Values],
        results: Sequence[GraphValue],  # noqa: ARG002
    ) -> tuple[ExactAnswer, ...]:
        """Return the means, with what rounding them and their places loses.

        Places among int16 values are fixed-point numbers of ten places, whatever the kernel.
        """
        values, dtype = operand.real, operand.raw.dtype
        lost = (_ROUNDINGS * EPSILON if dtype == np.float32 else 0.0) * np.abs(values)
        for axis, size in zip(_RESIZED, constants[0].ravel(), strict=True):
            among = _Among.of(values.shape[axis], int(size), axis, options)
            if dtype in (np.float32, np.int16):
                rounding = _TEN_PLACES if dtype == np.int16 else 4 * EPSILON * among.size / size
                lost = among.lost(values, lost, rounding)
            values = among.interpolated(values)
        if operand.value.quantization is None:
            return (reals(values, lost),)
        return (steps(values, lost if dtype == np.int16 else 0.0),)


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
    def of(cls, size: int, wanted: int, axis: int, options: Mapping[str, Option]) -> _Among:
        places = np.clip(_places(size, wanted, options), 0, size - 1)
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


def _places(size: int, wanted: int, options: Mapping[str, Option]) -> NDArray[np.float64]:
    """Return where the values of a result lie among those of the operand: (wanted,)."""
    index = np.arange(wanted, dtype=np.float64)
    if switched(options, "alignCorners") and wanted > 1:
        return index * ((size - 1) / (wanted - 1))
    if switched(options, "halfPixelCenters"):
        return (index + 0.5) * (size / wanted) - 0.5
    return index * (size / wanted)


def _nearest(size: int, wanted: int, options: Mapping[str, Option]) -> NDArray[np.int64]:
    """Return the indexes of the nearest values: (wanted,).

    Places are numbers of float32 by definition, which decides where two values are equally near.
    """
    index = np.arange(wanted, dtype=np.float32)
    if switched(options, "alignCorners") and wanted > 1:
        places = index * (np.float32(size - 1) / np.float32(wanted - 1)) + np.float64(0.5)
    elif switched(options, "halfPixelCenters"):
        places = (index + np.float32(0.5)) * (np.float32(size) / np.float32(wanted))
    else:
        places = index * (np.float32(size) / np.float32(wanted))
    return np.asarray(np.clip(np.floor(places), 0, size - 1), np.int64)


RESIZINGS = (
    BilinearResizing("RESIZE_BILINEAR", (FLOAT, INT8, UINT8, INT16), {INT8: 2, INT16: 4}),
    NearestResizing("RESIZE_NEAREST_NEIGHBOR", (FLOAT, INT8, UINT8, INT16), {INT8: 2, INT16: 4}),
)
"""Operators that give images another size."""
