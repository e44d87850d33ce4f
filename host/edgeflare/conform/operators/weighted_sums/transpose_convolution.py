"""TRANSPOSE_CONV."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import prod
from typing import TypeVar

import numpy as np

from edgeflare.conform.operator_graph import GraphValue, Option
from edgeflare.conform.operators.weighted_sums.sum_answer import Reals
from edgeflare.conform.operators.weighted_sums.weighted_sum import Shape, WeightedSum
from edgeflare.conform.operators.window_settings import (
    SIZES,
    Window,
    Work,
    fitted_sizes,
    read_windows,
    size_parameter,
    tamed_windows,
    window_options,
    window_parameters,
    windows_of,
)
from edgeflare.conform.specification.operator_specification import (
    DYNAMIC,
    INT8,
    UnknownOperatorForm,
)
from edgeflare.conform.specification.parameter import (
    Configuration,
    Setting,
    Whole,
    whole,
    word,
    yes,
)

_AXES = "hw"
T = TypeVar("T")


class TransposeConvolution(WeightedSum):
    """TRANSPOSE_CONV: the gradient of a convolution with regard to its input.

    Its result is as large as that input, for which each count of windows leaves as many sizes as
    the stride is. `offset_h` and `offset_w` say how far it is from the usual one: smaller by so
    much than count · stride if padded, else larger than what the windows cover.
    """

    operator = "TRANSPOSE_CONV"
    channel_axis = 0
    needs_values = (DYNAMIC,)
    shape_parameters = (
        size_parameter("batch", 3, (0,)),
        *window_parameters(_AXES, 17, dilated=1),
        *(Whole(f"offset_{one}", 0, 4, limit=4096, unit="pixels") for one in _AXES),
        size_parameter("channels", 33, unit="channels"),
        size_parameter("out_channels", 33, unit="channels"),
    )

    def shapes(self, configuration: Configuration) -> tuple[Shape, Shape, Shape]:
        """Return the shapes of input, weights and result."""
        batch, channels = whole(configuration, "batch"), whole(configuration, "channels")
        out = whole(configuration, "out_channels")
        windows = windows_of(configuration, _AXES)
        sizes = [
            _result_size(window, whole(configuration, f"offset_{one}"))
            for one, window in zip(_AXES, windows, strict=True)
        ]
        return (
            (batch, *(one.size for one in windows), channels),
            (out, *(one.kernel for one in windows), channels),
            (batch, *sizes, out),
        )

    def shape_fault(self, configuration: Configuration) -> str | None:
        """Return why shapes do not fit, or None."""
        for one in _AXES:
            offset, stride = (
                whole(configuration, f"{name}_{one}") for name in ("offset", "stride")
            )
            if offset >= stride:
                return f"offset_{one} is {offset}, not below the stride of {stride}"
        return None

    def terms(self, configuration: Configuration) -> int:
        """Return how many products are added for each value of the result, at most."""
        taps = (-(-one.kernel // one.stride) for one in windows_of(configuration, _AXES))
        return prod(taps) * whole(configuration, "channels")

    def options(self, configuration: Configuration) -> Mapping[str, Option]:
        """Return the options but for the activation and the type of the bias."""
        return window_options(configuration, _AXES)

    def version(self, type_: str, configuration: Configuration) -> int:
        """Return the lowest version that does it."""
        if configuration.get("bias_type") == "int32":
            return 5
        if word(configuration, "activation") != "NONE":
            return 4
        if yes(configuration, "bias"):
            return 3
        return 2 if type_ == INT8 else 1

    def placed(
        self,
        data: GraphValue,
        weights: GraphValue,
        bias: GraphValue,
        result: GraphValue,
        configuration: Configuration,
    ) -> Sequence[GraphValue | None]:
        """Return the operands in the operator's order."""
        shape = GraphValue("int32", (4,)).constant(np.asarray(result.shape))
        return (shape, weights, data, *([bias] if yes(configuration, "bias") else []))

    def found(self, operands: Sequence[T | None]) -> tuple[T | None, T | None, T | None]:
        """Return input, weights and bias among the operands."""
        _, weights, data, *others = operands
        return data, weights, others[0] if others else None

    def read_shapes(
        self, options: Mapping[str, Option], data: Shape, weights: Shape, result: Shape
    ) -> Mapping[str, Setting]:
        """Return the settings of `shape_parameters`."""
        if len(data) != 4 or len(weights) != 4:
            raise UnknownOperatorForm(f"weights of {weights} for an input of {data}")
        found = read_windows(options, data[1:3], weights[1:3], _AXES)
        windows = windows_of(found, _AXES)
        for one, window, size in zip(_AXES, windows, result[1:3], strict=True):
            offset = abs(size - _result_size(window, 0))
            if size != _result_size(window, offset):
                raise UnknownOperatorForm(f"a result of {result} for an input of {data}")
            found[f"offset_{one}"] = offset
        return {**found, "batch": data[0], "channels": data[3], "out_channels": result[3]}

    def product(
        self, options: Mapping[str, Option], data: Shape, weights: Shape, result: Shape
    ) -> Callable[[Reals, Reals], Reals]:
        """Return the sums of products as a function of input and weights."""
        settings = read_windows(options, result[1:3], weights[1:3], _AXES)
        rows, columns = windows_of(settings, _AXES)

        def product(x: Reals, w: Reals) -> Reals:
            size = (data[0], _room(rows, data[1]), _room(columns, data[2]), result[3])
            wide = np.zeros(size)
            for i in range(rows.kernel):
                for j in range(columns.kernel):
                    down = slice(i, i + data[1] * rows.stride, rows.stride)
                    right = slice(j, j + data[2] * columns.stride, columns.stride)
                    wide[:, down, right] += x @ w[:, i, j, :].T
            top, left = rows.before, columns.before
            return wide[:, top : top + result[1], left : left + result[2]]

        return product

    def drawn_shapes(self, rng: np.random.Generator) -> dict[str, Setting]:
        """Return settings of `shape_parameters` that fit each other and are not too large."""
        drawn = {one.name: one.draw(rng) for one in self.shape_parameters}
        drawn = tamed_windows(drawn, _AXES, rng)
        for one in _AXES:
            drawn[f"offset_{one}"] = whole(drawn, f"offset_{one}") % whole(drawn, f"stride_{one}")
            if rng.random() < 1 / 2:
                drawn[f"offset_{one}"] = 0
        sizes = ("batch", *(SIZES[one] for one in _AXES), "channels", "out_channels")
        return fitted_sizes(drawn, sizes, dict, self._work, rng)

    def _work(self, settings: Configuration) -> Work:
        data, weights, result = map(prod, self.shapes(settings))
        return data, weights, result, result * self.terms(settings)

    def shaped(self, configuration: Configuration, shape: Shape) -> Mapping[str, Setting] | None:  # noqa: ARG002
        """Return the settings of shapes for an input of another shape, None if there are none."""
        if len(shape) != len(_AXES) + 2:
            return None
        return dict(zip(("batch", "height", "width", "channels"), shape, strict=True))

    def facts(self, type_: str, configuration: Configuration) -> Mapping[str, Setting]:  # noqa: ARG002
        """Return the sizes of result and sums."""
        result = self.shapes(configuration)[2]
        sizes = {"out_height": result[1], "out_width": result[2], "result_size": prod(result)}
        return {**sizes, "terms": self.terms(configuration)}


def _result_size(window: Window, offset: int) -> int:
    """Return the size of the result along one dimension; `window` has the input's size."""
    if window.padding == "SAME":
        return window.size * window.stride - offset
    return (window.size - 1) * window.stride + window.kernel + offset


def _room(window: Window, count: int) -> int:
    """Return how much room the windows and what surrounds them need in the result."""
    return max(window.size + window.before, count * window.stride + window.kernel)
