"""TRANSPOSE_CONV."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import prod

import numpy as np

from edgeflare.conform.operator_graph import GraphValue
from edgeflare.conform.operators.weighted_sums.convolutions import WeightedChannels
from edgeflare.conform.operators.weighted_sums.sum_tensors import USUAL_TYPES
from edgeflare.conform.operators.weighted_sums.weighted_sum import WeightedSum
from edgeflare.conform.operators.window_settings import (
    SIZES,
    Window,
    fitted_sizes,
    size_parameter,
    tamed_windows,
    window_places,
    windows_of,
)
from edgeflare.conform.specification.activation_tensors import (
    ASYMMETRIC,
    FLOAT_INPUTS,
    INT8,
    Reals,
    Shape,
    UnknownOperatorForm,
)
from edgeflare.conform.specification.model_parts import (
    ModelParts,
    Place,
    ReadFrom,
    SizeOf,
    whole_constant,
)
from edgeflare.conform.specification.parameter import (
    Configuration,
    Setting,
    Settings,
    Whole,
    whole,
    word,
    yes,
)

_AXES = "hw"


@dataclass(frozen=True, eq=False)
class _TransposeConvolution(WeightedSum):
    """The gradient of a convolution with regard to its input.

    Its result is as large as that input, for which each count of windows leaves as many sizes as
    the stride is. `offset_h` and `offset_w` say how far it is from the usual one: smaller by so
    much than count · stride if padded, else larger than what the windows cover.
    """

    def result_shape(self, configuration: Configuration) -> Shape:
        """Return the shape of the result."""
        sizes = (
            _result_size(window, whole(configuration, f"offset_{axis}"))
            for axis, window in zip(_AXES, windows_of(configuration, _AXES), strict=True)
        )
        return (whole(configuration, "batch"), *sizes, whole(configuration, "out_channels"))

    def shape_fault(self, configuration: Configuration) -> str | None:
        """Return why shapes do not fit, or None."""
        for axis in _AXES:
            offset, stride = (
                whole(configuration, f"{name}_{axis}") for name in ("offset", "stride")
            )
            if offset >= stride:
                return f"offset_{axis} is {offset}, not below the stride of {stride}"
        return None

    def terms(self, configuration: Configuration) -> int:
        """Return how many products are added for each value of the result, at most."""
        taps = (-(-window.kernel // window.stride) for window in windows_of(configuration, _AXES))
        return prod(taps) * whole(configuration, "channels")

    def version(self, type_: str, configuration: Configuration) -> int:
        """Return the lowest version that does it."""
        if configuration.get("bias_type") == "int32":
            return 5
        if word(configuration, "activation") != "NONE":
            return 4
        if yes(configuration, "bias"):
            return 3
        return 2 if type_ in (INT8, ASYMMETRIC) else 1

    def fill(
        self, type_: str, configuration: Configuration, parts: ModelParts, rng: np.random.Generator
    ) -> None:
        """Add drawn weights and a bias, and the shape of the result."""
        super().fill(type_, configuration, parts, rng)
        parts.tensors[0] = whole_constant(np.asarray(self.result_shape(configuration), np.int32))

    def without_bias(self, parts: ModelParts, bias: GraphValue) -> None:
        """Write nothing, as converters do where there is no bias."""

    def product(
        self, configuration: Configuration, result: Shape
    ) -> Callable[[Reals, Reals], Reals]:
        """Return the sums of products as a function of input and weights."""
        sizes = {SIZES[axis]: size for axis, size in zip(_AXES, result[1:3], strict=True)}
        rows, columns = windows_of({**configuration, **sizes}, _AXES)

        def product(x: Reals, w: Reals) -> Reals:
            size = (len(x), _room(rows, x.shape[1]), _room(columns, x.shape[2]), result[3])
            wide = np.zeros(size)
            for i in range(rows.kernel):
                for j in range(columns.kernel):
                    down = slice(i, i + x.shape[1] * rows.stride, rows.stride)
                    right = slice(j, j + x.shape[2] * columns.stride, columns.stride)
                    wide[:, down, right] += x @ w[:, i, j, :].T
            top, left = rows.before, columns.before
            return wide[:, top : top + result[1], left : left + result[2]]

        return product

    def fitting_shapes(self, drawn: Settings, rng: np.random.Generator) -> Settings:
        """Return drawn settings that fit each other and are not too large."""
        drawn = tamed_windows(drawn, _AXES, rng)
        for name in _AXES:
            drawn[f"offset_{name}"] = whole(drawn, f"offset_{name}") % whole(
                drawn, f"stride_{name}"
            )
            if rng.random() < 1 / 2:
                drawn[f"offset_{name}"] = 0
        sizes = ("batch", *(SIZES[name] for name in _AXES), "channels", "out_channels")
        return fitted_sizes(drawn, sizes, dict, self.work, rng)

    def facts(self, type_: str, configuration: Configuration) -> Mapping[str, Setting]:  # noqa: ARG002
        """Return the sizes of result and sums."""
        result = self.result_shape(configuration)
        sizes = {"out_height": result[1], "out_width": result[2], "result_size": prod(result)}
        return {**sizes, "terms": self.terms(configuration)}


def _result_size(window: Window, offset: int) -> int:
    """Return the size of the result along one dimension; `window` has the input's size."""
    if window.padding == "SAME":
        return window.size * window.stride - offset
    return (window.size - 1) * window.stride + window.kernel + offset


def _offset_of(axis: str) -> Place:
    """Return the place of how far the result is from the usual size."""
    at = _AXES.index(axis) + 1

    def reading(parts: ModelParts) -> Setting:
        data, weights, result = (
            value.shape for value in (parts.tensor(2), parts.tensor(1), parts.results[0])
        )
        stride, padding = parts.options[f"stride{axis.upper()}"], parts.options["padding"]
        window = Window(data[at], weights[at], int(str(stride)), 1, str(padding))
        offset = abs(result[at] - _result_size(window, 0))
        if result[at] != _result_size(window, offset):
            raise UnknownOperatorForm(f"a result of {result} for an input of {data}")
        return offset

    return ReadFrom(Whole(f"offset_{axis}", 0, 4, limit=4096, unit="pixels"), reading)


TRANSPOSE_CONVOLUTION = _TransposeConvolution(
    "TRANSPOSE_CONV",
    USUAL_TYPES,
    (
        SizeOf(size_parameter("batch", 3, (0,)), 0, 4, 2),
        *window_places(
            _AXES, 17, dilated=1, kernel=lambda size, at: SizeOf(size, 1 + at, 4, 1), data=2
        ),
        *map(_offset_of, _AXES),
        WeightedChannels(size_parameter("channels", 33, unit="channels"), 4, 3, data=2),
        SizeOf(size_parameter("out_channels", 33, unit="channels"), 0, 4, 1),
    ),
    channel_axis=0,
    data=2,
    bias=3,
    needs_values=FLOAT_INPUTS,
)


def _room(window: Window, count: int) -> int:
    """Return how much room the windows and what surrounds them need in the result."""
    return max(window.size + window.before, count * window.stride + window.kernel)
