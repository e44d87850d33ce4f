"""The constants and options of operators, written and read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from edgeflare.conform.operator_graph import GraphValue, Option, Values
from edgeflare.conform.specification.operator_specification import UnknownOperatorForm


def constant(values: Values | Sequence[int] | int) -> GraphValue:
    """Return an int32 constant, such as an axis."""
    array = np.asarray(values, np.int32)
    return GraphValue("int32", array.shape).constant(array)


def switched(options: Mapping[str, Option], name: str) -> bool:
    """Return an option that is on or off; off where a model leaves it out."""
    return bool(options.get(name, False))


def only_value(constants: Sequence[Values]) -> int:
    """Return the value of the only constant operand, such as an axis."""
    if constants[0].size != 1:
        raise UnknownOperatorForm(f"an operand has {constants[0].size} values where 1 is known")
    return int(constants[0].ravel()[0])


def real_option(options: Mapping[str, Option], name: str) -> float:
    """Return an option that is a number, as float32 has it; 0 where a model leaves it out."""
    option = options.get(name, 0.0)
    if not isinstance(option, int | float):
        raise UnknownOperatorForm(f"{name} is {option!r}, no number")
    return float(np.float32(option))
