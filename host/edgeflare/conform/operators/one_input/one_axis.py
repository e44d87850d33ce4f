"""Operators along one axis: where the greatest or least value is, and running sums."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from edgeflare.conform.operator_graph import GraphValue, Option, Values
from edgeflare.conform.operators.one_input.one_input_operator import (
    OneInputOperator,
    ResultQuantization,
    constant,
    only_value,
    switched,
)
from edgeflare.conform.specification.operator_specification import (
    BOOL,
    FLOAT,
    INT8,
    INT32,
    INT64,
    UINT8,
    ExactAnswer,
    Operand,
    bits,
    reals,
    sum_slack,
)
from edgeflare.conform.specification.parameter import (
    Choice,
    Configuration,
    Setting,
    Whole,
    dimensions,
    whole,
    word,
    yes,
)
from edgeflare.conform.specification.whole_numbers import clipped, within


class AxisOperator(OneInputOperator):
    """An operator along one axis, which is a constant."""

    constant_operands = 1
    axis = Whole("axis", -5, 4, simplest=0)

    def constants(self, configuration: Configuration) -> tuple[GraphValue, ...]:
        """Return the axis: ()."""
        return (constant(whole(configuration, "axis")),)

    def fitting(
        self, configuration: Configuration, rng: np.random.Generator
    ) -> Mapping[str, Setting]:
        """Return an axis that the shape has."""
        rank = len(dimensions(configuration, "shape"))
        return {"axis": int(rng.integers(-rank, rank))}

    def fitted(self, configuration: Configuration) -> Mapping[str, Setting]:
        """Return the axis near that of a configuration that the shape has."""
        rank = len(dimensions(configuration, "shape"))
        return {"axis": clipped((whole(configuration, "axis"),), rank)[0]}

    def fault(self, type_: str, configuration: Configuration) -> str | None:  # noqa: ARG002
        """Return why a configuration is no valid model, or None."""
        rank, axis = len(dimensions(configuration, "shape")), whole(configuration, "axis")
        if not -rank <= axis < rank:
            return f"axis {axis} of a tensor of {rank} dimensions"
        return None

    def facts(self, type_: str, configuration: Configuration) -> Mapping[str, Setting]:
        """Return also the size of the axis, and whether it is the last."""
        shape = dimensions(configuration, "shape")
        axis = within(whole(configuration, "axis"), len(shape))
        return {
            **super().facts(type_, configuration),
            "axis_size": shape[axis],
            "last_axis": axis == len(shape) - 1,
        }


class PlaceOfExtreme(AxisOperator):
    """The index of the greatest or least value along an axis, the first of equal ones."""

    quantized_result: ResultQuantization = "none"
    own = (AxisOperator.axis, Choice("output_type", ["INT32", "INT64"]))

    def options(self, configuration: Configuration) -> Mapping[str, Option]:
        """Return the type of the indexes."""
        return {"outputType": word(configuration, "output_type")}

    def settings(
        self, options: Mapping[str, Option], constants: Sequence[Values]
    ) -> Mapping[str, Setting]:
        """Return the axis, and the type of the indexes."""
        return {
            "axis": only_value(constants),
            "output_type": str(options.get("outputType", "FLOAT32")),
        }

    def fault(self, type_: str, configuration: Configuration) -> str | None:
        """Return why a configuration is no valid model, or None."""
        if (why := super().fault(type_, configuration)) is not None:
            return why
        if not dimensions(configuration, "shape")[whole(configuration, "axis")]:
            return "there is no greatest value along an axis of size 0"
        return None

    def results(self, type_: str, configuration: Configuration) -> tuple[GraphValue, ...]:  # noqa: ARG002
        """Return the indexes, without the axis."""
        shape = list(dimensions(configuration, "shape"))
        del shape[whole(configuration, "axis")]
        return (GraphValue(word(configuration, "output_type").lower(), tuple(shape)),)

    def answers(
        self,
        options: Mapping[str, Option],  # noqa: ARG002
        operand: Operand,
        constants: Sequence[Values],
        results: Sequence[GraphValue],
    ) -> tuple[ExactAnswer, ...]:
        """Return the indexes; equal raw values are equal real ones."""
        find = np.argmax if self.operator == "ARG_MAX" else np.argmin
        indexes = find(operand.raw, only_value(constants))
        return (bits(np.asarray(indexes).astype(results[0].dtype)),)


class RunningSum(AxisOperator):
    """The sums of all values up to each along an axis."""

    own = (
        AxisOperator.axis,
        Choice("exclusive", [False, True]),
        Choice("reverse", [False, True]),
    )

    def options(self, configuration: Configuration) -> Mapping[str, Option]:
        """Return whether a value is left out of its own sum, and whether sums begin at the end."""
        return {name: yes(configuration, name) for name in ("exclusive", "reverse")}

    def settings(
        self, options: Mapping[str, Option], constants: Sequence[Values]
    ) -> Mapping[str, Setting]:
        """Return the axis, and what is summed."""
        switches = {name: switched(options, name) for name in ("exclusive", "reverse")}
        return {"axis": only_value(constants), **switches}

    def results(self, type_: str, configuration: Configuration) -> tuple[GraphValue, ...]:
        """Return a tensor of the operand's shape."""
        return (self.result(type_, configuration, dimensions(configuration, "shape")),)

    def answers(
        self,
        options: Mapping[str, Option],
        operand: Operand,
        constants: Sequence[Values],
        results: Sequence[GraphValue],  # noqa: ARG002
    ) -> tuple[ExactAnswer, ...]:
        """Return the sums; whole numbers wrap."""
        axis = only_value(constants)
        if operand.raw.dtype.kind == "i":
            sums = _sums(operand.raw.astype(np.int64), axis, options)
            return (bits(sums.astype(operand.raw.dtype)),)
        values = operand.real
        magnitude = _sums(np.abs(values), axis, options)
        return (reals(_sums(values, axis, options), sum_slack(values.shape[axis], magnitude)),)


def _sums(values: Values, axis: int, options: Mapping[str, Option]) -> Values:
    along = np.moveaxis(values, axis, -1)
    along = along[..., ::-1] if switched(options, "reverse") else along
    sums = np.cumsum(along, -1)
    if switched(options, "exclusive"):
        sums = np.concatenate([np.zeros_like(sums[..., :1]), sums[..., :-1]], -1)
    sums = sums[..., ::-1] if switched(options, "reverse") else sums
    return np.moveaxis(sums, -1, axis)


_COMPARED = (FLOAT, INT8, UINT8, INT32, BOOL)

ONE_AXIS = (
    PlaceOfExtreme("ARG_MAX", _COMPARED, {INT8: 2, BOOL: 3}),
    PlaceOfExtreme("ARG_MIN", _COMPARED, {INT8: 2, BOOL: 3}),
    RunningSum("CUMSUM", (FLOAT, INT32, INT64)),
)
"""Operators along one axis."""
