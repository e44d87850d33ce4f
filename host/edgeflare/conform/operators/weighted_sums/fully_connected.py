"""FULLY_CONNECTED."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import prod

import numpy as np

from edgeflare.conform.operator_graph import GraphValue, Option
from edgeflare.conform.operators.weighted_sums.sum_answer import Reals
from edgeflare.conform.operators.weighted_sums.sum_tensors import SUM_TYPES
from edgeflare.conform.operators.weighted_sums.weighted_sum import Shape, WeightedSum
from edgeflare.conform.operators.window_settings import size_parameter
from edgeflare.conform.specification.operator_specification import (
    DYNAMIC,
    INT8,
    UnknownOperatorForm,
)
from edgeflare.conform.specification.parameter import (
    Choice,
    Configuration,
    Dimensions,
    OperatorParameter,
    Setting,
    dimensions,
    whole,
    yes,
)

_MOST_WEIGHTS = 4000
_ASYMMETRIC = Choice("asymmetric_inputs", (False, True))


class FullyConnected(WeightedSum):
    """FULLY_CONNECTED: weights of (units, depth); the input is read as rows of that depth."""

    operator = "FULLY_CONNECTED"
    channel_axis = 0
    shape_parameters = (
        Dimensions("shape", (1, 5)),
        size_parameter("depth", 600),
        size_parameter("units", 64),
        Choice("keep_num_dims", (False, True)),
    )

    def parameters(self, type_: str) -> tuple[OperatorParameter, ...]:
        """Return the parameters of a type."""
        known = super().parameters(type_)
        return (*known, _ASYMMETRIC) if type_ == DYNAMIC else known

    def shapes(self, configuration: Configuration) -> tuple[Shape, Shape, Shape]:
        """Return the shapes of input, weights and result."""
        shape = dimensions(configuration, "shape")
        depth, units = whole(configuration, "depth"), whole(configuration, "units")
        kept = yes(configuration, "keep_num_dims")
        return shape, (units, depth), (*(shape[:-1] if kept else (prod(shape) // depth,)), units)

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

    def options(self, configuration: Configuration) -> Mapping[str, Option]:
        """Return the options but for the activation and the type of the bias."""
        found: dict[str, Option] = {"keepNumDims": yes(configuration, "keep_num_dims")}
        if "asymmetric_inputs" in configuration:
            found["asymmetricQuantizeInputs"] = yes(configuration, "asymmetric_inputs")
        return found

    def version(self, type_: str, configuration: Configuration) -> int:
        """Return the lowest version that does it."""
        if type_ == DYNAMIC and configuration["per_channel"]:
            return 12
        if configuration.get("bias_type") == "int32":
            return 11
        if yes(configuration, "keep_num_dims"):
            return 5
        if type_ == DYNAMIC:
            return 9 if yes(configuration, "asymmetric_inputs") else 3
        return 4 if type_ == INT8 else 1

    def placed(
        self,
        data: GraphValue,
        weights: GraphValue,
        bias: GraphValue,
        result: GraphValue,  # noqa: ARG002
        configuration: Configuration,
    ) -> Sequence[GraphValue | None]:
        """Return the operands in the operator's order."""
        return data, weights, bias if yes(configuration, "bias") else None

    def read_shapes(
        self,
        options: Mapping[str, Option],
        data: Shape,
        weights: Shape,
        result: Shape,  # noqa: ARG002
    ) -> Mapping[str, Setting]:
        """Return the settings of `shape_parameters`."""
        if len(weights) != 2 or not weights[1]:
            raise UnknownOperatorForm(f"weights of {weights}")
        if str(options.get("weightsFormat", "DEFAULT")) != "DEFAULT":
            raise UnknownOperatorForm(f"weights in the format {options['weightsFormat']}")
        kept = bool(options.get("keepNumDims", False))
        asymmetric = bool(options.get("asymmetricQuantizeInputs", False))
        found: dict[str, Setting] = {"shape": data, "depth": weights[1], "units": weights[0]}
        return found | {"keep_num_dims": kept, "asymmetric_inputs": asymmetric}

    def product(
        self,
        options: Mapping[str, Option],  # noqa: ARG002
        data: Shape,
        weights: Shape,
        result: Shape,
    ) -> Callable[[Reals, Reals], Reals]:
        """Return the sums of products as a function of input and weights."""

        def product(x: Reals, w: Reals) -> Reals:
            found: Reals = x.reshape(prod(data) // weights[1], weights[1]) @ w.T
            return found.reshape(result)

        return product

    def sharing(self, weights: Shape) -> Callable[[Reals], Reals]:
        """Return what gives each value the largest of its row."""

        def largest_of_row(sizes: Reals) -> Reals:
            rows = sizes.reshape(sizes.size // weights[1], weights[1])
            found = np.broadcast_to(rows.max(axis=1, keepdims=True), rows.shape)
            return found.reshape(sizes.shape)

        return largest_of_row

    def drawn_shapes(self, rng: np.random.Generator) -> dict[str, Setting]:
        """Return settings of `shape_parameters` that fit each other and are not too large."""
        drawn = {one.name: one.draw(rng) for one in self.shape_parameters}
        shape = tuple(one or 1 for one in dimensions(drawn, "shape"))
        if rng.random() < 1 / 24:
            shape = (0, *shape[1:]) if len(shape) > 1 else shape
        kept = yes(drawn, "keep_num_dims")
        begin = len(shape) - 1 if kept or rng.random() < 2 / 3 else int(rng.integers(len(shape)))
        depth = prod(shape[begin:]) or shape[-1]
        rows = max(prod(shape) // depth, 1)
        units = min(whole(drawn, "units"), max(_MOST_WEIGHTS // depth, 1), max(600 // rows, 1))
        return drawn | {"shape": shape, "depth": depth, "units": units}

    def shaped(self, configuration: Configuration, shape: Shape) -> Mapping[str, Setting] | None:
        """Return the settings of shapes for an input of another shape, None if there are none."""
        if not 1 <= len(shape) <= 5 or not shape[-1]:
            return None
        fits = prod(shape) % whole(configuration, "depth") == 0
        fits = fits and not yes(configuration, "keep_num_dims")
        return {"shape": shape, "depth": whole(configuration, "depth") if fits else shape[-1]}

    def facts(self, type_: str, configuration: Configuration) -> Mapping[str, Setting]:
        """Return the number of rows and of results."""
        rows = prod(dimensions(configuration, "shape")) // whole(configuration, "depth")
        quantized = SUM_TYPES[type_].weights != "float32"
        found: dict[str, Setting] = {
            "rows": rows,
            "result_size": rows * whole(configuration, "units"),
        }
        return found | {"quantized_weights": quantized}
