"""BATCH_MATMUL."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import prod

import numpy as np

from edgeflare.conform.operator_graph import GraphValue, Quantization
from edgeflare.conform.operators.weighted_sums.sum_answer import summed
from edgeflare.conform.operators.weighted_sums.sum_tensors import (
    fitting_scales,
    raw_spread,
    rescaled,
    usual_product,
)
from edgeflare.conform.operators.window_settings import size_parameter
from edgeflare.conform.specification.activation_tensors import (
    DYNAMIC,
    FLOAT,
    INT8,
    INT16,
    Operands,
    Options,
    Reals,
    Results,
    Shape,
    UnknownOperatorForm,
    operand_values,
    single_quantization,
)
from edgeflare.conform.specification.exact_answer import ExactAnswers
from edgeflare.conform.specification.model_parts import (
    RESULT,
    ModelParts,
    OptionOf,
    Place,
    ReadFrom,
    quantization_places,
)
from edgeflare.conform.specification.operator_specification import (
    OperatorReading,
    OperatorSpecification,
)
from edgeflare.conform.specification.parameter import (
    Choice,
    Configuration,
    Dimensions,
    ScaleParameter,
    Setting,
    dimensions,
    number,
    whole,
    word,
    yes,
)

_DTYPES = {
    FLOAT: ("float32", "float32"),
    INT8: ("int8", "int8"),
    INT16: ("int16", "int16"),
    DYNAMIC: ("float32", "int8"),
}
"""Dtypes of the left and the right operand by type; the result has that of the left one."""


def _batch(name: str, operand: int) -> Place:
    known = Dimensions(name, (0, 3), most_values=24)
    return ReadFrom(known, lambda parts: parts.tensor(operand).shape[:-2])


def _size(name: str, most: int, operand: int, axis: int, turned: str) -> Place:
    """Return the place of a matrix's size, along the other axis if an option says so."""

    def reading(parts: ModelParts) -> Setting:
        shape = parts.tensor(operand).shape
        if len(shape) < 2:
            raise UnknownOperatorForm(f"a product of {shape}")
        return shape[-3 - axis if parts.options.get(turned, False) else axis]

    return ReadFrom(size_parameter(name, most), reading)


class _AsymmetricInputs(OptionOf):
    """How a float input is rounded to eight bits; converters write the option where it is set."""

    def write(self, setting: Setting, parts: ModelParts) -> None:
        """Write a setting into a model."""
        if setting:
            super().write(setting, parts)


_ASYMMETRIC_IF_SET = _AsymmetricInputs(
    Choice("asymmetric_inputs", (False, True)), "asymmetricQuantizeInputs", default=False
)
_RIGHT = ReadFrom(
    Choice("right", ("given", "constant")),
    lambda parts: "given" if parts.tensor(1).values is None else "constant",
)


