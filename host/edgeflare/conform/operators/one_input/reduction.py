"""What reductions have in common: axes, and whether they are kept."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod

import numpy as np

from edgeflare.conform.graphs.operator_graph import GraphValue, Option, Values
from edgeflare.conform.operators.one_input.constants_and_options import constant, switched
from edgeflare.conform.operators.one_input.one_input_operator import (
    OneInputOperator,
)
from edgeflare.conform.specification.axes import Axes, clipped, within
from edgeflare.conform.specification.parameter import Choice
from edgeflare.conform.specification.settings import (
    Configuration,
    Setting,
    dimensions,
    yes,
)

_IMAGES = ("batch", "height", "width", "channels")
_SPATIAL = (1, 2)
"""The axes of images that models reduce most, for which kernels have code of their own."""

_MOST_VALUES = 1000
"""Of the tensors that are drawn."""


class Reduction(OneInputOperator):
    """An operator that leaves one value of all along some axes."""

    constant_operands = 1
    own = (Axes("axes"), Choice("keep_dims", [False, True]))

    def options(self, configuration: Configuration) -> Mapping[str, Option]:
        """Return whether reduced dimensions are kept with size 1."""
        return {"keepDims": yes(configuration, "keep_dims")}

    def constants(self, configuration: Configuration) -> tuple[GraphValue, ...]:
        """Return the axes: (count,)."""
        return (constant(dimensions(configuration, "axes")),)

    def settings(
        self, options: Mapping[str, Option], constants: Sequence[Values]
    ) -> Mapping[str, Setting]:
        """Return the axes and whether they are kept."""
        axes = tuple(int(one) for one in constants[0].ravel())
        return {"axes": axes, "keep_dims": switched(options, "keepDims")}

    def fitting(
        self, configuration: Configuration, rng: np.random.Generator
    ) -> Mapping[str, Setting]:
        """Return axes that the shape has, and at times a shape of which more is left."""
        shape = dimensions(configuration, "shape")
        axes = Axes("axes").drawn(len(shape), rng)
        if len(shape) == len(_IMAGES) and rng.random() < 1 / 4:
            axes = _SPATIAL
        kept = sorted(set(range(len(shape))) - {within(one, len(shape)) for one in axes})
        if not kept or 0 in shape or rng.random() < 1 / 2:
            return {"axes": axes}
        # Results of few values say little of rounding.
        grown = kept[int(rng.integers(len(kept)))]
        room = _MOST_VALUES // (prod(shape) // shape[grown])
        size = int(rng.integers(min(shape[grown], room), room + 1))
        return {"axes": axes, "shape": (*shape[:grown], size, *shape[grown + 1 :])}

    def fitted(self, configuration: Configuration) -> Mapping[str, Setting]:
        """Return the axes near those of a configuration that the shape has."""
        rank = len(dimensions(configuration, "shape"))
        return {"axes": clipped(dimensions(configuration, "axes"), rank)}

    def fault(self, type_: str, configuration: Configuration) -> str | None:  # noqa: ARG002
        """Return why a configuration is no valid model, or None."""
        return axes_fault(dimensions(configuration, "shape"), dimensions(configuration, "axes"))

    def results(self, type_: str, configuration: Configuration) -> tuple[GraphValue, ...]:
        """Return the reduced tensor."""
        shape = dimensions(configuration, "shape")
        reduced = {within(one, len(shape)) for one in dimensions(configuration, "axes")}
        kept = yes(configuration, "keep_dims")
        sizes = [
            1 if at in reduced else size
            for at, size in enumerate(shape)
            if kept or at not in reduced
        ]
        return (self.result(type_, configuration, tuple(sizes)),)

    def facts(self, type_: str, configuration: Configuration) -> Mapping[str, Setting]:
        """Return also how many values each result is of, and which axes are reduced."""
        shape = dimensions(configuration, "shape")
        axes = {within(one, len(shape)) for one in dimensions(configuration, "axes")}
        return {
            **super().facts(type_, configuration),
            "reduced_values": reduced_values(configuration),
            "reduced_axes": len(axes),
            "last_axis_reduced": len(shape) - 1 in axes,
            "spatial_axes_reduced": len(shape) == len(_IMAGES) and axes == set(_SPATIAL),
        }


def reduced_values(configuration: Configuration) -> int:
    """Return how many values of the operand each of the result is made of."""
    shape = dimensions(configuration, "shape")
    return prod(shape[one] for one in dimensions(configuration, "axes"))


def axes_fault(shape: tuple[int, ...], axes: tuple[int, ...]) -> str | None:
    """Return why a tensor of a shape has no such axes, or None."""
    rank = len(shape)
    if not all(-rank <= one < rank for one in axes):
        return f"axes {axes} of a tensor of {rank} dimensions"
    if len({within(one, rank) for one in axes}) < len(axes):
        return f"axes {axes} of a tensor of {rank} dimensions name one of them twice"
    return None


def constant_axes(constants: Sequence[Values]) -> tuple[int, ...]:
    """Return the axes that an operand names."""
    return tuple(int(one) for one in constants[0].ravel())
