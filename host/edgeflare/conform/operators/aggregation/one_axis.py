"""Operators along one axis: where the greatest or least value is, and running sums."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from edgeflare.conform.operator_graph import GraphValue, Values
from edgeflare.conform.operators.aggregation.aggregate_operator import SHAPE, AggregateOperator
from edgeflare.conform.specification.activation_tensors import (
    BOOL,
    FLOAT,
    INT8,
    INT32,
    INT64,
    UINT8,
)
from edgeflare.conform.specification.exact_answer import ExactAnswer, bits, reals, sum_slack
from edgeflare.conform.specification.model_parts import ConstantOf, OptionOf
from edgeflare.conform.specification.operand import Operand
from edgeflare.conform.specification.parameter import (
    Choice,
    Configuration,
    Setting,
    Settings,
    Whole,
    dimensions,
    whole,
    word,
    yes,
)
from edgeflare.conform.specification.whole_numbers import clipped, within

_AXIS = ConstantOf(Whole("axis", -5, 4, simplest=0))


def _draw_axis(settings: Settings, rng: np.random.Generator) -> Settings:
    rank = len(dimensions(settings, "shape"))
    return {**settings, "axis": int(rng.integers(-rank, rank))}


def _fit_axis(settings: Settings, _: str) -> Settings:
    rank = len(dimensions(settings, "shape"))
    return {**settings, "axis": clipped((whole(settings, "axis"),), rank)[0]}


def _no_axis(_: str, settings: Configuration) -> str | None:
    rank, axis = len(dimensions(settings, "shape")), whole(settings, "axis")
    return None if -rank <= axis < rank else f"axis {axis} of a tensor of {rank} dimensions"


def _axis_facts(settings: Configuration) -> Mapping[str, Setting]:
    shape = dimensions(settings, "shape")
    axis = within(whole(settings, "axis"), len(shape))
    return {"axis_size": shape[axis], "last_axis": axis == len(shape) - 1}


def _no_extreme(type_: str, settings: Configuration) -> str | None:
    if (why := _no_axis(type_, settings)) is not None:
        return why
    if not dimensions(settings, "shape")[whole(settings, "axis")]:
        return "there is no greatest value along an axis of size 0"
    return None


def _indexes(_: GraphValue, settings: Configuration) -> tuple[GraphValue, ...]:
    """Return the indexes, without the axis."""
    shape = list(dimensions(settings, "shape"))
    del shape[whole(settings, "axis")]
    return (GraphValue(word(settings, "output_type").lower(), tuple(shape)),)


def _place_of_extreme(operator: str, find: Callable[..., Values]) -> AggregateOperator:
    """Return the operator that finds a value along an axis, the first of equal ones."""

    def answers(settings: Configuration, operand: Operand, result: GraphValue) -> ExactAnswer:
        # Equal raw values are equal real ones.
        indexes = find(operand.raw, whole(settings, "axis"))
        return bits(np.asarray(indexes).astype(result.dtype))

    return AggregateOperator(
        operator,
        (FLOAT, INT8, UINT8, INT32, BOOL),
        (SHAPE, _AXIS, OptionOf(Choice("output_type", ["INT32", "INT64"]), "outputType")),
        answers,
        written=_indexes,
        quantized_result={},
        versions={INT8: 2, BOOL: 3},
        varied=_draw_axis,
        fit=_fit_axis,
        refused=_no_extreme,
        known=_axis_facts,
    )


def _running_sums(settings: Configuration, operand: Operand, _: GraphValue) -> ExactAnswer:
    """Return the sums of all values up to each along an axis; whole numbers wrap."""
    if operand.raw.dtype.kind == "i":
        sums = _sums(operand.raw.astype(np.int64), settings)
        return bits(sums.astype(operand.raw.dtype))
    values, size = operand.real, operand.raw.shape[whole(settings, "axis")]
    return reals(_sums(values, settings), sum_slack(size, _sums(np.abs(values), settings)))


def _sums(values: Values, settings: Configuration) -> Values:
    axis = whole(settings, "axis")
    along = np.moveaxis(values, axis, -1)
    along = along[..., ::-1] if yes(settings, "reverse") else along
    sums = np.cumsum(along, -1)
    if yes(settings, "exclusive"):
        sums = np.concatenate([np.zeros_like(sums[..., :1]), sums[..., :-1]], -1)
    sums = sums[..., ::-1] if yes(settings, "reverse") else sums
    return np.moveaxis(sums, -1, axis)


ONE_AXIS = (
    _place_of_extreme("ARG_MAX", np.argmax),
    _place_of_extreme("ARG_MIN", np.argmin),
    AggregateOperator(
        "CUMSUM",
        (FLOAT, INT32, INT64),
        (
            SHAPE,
            _AXIS,
            *(
                OptionOf(Choice(name, [False, True]), name, False)
                for name in ("exclusive", "reverse")
            ),
        ),
        _running_sums,
        varied=_draw_axis,
        fit=_fit_axis,
        refused=_no_axis,
        known=_axis_facts,
    ),
)
"""Operators along one axis."""
