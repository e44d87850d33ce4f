"""CONV_2D, DEPTHWISE_CONV_2D and CONV_3D."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import prod

import numpy as np

from edgeflare.conform.operator_graph import Option
from edgeflare.conform.operators.weighted_sums.sum_answer import Reals
from edgeflare.conform.operators.weighted_sums.weighted_sum import Shape, WeightedSum
from edgeflare.conform.operators.window_settings import (
    SIZES,
    Window,
    Work,
    fitted_sizes,
    read_window,
    read_windows,
    size_parameter,
    tamed_windows,
    widened,
    window_facts,
    window_options,
    window_parameters,
    window_values,
    windows_fault,
    windows_of,
)
from edgeflare.conform.specification.operator_specification import (
    DYNAMIC,
    FLOAT,
    INT8,
    UnknownOperatorForm,
)
from edgeflare.conform.specification.parameter import Configuration, Setting, whole


class _WindowedSum(WeightedSum):
    """A weighted sum of (batch, *sizes, channels) over windows.

    Attributes:
        axes: letters of the sizes, in their order.
        channel_settings: the parameters of channels, of which that of the input is the first.

    """

    axes: str
    channel_settings: tuple[str, ...]

    def shape_fault(self, configuration: Configuration) -> str | None:
        """Return why shapes do not fit, or None."""
        return windows_fault(configuration, self.axes)

    def terms(self, configuration: Configuration) -> int:
        """Return how many products are added for each value of the result."""
        kernels = prod(whole(configuration, f"kernel_{one}") for one in self.axes)
        return kernels * self.depth(configuration)

    def depth(self, configuration: Configuration) -> int:
        """Return how many channels are added for each value of the result."""
        return whole(configuration, "channels")

    def options(self, configuration: Configuration) -> Mapping[str, Option]:
        """Return the options but for the activation and the type of the bias."""
        return window_options(configuration, self.axes)

    def drawn_shapes(self, rng: np.random.Generator) -> dict[str, Setting]:
        """Return settings of `shape_parameters` that fit each other and are not too large."""
        drawn = {one.name: one.draw(rng) for one in self.shape_parameters}
        drawn = tamed_windows(drawn, self.axes, rng)
        if "groups" in drawn and rng.random() < 1 / 2:
            drawn["groups"] = 1
        channels = [one for one in self.channel_settings if one != "groups"]
        sizes = ["batch", *(SIZES[one] for one in self.axes), *channels]
        return fitted_sizes(drawn, sizes, self.fitted, self._work, rng)

    def fitted(self, settings: Mapping[str, Setting]) -> dict[str, Setting]:
        """Return settings whose windows have room."""
        return widened(settings, self.axes)

    def _work(self, settings: Configuration) -> Work:
        data, weights, result = map(prod, self.shapes(settings))
        return data, weights, result, result * self.terms(settings)

    def shaped(self, configuration: Configuration, shape: Shape) -> Mapping[str, Setting] | None:  # noqa: ARG002
        """Return the settings of shapes for an input of another shape, None if there are none."""
        if len(shape) != 1 + len(self.axes) + 1:
            return None
        names = ("batch", *(SIZES[one] for one in self.axes), "channels")
        return dict(zip(names, shape, strict=True))

    def facts(self, type_: str, configuration: Configuration) -> Mapping[str, Setting]:  # noqa: ARG002
        """Return the sizes of result and sums, and what is padded."""
        result = self.shapes(configuration)[2]
        sizes = {"result_size": prod(result), "terms": self.terms(configuration)}
        return {**window_facts(configuration, self.axes), **sizes}


class Convolution(_WindowedSum):
    """CONV_2D: weights of (channels of the result, height, width, channels of a group)."""

    operator = "CONV_2D"
    axes = "hw"
    channel_axis = 0
    channel_settings = ("channels", "groups", "out_channels")
    shape_parameters = (
        size_parameter("batch", 3, (0,)),
        *window_parameters("hw", 33, dilated=4),
        size_parameter("channels", 33, unit="channels"),
        size_parameter("groups", 8, unit="channels"),
        size_parameter("out_channels", 33, unit="channels"),
    )

    def shapes(self, configuration: Configuration) -> tuple[Shape, Shape, Shape]:
        """Return the shapes of input, weights and result."""
        windows = windows_of(configuration, self.axes)
        batch, out = whole(configuration, "batch"), whole(configuration, "out_channels")
        return (
            (batch, *(one.size for one in windows), whole(configuration, "channels")),
            (out, *(one.kernel for one in windows), self.depth(configuration)),
            (batch, *(one.count for one in windows), out),
        )

    def depth(self, configuration: Configuration) -> int:
        """Return how many channels are added for each value of the result."""
        return whole(configuration, "channels") // whole(configuration, "groups")

    def shape_fault(self, configuration: Configuration) -> str | None:
        """Return why shapes do not fit, or None."""
        groups = whole(configuration, "groups")
        for name in ("channels", "out_channels"):
            if whole(configuration, name) % groups:
                return f"{name} are {configuration[name]}, no multiple of {groups} groups"
        return super().shape_fault(configuration)

    def fault(self, type_: str, configuration: Configuration) -> str | None:
        """Return why a configuration is no valid model, or None."""
        grouped = whole(configuration, "groups") > 1
        if type_ == DYNAMIC and grouped and not configuration["per_channel"]:
            return "groups with eight-bit weights and a float input need scales per channel"
        return super().fault(type_, configuration)

    def draw(self, type_: str, rng: np.random.Generator) -> Configuration:
        """Return settings at random."""
        drawn = super().draw(type_, rng)
        grouped = whole(drawn, "groups") > 1
        return {**drawn, "per_channel": True} if type_ == DYNAMIC and grouped else drawn

    def version(self, type_: str, configuration: Configuration) -> int:
        """Return the lowest version that does it."""
        if configuration.get("bias_type") == "int32":
            return 8
        if whole(configuration, "groups") > 1:
            return 6
        if type_ == DYNAMIC:
            return 5 if configuration["per_channel"] else 2
        return 3 if type_ == INT8 else 1

    def read_shapes(
        self, options: Mapping[str, Option], data: Shape, weights: Shape, result: Shape
    ) -> Mapping[str, Setting]:
        """Return the settings of `shape_parameters`."""
        if len(data) != 4 or len(weights) != 4 or data[-1] % max(weights[-1], 1):
            raise UnknownOperatorForm(f"weights of {weights} for an input of {data}")
        found = read_windows(options, data[1:3], weights[1:3], self.axes)
        channels = {"channels": data[3], "groups": data[3] // max(weights[3], 1)}
        return {**found, **channels, "batch": data[0], "out_channels": result[3]}

    def product(
        self, options: Mapping[str, Option], data: Shape, weights: Shape, result: Shape
    ) -> Callable[[Reals, Reals], Reals]:
        """Return the sums of products as a function of input and weights."""
        groups, out = data[3] // weights[3], result[3]
        terms = prod(weights[1:])
        windows = read_window(options, data[1:3], weights[1:3], self.axes)
        return _grouped_product(
            windows,
            groups,
            lambda w: w.reshape(groups, out // groups, terms).transpose(0, 2, 1),
        )

    def fitted(self, settings: Mapping[str, Setting]) -> dict[str, Setting]:
        """Return settings whose windows have room and whose channels are multiples of groups."""
        found, groups = super().fitted(settings), whole(settings, "groups")
        for name in ("channels", "out_channels"):
            found[name] = -(-whole(settings, name) // groups) * groups
        return found

    def shaped(self, configuration: Configuration, shape: Shape) -> Mapping[str, Setting] | None:
        """Return the settings of shapes for an input of another shape, None if there are none."""
        found = super().shaped(configuration, shape)
        if found is None or whole(found, "channels") % whole(configuration, "groups") == 0:
            return found
        return {**found, "groups": 1}


class DepthwiseConvolution(_WindowedSum):
    """DEPTHWISE_CONV_2D: weights of (1, height, width, channels · depth multiplier)."""

    operator = "DEPTHWISE_CONV_2D"
    axes = "hw"
    channel_axis = 3
    bias_types = False
    always_per_channel = (DYNAMIC,)
    needs_values = (DYNAMIC,)
    channel_settings = ("channels", "depth_multiplier")
    shape_parameters = (
        size_parameter("batch", 3, (0,)),
        *window_parameters("hw", 33, dilated=4),
        size_parameter("channels", 33),
        size_parameter("depth_multiplier", 8),
    )

    def shapes(self, configuration: Configuration) -> tuple[Shape, Shape, Shape]:
        """Return the shapes of input, weights and result."""
        windows = windows_of(configuration, self.axes)
        batch, channels = whole(configuration, "batch"), whole(configuration, "channels")
        out = channels * whole(configuration, "depth_multiplier")
        return (
            (batch, *(one.size for one in windows), channels),
            (1, *(one.kernel for one in windows), out),
            (batch, *(one.count for one in windows), out),
        )

    def options(self, configuration: Configuration) -> Mapping[str, Option]:
        """Return the options but for the activation and the type of the bias.

        TFLite's kernels take the multiplier from the shapes; others take the option.
        """
        multiplier = whole(configuration, "depth_multiplier")
        return {**super().options(configuration), "depthMultiplier": multiplier}

    def depth(self, configuration: Configuration) -> int:  # noqa: ARG002
        """Return how many channels are added for each value of the result."""
        return 1

    def version(self, type_: str, configuration: Configuration) -> int:
        """Return the lowest version that does it."""
        if type_ == DYNAMIC:
            return 6 if self.shapes(configuration)[2][3] > 1 else 4
        dilated = any(one.dilation > 1 for one in windows_of(configuration, self.axes))
        return 3 if type_ == INT8 else 1 + dilated

    def read_shapes(
        self, options: Mapping[str, Option], data: Shape, weights: Shape, result: Shape
    ) -> Mapping[str, Setting]:
        """Return the settings of `shape_parameters`."""
        if len(data) != 4 or len(weights) != 4 or weights[3] % max(data[3], 1):
            raise UnknownOperatorForm(f"weights of {weights} for an input of {data}")
        found = read_windows(options, data[1:3], weights[1:3], self.axes)
        multiplier = result[3] // max(data[3], 1)
        return {**found, "batch": data[0], "channels": data[3], "depth_multiplier": multiplier}

    def product(
        self, options: Mapping[str, Option], data: Shape, weights: Shape, result: Shape
    ) -> Callable[[Reals, Reals], Reals]:
        """Return the sums of products as a function of input and weights."""
        channels, terms = data[3], weights[1] * weights[2]
        windows = read_window(options, data[1:3], weights[1:3], self.axes)
        return _grouped_product(
            windows,
            channels,
            lambda w: w.reshape(terms, channels, result[3] // channels).transpose(1, 0, 2),
        )


class Convolution3d(_WindowedSum):
    """CONV_3D: weights of (depth, height, width, channels, channels of the result)."""

    operator = "CONV_3D"
    types = (FLOAT,)
    axes = "dhw"
    channel_axis = 4
    bias_types = False
    channel_settings = ("channels", "out_channels")
    shape_parameters = (
        size_parameter("batch", 3),
        *window_parameters("dhw", 17, dilated=3),
        size_parameter("channels", 17, unit="channels"),
        size_parameter("out_channels", 17, unit="channels"),
    )

    def shapes(self, configuration: Configuration) -> tuple[Shape, Shape, Shape]:
        """Return the shapes of input, weights and result."""
        windows = windows_of(configuration, self.axes)
        batch, channels = whole(configuration, "batch"), whole(configuration, "channels")
        out = whole(configuration, "out_channels")
        return (
            (batch, *(one.size for one in windows), channels),
            (*(one.kernel for one in windows), channels, out),
            (batch, *(one.count for one in windows), out),
        )

    def version(self, type_: str, configuration: Configuration) -> int:  # noqa: ARG002
        """Return the lowest version that does it."""
        return 1

    def read_shapes(
        self, options: Mapping[str, Option], data: Shape, weights: Shape, result: Shape
    ) -> Mapping[str, Setting]:
        """Return the settings of `shape_parameters`."""
        if len(data) != 5 or len(weights) != 5:
            raise UnknownOperatorForm(f"weights of {weights} for an input of {data}")
        found = read_windows(options, data[1:4], weights[:3], self.axes)
        return {**found, "batch": data[0], "channels": data[4], "out_channels": result[4]}

    def product(
        self, options: Mapping[str, Option], data: Shape, weights: Shape, result: Shape
    ) -> Callable[[Reals, Reals], Reals]:
        """Return the sums of products as a function of input and weights."""
        terms = prod(weights[:4])
        windows = read_window(options, data[1:4], weights[:3], self.axes)
        return _grouped_product(windows, 1, lambda w: w.reshape(1, terms, result[4]))


def _grouped_product(
    windows: Sequence[Window], groups: int, in_groups: Callable[[Reals], Reals]
) -> Callable[[Reals, Reals], Reals]:
    """Return the sums of a convolution as a function of input and weights.

    Args:
        windows: one for each dimension between the first and the last.
        groups: groups of channels, each of which makes channels of the result of its own.
        in_groups: puts weights into (groups, terms, channels of the result in a group), where terms
            are the positions in a window, each with the channels of a group.

    """
    kernels = prod(one.kernel for one in windows)

    def product(x: Reals, w: Reals) -> Reals:
        values = window_values(x, windows)
        places = values.shape[: 1 + len(windows)]
        depth = x.shape[-1] // groups
        rows = values.reshape(prod(places), kernels, groups, depth)
        factors = rows.transpose(2, 0, 1, 3).reshape(groups, prod(places), kernels * depth)
        weights = in_groups(w)
        found: Reals = factors @ weights
        together: Reals = found.transpose(1, 0, 2)
        return together.reshape(*places, groups * weights.shape[2])

    return product
