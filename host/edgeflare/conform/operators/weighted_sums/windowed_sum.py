"""Convolutions: weighted sums over windows."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import prod

import numpy as np

from edgeflare.conform.graphs.operator_graph import Option
from edgeflare.conform.operators.weighted_sums.sum_answer import Reals
from edgeflare.conform.operators.weighted_sums.weighted_sum import Shape, WeightedSum
from edgeflare.conform.operators.windows.drawn_sizes import Work, fitted_sizes
from edgeflare.conform.operators.windows.window import Window, window_values
from edgeflare.conform.operators.windows.window_settings import (
    SIZES,
    tamed_windows,
    widened,
    window_facts,
    window_options,
    windows_fault,
)
from edgeflare.conform.specification.settings import Configuration, Setting, whole


class WindowedSum(WeightedSum):
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


def grouped_product(
    windows: Sequence[Window], groups: int, in_groups: Callable[[Reals], Reals]
) -> Callable[[Reals, Reals], Reals]:
    """Return the sums of a convolution as a function of input and weights.

    Args:
        windows: one for each dimension between the first and the last.
        groups: of channels, each of which makes channels of the result of its own.
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
