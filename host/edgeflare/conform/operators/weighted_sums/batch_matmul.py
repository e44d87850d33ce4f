"""BATCH_MATMUL."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod

import numpy as np

from edgeflare.conform.operator_graph import GraphValue, OperatorGraph, Option, Quantization
from edgeflare.conform.operators.weighted_sums.sum_answer import Reals, summed
from edgeflare.conform.operators.weighted_sums.sum_tensors import (
    data_parameters,
    data_value,
    fitting_scales,
    raw_spread,
    read_data,
    rescaled,
    single_quantization,
    usual_product,
)
from edgeflare.conform.operators.window_settings import size_parameter
from edgeflare.conform.specification.operator_specification import (
    DYNAMIC,
    FLOAT,
    INT8,
    INT16,
    ExactAnswer,
    Operand,
    OperatorReading,
    OperatorSpecification,
    UnknownOperatorForm,
    operand_values,
)
from edgeflare.conform.specification.parameter import (
    Choice,
    Configuration,
    Dimensions,
    OperatorParameter,
    ScaleParameter,
    Setting,
    dimensions,
    number,
    whole,
    word,
    yes,
)

Shape = tuple[int, ...]

_DTYPES = {
    FLOAT: ("float32", "float32"),
    INT8: ("int8", "int8"),
    INT16: ("int16", "int16"),
    DYNAMIC: ("float32", "int8"),
}
"""Dtypes of the left and the right operand by type; the result has that of the left one."""

_SHAPES: tuple[OperatorParameter, ...] = (
    Dimensions("batch", (0, 3), most_values=24),
    Dimensions("right_batch", (0, 3), most_values=24),
    size_parameter("rows", 16),
    size_parameter("depth", 33),
    size_parameter("columns", 16),
    Choice("adj_x", (False, True)),
    Choice("adj_y", (False, True)),
)
_RIGHT = Choice("right", ("given", "constant"))
_ASYMMETRIC = Choice("asymmetric_inputs", (False, True))


class BatchMatmul(OperatorSpecification):
    """BATCH_MATMUL: (*batch, rows, depth) by (*right batch, depth, columns), either turned."""

    operator = "BATCH_MATMUL"
    types = tuple(_DTYPES)

    def parameters(self, type_: str) -> tuple[OperatorParameter, ...]:
        """Return the parameters of a type."""
        if type_ == FLOAT:
            return (*_SHAPES, _RIGHT)
        if type_ == DYNAMIC:
            return (*_SHAPES, _ASYMMETRIC, ScaleParameter("right_scale"))
        names = ("input", "right", "output")
        scales = [one for name in names for one in data_parameters(_DTYPES[type_][0], name)]
        return (*_SHAPES, _RIGHT, *scales)

    def fault(self, type_: str, configuration: Configuration) -> str | None:  # noqa: ARG002
        """Return why a configuration is no valid model, or None."""
        batches = dimensions(configuration, "batch"), dimensions(configuration, "right_batch")
        return None if _broadcast(*batches) is not None else f"{batches} do not broadcast"

    def build(
        self, type_: str, configuration: Configuration, rng: np.random.Generator
    ) -> OperatorGraph:
        """Return the model of a valid configuration."""
        shapes = _shapes(configuration)
        dtypes = _DTYPES[type_]
        left = data_value(dtypes[0], shapes[0], configuration, "input")
        if type_ == DYNAMIC:
            scale = number(configuration, "right_scale")
            right = GraphValue(dtypes[1], shapes[1], Quantization((scale,)))
        else:
            right = data_value(dtypes[1], shapes[1], configuration, "right")
        if type_ == DYNAMIC or word(configuration, "right") == "constant":
            right = right.constant(operand_values(right, "uniform", rng))
        result = data_value(dtypes[0], shapes[2], configuration, "output")
        adjoint = {"adjX": yes(configuration, "adj_x"), "adjY": yes(configuration, "adj_y")}
        options: dict[str, Option] = {**adjoint}
        version = {INT8: 2, INT16: 3}.get(type_, 1)
        if type_ == DYNAMIC and yes(configuration, "asymmetric_inputs"):
            options["asymmetricQuantizeInputs"] = True
            version = 4
        return OperatorGraph.of_operator(self.operator, [left, right], [result], options, version)

    def read(self, graph: OperatorGraph) -> OperatorReading:
        """Return what a model of this one operator is."""
        node = graph.nodes[0]
        (left, right), (result,) = graph.operands(node), graph.results(node)
        if left is None or right is None or left.values is not None:
            raise UnknownOperatorForm("a left operand that is not given")
        if min(len(left.shape), len(right.shape)) < 2 or result.dtype != left.dtype:
            raise UnknownOperatorForm(f"{left.shape} by {right.shape} to {result.dtype}")
        type_ = next(
            (one for one, known in _DTYPES.items() if known == (left.dtype, right.dtype)), None
        )
        if type_ is None or (type_ == DYNAMIC and right.values is None):
            raise UnknownOperatorForm(f"{left.dtype} by {right.dtype}")
        settings = _read_shapes(node.options, left.shape, right.shape)
        if type_ == DYNAMIC:
            scale, zero_point = single_quantization(right)
            if zero_point:
                raise UnknownOperatorForm(f"weights with the zero point {zero_point}")
            asymmetric = bool(node.options.get("asymmetricQuantizeInputs", False))
            settings |= {"right_scale": scale, "asymmetric_inputs": asymmetric}
        else:
            settings |= {"right": "given" if right.values is None else "constant"}
            for name, value in (("input", left), ("right", right), ("output", result)):
                settings |= read_data(value, name)
        return OperatorReading(type_, settings)

    def exact(
        self,
        options: Mapping[str, Option],
        operands: Sequence[Operand | None],
        results: Sequence[GraphValue],
    ) -> tuple[ExactAnswer, ...]:
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
        if value.dtype != _DTYPES[type_][0] or not 2 <= len(value.shape) <= 5:
            return None
        *batch, rows, depth = value.shape
        if yes(configuration, "adj_x"):
            rows, depth = depth, rows
        found = {**configuration, "batch": tuple(batch), "rows": rows, "depth": depth}
        if _broadcast(tuple(batch), dimensions(configuration, "right_batch")) is None:
            found["right_batch"] = ()
        try:
            given = read_data(value, "input")
        except UnknownOperatorForm:
            return None
        if given:
            # Sums stay as large as they are, in steps of the result.
            ratio = number(configuration, "input_scale") / number(given, "input_scale")
            found["right_scale"] = rescaled(configuration, "right_scale", ratio)
        return found | given

    def draw(self, type_: str, rng: np.random.Generator) -> Configuration:
        """Return settings at random."""
        settings = {one.name: one.draw(rng) for one in self.parameters(type_)}
        settings["right_batch"] = _drawn_batch(settings, rng)
        while prod(_shapes(settings)[2]) > 600 or prod(_shapes(settings)[0]) > 1000:
            batch = dimensions(settings, "batch")
            if max(batch, default=1) > 1:
                settings["batch"] = tuple((one + 1) // 2 for one in batch)
                right = dimensions(settings, "right_batch")
                settings["right_batch"] = tuple((one + 1) // 2 for one in right)
            else:
                settings |= {one: (whole(settings, one) + 1) // 2 for one in ("rows", "columns")}
        dtype = _DTYPES[type_][0]
        if dtype != "float32":
            spreads = [
                raw_spread(dtype, number(settings, one) if one in settings else 0)
                for one in ("input_zero_point", "right_zero_point")
            ]
            usual = usual_product(spreads[0], spreads[1], whole(settings, "depth"))
            settings |= fitting_scales(dtype, usual, settings, "right_scale", rng)
        return settings

    def facts(self, type_: str, configuration: Configuration) -> Mapping[str, Setting]:  # noqa: ARG002
        """Return the size of the result, and whether batches are repeated."""
        result = _shapes(configuration)[2]
        batch, other = (dimensions(configuration, one) for one in ("batch", "right_batch"))
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
    batch, other = (dimensions(configuration, one) for one in ("batch", "right_batch"))
    rows, depth, columns = (whole(configuration, one) for one in ("rows", "depth", "columns"))
    left = (depth, rows) if yes(configuration, "adj_x") else (rows, depth)
    right = (columns, depth) if yes(configuration, "adj_y") else (depth, columns)
    together = _broadcast(batch, other) or ()
    return (*batch, *left), (*other, *right), (*together, rows, columns)


def _read_shapes(options: Mapping[str, Option], left: Shape, right: Shape) -> dict[str, Setting]:
    adj_x, adj_y = bool(options.get("adjX", False)), bool(options.get("adjY", False))
    depth, rows = left[-2:] if adj_x else left[:-3:-1]
    columns = right[-2] if adj_y else right[-1]
    if depth != (right[-1] if adj_y else right[-2]):
        raise UnknownOperatorForm(f"{left} by {right}")
    sizes: dict[str, Setting] = {"rows": rows, "depth": depth, "columns": columns}
    batches: dict[str, Setting] = {"batch": left[:-2], "right_batch": right[:-2]}
    return {**batches, **sizes, "adj_x": adj_x, "adj_y": adj_y}


def _drawn_batch(settings: Configuration, rng: np.random.Generator) -> Shape:
    """Return dimensions that broadcast with those of the left batch, mostly both ways."""
    batch = dimensions(settings, "batch")
    rank = len(dimensions(settings, "right_batch"))
    more = tuple(int(rng.integers(1, 4)) for _ in range(max(rank - len(batch), 0)))
    kept = batch[len(batch) - min(rank, len(batch)) :]
    found = [one if rng.random() < 2 / 3 else 1 for one in kept]
    # A dimension of one on the left is repeated as the right one says.
    widened = [int(rng.integers(1, 4)) if one == 1 else one for one in found]
    return (*more, *(w if b == 1 else f for w, f, b in zip(widened, found, kept, strict=True)))
