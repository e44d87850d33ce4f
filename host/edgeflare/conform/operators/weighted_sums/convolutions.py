"""CONV_2D, DEPTHWISE_CONV_2D and CONV_3D."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import KW_ONLY, dataclass, replace
from math import prod

import numpy as np

from edgeflare.conform.operator_graph import GraphValue
from edgeflare.conform.operators.weighted_sums.sum_tensors import USUAL_TYPES
from edgeflare.conform.operators.weighted_sums.weighted_sum import WeightedSum
from edgeflare.conform.operators.window_settings import (
    SIZES,
    fitted_sizes,
    size_parameter,
    tamed_windows,
    widened,
    window_facts,
    window_places,
    window_values,
    windows_fault,
    windows_of,
)
from edgeflare.conform.specification.activation_tensors import (
    ASYMMETRIC,
    DYNAMIC,
    DYNAMIC4,
    FLOAT,
    FLOAT_INPUTS,
    INT8,
    INT8X4,
    Reals,
    Shape,
    UnknownOperatorForm,
)
from edgeflare.conform.specification.model_parts import ModelParts, Place, SizeOf
from edgeflare.conform.specification.parameter import (
    Configuration,
    OperatorParameter,
    Setting,
    Settings,
    whole,
)


class WeightedChannels(SizeOf):
    """The channels of an input, which weights have as many of; declared for (…, channels)."""

    def __init__(self, parameter: OperatorParameter, rank: int, along: int, data: int = 0) -> None:
        """Declare a place; `along` is the dimension of the weights, operand 1."""
        super().__init__(parameter, rank - 1, rank, data)
        self._weights = SizeOf(parameter, along, rank, 1)

    def write(self, setting: Setting, parts: ModelParts) -> None:
        """Write a setting into a model."""
        super().write(setting, parts)
        self._weights.write(setting, parts)


class _GroupsOf(Place):
    """Groups of channels, each with weights of its own; declared after the channels."""

    def write(self, setting: Setting, parts: ModelParts) -> None:
        """Write a setting into a model."""
        data, weights = parts.tensors[0], parts.tensors[1]
        shape = (*weights.shape[:3], data.shape[3] // int(str(setting)))
        parts.tensors[1] = replace(weights, shape=shape)

    def read(self, parts: ModelParts) -> Setting:
        """Return the setting of a model."""
        data, weights = parts.tensor(0).shape, parts.tensor(1).shape
        if len(weights) != 4 or data[3] % max(weights[3], 1):
            raise UnknownOperatorForm(f"weights of {weights} for an input of {data}")
        return data[3] // max(weights[3], 1)


class _MultiplierOf(Place):
    """How many channels each of an input becomes; declared after the channels.

    TFLite's kernels take it from the shapes; others take the option.
    """

    def write(self, setting: Setting, parts: ModelParts) -> None:
        """Write a setting into a model."""
        multiplier, weights = int(str(setting)), parts.tensors[1]
        parts.options["depthMultiplier"] = multiplier
        shape = (*weights.shape[:3], parts.tensors[0].shape[3] * multiplier)
        parts.tensors[1] = replace(weights, shape=shape)

    def read(self, parts: ModelParts) -> Setting:
        """Return the setting of a model."""
        data, weights = parts.tensor(0).shape, parts.tensor(1).shape
        if len(weights) != 4 or weights[3] % max(data[3], 1):
            raise UnknownOperatorForm(f"weights of {weights} for an input of {data}")
        return weights[3] // max(data[3], 1)


@dataclass(frozen=True, eq=False)
class _WindowedSum(WeightedSum):
    """A weighted sum of (batch, *sizes, channels) over windows.

    Attributes:
        axes: letters of the sizes, in their order.
        channels: settings of channels that may be changed to make a model larger or smaller.
        out: returns the channels of the result.
        groups: returns how many groups of the input's channels have weights of their own.
        in_groups: puts weights into (groups, terms, channels of the result in a group), given how
            many groups and terms there are; terms are the positions in a window, each with the
            channels of a group.

    """

    _: KW_ONLY
    axes: str
    channels: tuple[str, str]
    out: Callable[[Configuration], int]
    groups: Callable[[Configuration], int]
    in_groups: Callable[[Reals, int, int], Reals]

    def result_shape(self, configuration: Configuration) -> Shape:
        """Return the shape of the result."""
        counts = (window.count for window in windows_of(configuration, self.axes))
        return (whole(configuration, "batch"), *counts, self.out(configuration))

    def shape_fault(self, configuration: Configuration) -> str | None:
        """Return why shapes do not fit, or None."""
        return windows_fault(configuration, self.axes)

    def terms(self, configuration: Configuration) -> int:
        """Return how many products are added for each value of the result."""
        kernels = prod(whole(configuration, f"kernel_{axis}") for axis in self.axes)
        return kernels * (whole(configuration, "channels") // self.groups(configuration))

    def product(
        self,
        configuration: Configuration,
        result: Shape,  # noqa: ARG002 - said by the windows
    ) -> Callable[[Reals, Reals], Reals]:
        """Return the sums of products as a function of input and weights."""
        windows = windows_of(configuration, self.axes)
        groups, terms = self.groups(configuration), self.terms(configuration)
        kernels = prod(each.kernel for each in windows)

        def product(x: Reals, w: Reals) -> Reals:
            values = window_values(x, windows)
            places = values.shape[: 1 + len(windows)]
            rows = values.reshape(prod(places), kernels, groups, x.shape[-1] // groups)
            factors = rows.transpose(2, 0, 1, 3).reshape(groups, prod(places), terms)
            weights = self.in_groups(w, groups, terms)
            found: Reals = factors @ weights
            together: Reals = found.transpose(1, 0, 2)
            return together.reshape(*places, groups * weights.shape[2])

        return product

    def fitting_shapes(self, drawn: Settings, rng: np.random.Generator) -> Settings:
        """Return drawn settings that fit each other and are not too large."""
        drawn = tamed_windows(drawn, self.axes, rng)
        if "groups" in drawn and rng.random() < 1 / 2:
            drawn["groups"] = 1
        sizes = ["batch", *(SIZES[axis] for axis in self.axes), *self.channels]
        return fitted_sizes(drawn, sizes, self.fitted, self.work, rng)

    def fitted(self, settings: Mapping[str, Setting]) -> Settings:
        """Return settings whose windows have room."""
        return widened(settings, self.axes)

    def facts(self, type_: str, configuration: Configuration) -> Mapping[str, Setting]:  # noqa: ARG002
        """Return the sizes of result and sums, and what is padded."""
        sizes = {
            "result_size": prod(self.result_shape(configuration)),
            "terms": self.terms(configuration),
        }
        return {**window_facts(configuration, self.axes), **sizes}


class _Convolution(_WindowedSum):
    """A convolution whose channels may be in groups."""

    def shape_fault(self, configuration: Configuration) -> str | None:
        """Return why shapes do not fit, or None."""
        groups = whole(configuration, "groups")
        for name in self.channels:
            if whole(configuration, name) % groups:
                return f"{name} are {configuration[name]}, no multiple of {groups} groups"
        return super().shape_fault(configuration)

    def fault(self, type_: str, configuration: Configuration) -> str | None:
        """Return why a configuration is no valid model, or None."""
        grouped = whole(configuration, "groups") > 1
        if type_ in FLOAT_INPUTS and grouped and not configuration["per_channel"]:
            return "groups with eight-bit weights and a float input need scales per channel"
        return super().fault(type_, configuration)

    def draw(self, type_: str, rng: np.random.Generator) -> Configuration:
        """Return settings at random."""
        drawn = super().draw(type_, rng)
        grouped = whole(drawn, "groups") > 1
        return {**drawn, "per_channel": True} if type_ in FLOAT_INPUTS and grouped else drawn

    def version(self, type_: str, configuration: Configuration) -> int:
        """Return the lowest version that does it."""
        if configuration.get("bias_type") == "int32":
            return 8
        if whole(configuration, "groups") > 1:
            return 6
        if type_ == DYNAMIC:
            return 5 if configuration["per_channel"] else 2
        if type_ == INT8X4:
            return 7
        return 3 if type_ in (INT8, ASYMMETRIC) else 1

    def fitted(self, settings: Mapping[str, Setting]) -> Settings:
        """Return settings whose windows have room and whose channels are multiples of groups."""
        found, groups = super().fitted(settings), whole(settings, "groups")
        for name in self.channels:
            found[name] = -(-whole(settings, name) // groups) * groups
        return found

    def with_input(
        self, type_: str, configuration: Configuration, value: GraphValue
    ) -> Configuration | None:
        """Return a configuration near another that reads a tensor of another model."""
        found = super().with_input(type_, configuration, value)
        if found is None or whole(found, "channels") % whole(found, "groups") == 0:
            return found
        return {**found, "groups": 1}


class _DepthwiseConvolution(_WindowedSum):
    """A convolution of each channel by itself."""

    def version(self, type_: str, configuration: Configuration) -> int:
        """Return the lowest version that does it."""
        if type_ == DYNAMIC:
            return 6 if self.out(configuration) > 1 else 4
        if type_ == INT8X4:
            return 7
        dilated = any(window.dilation > 1 for window in windows_of(configuration, self.axes))
        return 3 if type_ in (INT8, ASYMMETRIC) else 1 + dilated


def _kernel(rank: int, first: int) -> Callable[[OperatorParameter, int], Place]:
    """Return the places of a kernel's sizes, in weights of a rank from some dimension on."""
    return lambda size, at: SizeOf(size, first + at, rank, 1)