@dataclass(frozen=True, eq=False)
class _BatchMatmul(OperatorSpecification):
    """(*batch, rows, depth) by (*right batch, depth, columns), either turned."""

    def places_of(self, type_: str) -> tuple[Place, ...]:
        """Return the places of all parameters of a type."""
        if type_ == DYNAMIC:
            scale = ReadFrom(ScaleParameter("right_scale"), _right_scale)
            return (*self.places, _ASYMMETRIC_IF_SET, scale)
        scales = quantization_places(type_, input=0, right=1, output=RESULT)
        return (*self.places, _RIGHT, *scales)

    def read_type(self, parts: ModelParts) -> str:
        """Return the type; UnknownOperatorForm if there is none."""
        left, right, (result,) = parts.tensor(0), parts.tensor(1), parts.results
        for type_, known in _DTYPES.items():
            if (*known, known[0]) == (left.dtype, right.dtype, result.dtype):
                return type_
        raise UnknownOperatorForm(f"{left.dtype} by {right.dtype} to {result.dtype}")

    def check(self, reading: OperatorReading, parts: ModelParts) -> None:
        """Raise UnknownOperatorForm unless operands are as a reading says.

        Of results files may say other shapes than kernels do.
        """
        if parts.tensors[0].values is not None:
            raise UnknownOperatorForm("a left operand that is not given")
        if reading.type == DYNAMIC and parts.tensors[1].values is None:
            raise UnknownOperatorForm("weights that are computed")
        for at, tensor in self.parts(reading.type, reading.configuration).tensors.items():
            self.check_alike("reads", parts.tensors[at], tensor)

    def fault(self, type_: str, configuration: Configuration) -> str | None:
        """Return why a configuration is no valid model, or None."""
        del type_
        batches = dimensions(configuration, "batch"), dimensions(configuration, "right_batch")
        return None if _broadcast(*batches) is not None else f"{batches} do not broadcast"

    def form(self, type_: str, configuration: Configuration, role: str) -> GraphValue:
        """Return a tensor with the dtype and the quantization of those of a role."""
        if type_ == DYNAMIC and role == "right":
            return GraphValue(INT8, (), Quantization((number(configuration, "right_scale"),)))
        return super().form(type_, configuration, role)

    def parts(self, type_: str, configuration: Configuration) -> ModelParts:
        """Return what the settings alone say of a model."""
        parts = super().parts(type_, configuration)
        for at, role in enumerate(("input", "right")):
            form = self.form(type_, configuration, role)
            parts.tensors[at] = replace(form, shape=_shapes(configuration)[at])
        return parts

    def fill(
        self, type_: str, configuration: Configuration, parts: ModelParts, rng: np.random.Generator
    ) -> None:
        """Add the values of a constant."""
        if type_ == DYNAMIC or word(configuration, "right") == "constant":
            right = parts.tensors[1]
            parts.tensors[1] = right.constant(operand_values(right, "uniform", rng))

    def results(self, type_: str, configuration: Configuration, parts: ModelParts) -> Results:
        """Return the products."""
        del parts
        shape = _shapes(configuration)[2]
        return [replace(self.form(type_, configuration, "output"), shape=shape)]

    def version(self, type_: str, configuration: Configuration) -> int:
        """Return the lowest version that has a configuration."""
        asymmetric = type_ == DYNAMIC and yes(configuration, "asymmetric_inputs")
        return 4 if asymmetric else super().version(type_, configuration)

    def exact(self, options: Options, operands: Operands, results: Results) -> ExactAnswers:
        """Return the exact answer."""
        left, right = operands
        if left is None or right is None:
            raise ValueError("no left or no right operand")
        turned, other = bool(options["adjX"]), bool(options["adjY"])
        depth = left.value.shape[-2 if turned else -1]

        def product(x: Reals, w: Reals) -> Reals:
            found: Reals = (x.swapaxes(-1, -2) if turned else x) @ (
                w.swapaxes(-1, -2) if other else w
            )
            return found

        def sharing(sizes: Reals) -> Reals:
            axis = -2 if turned else -1
            return np.broadcast_to(sizes.max(axis=axis, keepdims=True, initial=0), sizes.shape)

        return (summed(product, (left, right), None, results[0], "NONE", depth, sharing),)

    def with_input(
        self, type_: str, configuration: Configuration, value: GraphValue
    ) -> Configuration | None:
        """Return a configuration near another that reads a tensor of another model."""
        found = super().with_input(type_, configuration, value)
        if found is None or not 2 <= len(value.shape) <= 5:
            return None
        *batch, rows, depth = value.shape
        if yes(configuration, "adj_x"):
            rows, depth = depth, rows
        found = {**found, "batch": tuple(batch), "rows": rows, "depth": depth}
        if _broadcast(tuple(batch), dimensions(configuration, "right_batch")) is None:
            found["right_batch"] = ()
        if "input_scale" in found:
            # Sums stay as large as they are, in steps of the result.
            ratio = number(configuration, "input_scale") / number(found, "input_scale")
            found["right_scale"] = rescaled(configuration, "right_scale", ratio)
        return found

    def draw(self, type_: str, rng: np.random.Generator) -> Configuration:
        """Return settings at random."""
        settings = dict(super().draw(type_, rng))
        settings["right_batch"] = _drawn_batch(settings, rng)
        while prod(_shapes(settings)[2]) > 600 or prod(_shapes(settings)[0]) > 1000:
            batch = dimensions(settings, "batch")
            if max(batch, default=1) > 1:
                settings["batch"] = tuple((size + 1) // 2 for size in batch)
                right = dimensions(settings, "right_batch")
                settings["right_batch"] = tuple((size + 1) // 2 for size in right)
            else:
                settings |= {name: (whole(settings, name) + 1) // 2 for name in ("rows", "columns")}
        dtype = _DTYPES[type_][0]
        if dtype != "float32":
            spreads = [
                raw_spread(dtype, number(settings, name) if name in settings else 0)
                for name in ("input_zero_point", "right_zero_point")
            ]
            usual = usual_product(spreads[0], spreads[1], whole(settings, "depth"))
            settings |= fitting_scales(dtype, usual, settings, "right_scale", rng)
        return settings

    def facts(self, type_: str, configuration: Configuration) -> Mapping[str, Setting]:  # noqa: ARG002
        """Return the size of the result, and whether batches are repeated."""
        result = _shapes(configuration)[2]
        batch, other = (dimensions(configuration, name) for name in ("batch", "right_batch"))
        whole_batch = result[:-2]
        return {
            "result_size": prod(result),
            "repeats_left": prod(batch) != prod(whole_batch),
            "repeats_right": prod(other) != prod(whole_batch),
        }


def _broadcast(one: Shape, other: Shape) -> Shape | None:
    try:
        return np.broadcast_shapes(one, other)
    except ValueError:
        return None


def _shapes(configuration: Configuration) -> tuple[Shape, Shape, Shape]:
    batch, other = (dimensions(configuration, name) for name in ("batch", "right_batch"))
    rows, depth, columns = (whole(configuration, name) for name in ("rows", "depth", "columns"))
    left = (depth, rows) if yes(configuration, "adj_x") else (rows, depth)
    right = (columns, depth) if yes(configuration, "adj_y") else (depth, columns)
    together = _broadcast(batch, other) or ()
    return (*batch, *left), (*other, *right), (*together, rows, columns)


def _right_scale(parts: ModelParts) -> Setting:
    scale, zero_point = single_quantization(parts.tensor(1))
    if zero_point:
        raise UnknownOperatorForm(f"weights with the zero point {zero_point}")
    return scale


def _drawn_batch(settings: Configuration, rng: np.random.Generator) -> Shape:
    """Return dimensions that broadcast with those of the left batch, mostly both ways."""
    batch = dimensions(settings, "batch")
    rank = len(dimensions(settings, "right_batch"))
    more = tuple(int(rng.integers(1, 4)) for _ in range(max(rank - len(batch), 0)))
    kept = batch[len(batch) - min(rank, len(batch)) :]
    found = [size if rng.random() < 2 / 3 else 1 for size in kept]
    # A dimension of one on the left is repeated as the right one says.
    widened = [int(rng.integers(1, 4)) if size == 1 else size for size in found]
    return (*more, *(w if b == 1 else f for w, f, b in zip(widened, found, kept, strict=True)))


BATCH_MATMUL = _BatchMatmul(
    "BATCH_MATMUL",
    tuple(_DTYPES),
    (
        _batch("batch", 0),
        _batch("right_batch", 1),
        _size("rows", 16, 0, -2, "adjX"),
        _size("depth", 33, 0, -1, "adjX"),
        _size("columns", 16, 1, -1, "adjY"),
        OptionOf(Choice("adj_x", (False, True)), "adjX", default=False),
        OptionOf(Choice("adj_y", (False, True)), "adjY", default=False),
    ),
    versions={INT8: 2, INT16: 3},
)
