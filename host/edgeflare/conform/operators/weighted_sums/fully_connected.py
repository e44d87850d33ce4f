"""FULLY_CONNECTED."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import prod

import numpy as np

from edgeflare.conform.operator_graph import GraphValue
from edgeflare.conform.operators.weighted_sums.sum_tensors import SUM_TYPES, USUAL_TYPES
from edgeflare.conform.operators.weighted_sums.weighted_sum import WeightedSum
from edgeflare.conform.operators.window_settings import size_parameter
from edgeflare.conform.specification.activation_tensors import (
    ASYMMETRIC,
    BLOCKWISE,
    DYNAMIC,
    DYNAMIC4,
    INT8,
    INT8X4,
    INT16X4,
    Reals,
    Shape,
    UnknownOperatorForm,
)
from edgeflare.conform.specification.model_parts import (
    ASYMMETRIC_INPUTS,
    ModelParts,
    OptionOf,
    Place,
    ShapeOf,
    SizeOf,
)
from edgeflare.conform.specification.operator_specification import OperatorReading
from edgeflare.conform.specification.parameter import (
    Choice,
    Configuration,
    Dimensions,
    Setting,
    Settings,
    dimensions,
    whole,
    yes,
)

_MOST_WEIGHTS = 4000
_MOST_DEPTH = 600
_VERSIONS = {INT8: 4, ASYMMETRIC: 4, INT8X4: 10, INT16X4: 13}
"""The lowest versions of types that have one of their own."""

_ROUNDING_INPUTS = (DYNAMIC, DYNAMIC4)
"""Types whose option says how inputs are rounded."""


@dataclass(frozen=True, eq=False)
class _FullyConnected(WeightedSum):
    """The input is read as rows of the weights' depth."""

    def places_of(self, type_: str) -> tuple[Place, ...]:
        """Return the places of all parameters of a type."""
        known = super().places_of(type_)
        return (*known, ASYMMETRIC_INPUTS) if type_ in _ROUNDING_INPUTS else known

    def result_shape(self, configuration: Configuration) -> Shape:
        """Return the shape of the result."""
        shape, depth = dimensions(configuration, "shape"), whole(configuration, "depth")
        kept = yes(configuration, "keep_num_dims")
        rows = shape[:-1] if kept else (prod(shape) // depth,)
        return (*rows, whole(configuration, "units"))

    def shape_fault(self, configuration: Configuration) -> str | None:
        """Return why shapes do not fit, or None."""
        shape, depth = dimensions(configuration, "shape"), whole(configuration, "depth")
        if prod(shape) % depth:
            return f"{shape} has no rows of {depth}"
        if yes(configuration, "keep_num_dims") and shape[-1] != depth:
            return f"dimensions are kept, but {shape} does not end with {depth}"
        return None

    def terms(self, configuration: Configuration) -> int:
        """Return how many products are added for each value of the result."""
        return whole(configuration, "depth")

    def version(self, type_: str, configuration: Configuration) -> int:
        """Return the lowest version that does it."""
        least = _VERSIONS.get(type_, 1)
        if type_ == DYNAMIC and configuration["per_channel"]:
            return 12
        if configuration.get("bias_type") == "int32":
            return max(least, 11)
        if yes(configuration, "keep_num_dims"):
            return max(least, 5)
        if type_ == DYNAMIC:
            return 9 if yes(configuration, "asymmetric_inputs") else 3
        return least

    def fault(self, type_: str, configuration: Configuration) -> str | None:
        """Return why a configuration is no valid model, or None."""
        if type_ == BLOCKWISE:
            depth, block = (whole(configuration, name) for name in ("depth", "block_size"))
            if depth % block:
                return f"rows of {depth} have no blocks of {block}"
        return super().fault(type_, configuration)

    def draw(self, type_: str, rng: np.random.Generator) -> Configuration:
        """Return settings at random."""
        settings = dict(super().draw(type_, rng))
        return settings if type_ != BLOCKWISE else _in_blocks(settings, rng)

    def without_bias(self, parts: ModelParts, bias: GraphValue) -> None:
        """Write that there is no bias."""
        del bias
        parts.left_out = 1

    def reading(self, parts: ModelParts) -> OperatorReading:
        """Return what an operator is by the places of its parameters."""
        if str(parts.options.get("weightsFormat", "DEFAULT")) != "DEFAULT":
            raise UnknownOperatorForm(f"weights in the format {parts.options['weightsFormat']}")
        found = super().reading(parts)
        if not found.configuration["depth"]:
            raise UnknownOperatorForm("weights of no depth")
        return found

    def product(
        self, configuration: Configuration, result: Shape
    ) -> Callable[[Reals, Reals], Reals]:
        """Return the sums of products as a function of input and weights."""
        depth = whole(configuration, "depth")

        def product(x: Reals, w: Reals) -> Reals:
            found: Reals = x.reshape(x.size // depth, depth) @ w.T
            return found.reshape(result)

        return product

    def sharing(self, configuration: Configuration) -> Callable[[Reals], Reals]:
        """Return what gives each value the largest of its row."""
        depth = whole(configuration, "depth")

        def largest_of_row(sizes: Reals) -> Reals:
            rows = sizes.reshape(sizes.size // depth, depth)
            found = np.broadcast_to(rows.max(axis=1, keepdims=True), rows.shape)
            return found.reshape(sizes.shape)

        return largest_of_row

    def fitting_shapes(self, drawn: Settings, rng: np.random.Generator) -> Settings:
        """Return drawn settings that fit each other and are not too large."""
        shape = tuple(size or 1 for size in dimensions(drawn, "shape"))
        if rng.random() < 1 / 24:
            shape = (0, *shape[1:]) if len(shape) > 1 else shape
        kept = yes(drawn, "keep_num_dims")
        begin = len(shape) - 1 if kept or rng.random() < 2 / 3 else int(rng.integers(len(shape)))
        depth = prod(shape[begin:]) or shape[-1]
        rows = max(prod(shape) // depth, 1)
        units = min(whole(drawn, "units"), max(_MOST_WEIGHTS // depth, 1), max(600 // rows, 1))
        return drawn | {"shape": shape, "depth": depth, "units": units}

    def with_input(
        self, type_: str, configuration: Configuration, value: GraphValue
    ) -> Configuration | None:
        """Return a configuration near another that reads a tensor of another model."""
        found = super().with_input(type_, configuration, value)
        if found is None or not value.shape[-1]:
            return None
        fits = value.size % whole(found, "depth") == 0 and not yes(found, "keep_num_dims")
        return {**found, "depth": whole(found, "depth") if fits else value.shape[-1]}

    def facts(self, type_: str, configuration: Configuration) -> Mapping[str, Setting]:
        """Return the number of rows and of results."""
        rows = prod(dimensions(configuration, "shape")) // whole(configuration, "depth")
        quantized = SUM_TYPES[type_].weights != "float32"
        found: dict[str, Setting] = {
            "rows": rows,
            "result_size": rows * whole(configuration, "units"),
        }
        return found | {"quantized_weights": quantized}


def _in_blocks(settings: Settings, rng: np.random.Generator) -> Settings:
    """Return settings with rows of a few blocks."""
    depth = whole(settings, "block_size") * int(rng.integers(1, 5))
    while depth > _MOST_DEPTH:
        depth //= 2
    rows = prod(dimensions(settings, "shape")) // whole(settings, "depth")
    units = min(whole(settings, "units"), _MOST_WEIGHTS // depth)
    return settings | {"shape": (min(rows, 8), depth), "depth": depth, "units": units}


FULLY_CONNECTED = _FullyConnected(
    "FULLY_CONNECTED",
    (*USUAL_TYPES, INT8X4, INT16X4, DYNAMIC4, BLOCKWISE),
    (
        ShapeOf(Dimensions("shape", (1, 5))),
        SizeOf(size_parameter("depth", _MOST_DEPTH), 1, 2, 1),
        SizeOf(size_parameter("units", 64), 0, 2, 1),
        OptionOf(Choice("keep_num_dims", (False, True)), "keepNumDims", default=False),
    ),
    channel_axis=0,
)
"""FULLY_CONNECTED: weights of (units, depth)."""