CONVOLUTION = _Convolution(
    "CONV_2D",
    (*USUAL_TYPES, INT8X4, DYNAMIC4),
    (
        SizeOf(size_parameter("batch", 3, (0,)), 0, 4),
        *window_places("hw", 33, dilated=4, kernel=_kernel(4, 1)),
        SizeOf(size_parameter("channels", 33, unit="channels"), 3, 4),
        _GroupsOf(size_parameter("groups", 8, unit="channels")),
        SizeOf(size_parameter("out_channels", 33, unit="channels"), 0, 4, 1),
    ),
    channel_axis=0,
    axes="hw",
    channels=("channels", "out_channels"),
    out=lambda settings: whole(settings, "out_channels"),
    groups=lambda settings: whole(settings, "groups"),
    in_groups=lambda w, groups, terms: w.reshape(groups, -1, terms).transpose(0, 2, 1),
)
"""CONV_2D: weights of (channels of the result, height, width, channels of a group)."""

DEPTHWISE_CONVOLUTION = _DepthwiseConvolution(
    "DEPTHWISE_CONV_2D",
    (*USUAL_TYPES, INT8X4),
    (
        SizeOf(size_parameter("batch", 3, (0,)), 0, 4),
        *window_places("hw", 33, dilated=4, kernel=_kernel(4, 1)),
        SizeOf(size_parameter("channels", 33), 3, 4),
        _MultiplierOf(size_parameter("depth_multiplier", 8)),
    ),
    channel_axis=3,
    bias_types=False,
    always_per_channel=(DYNAMIC,),
    needs_values=FLOAT_INPUTS,
    axes="hw",
    channels=("channels", "depth_multiplier"),
    out=lambda settings: whole(settings, "channels") * whole(settings, "depth_multiplier"),
    groups=lambda settings: whole(settings, "channels"),
    in_groups=lambda w, groups, terms: w.reshape(terms, groups, -1).transpose(1, 0, 2),
)
"""DEPTHWISE_CONV_2D: weights of (1, height, width, channels · depth multiplier)."""

CONVOLUTION_3D = _WindowedSum(
    "CONV_3D",
    (FLOAT,),
    (
        SizeOf(size_parameter("batch", 3), 0, 5),
        *window_places("dhw", 17, dilated=3, kernel=_kernel(5, 0)),
        WeightedChannels(size_parameter("channels", 17, unit="channels"), 5, 3),
        SizeOf(size_parameter("out_channels", 17, unit="channels"), 4, 5, 1),
    ),
    channel_axis=4,
    bias_types=False,
    axes="dhw",
    channels=("channels", "out_channels"),
    out=lambda settings: whole(settings, "out_channels"),
    groups=lambda _: 1,
    in_groups=lambda w, groups, terms: w.reshape(groups, terms, -1),
)
"""CONV_3D: weights of (depth, height, width, channels, channels of the result)."""
