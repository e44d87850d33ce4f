"""All operators that are given one tensor along whose axes they work."""

from __future__ import annotations

from edgeflare.conform.operators.one_input.normalizations import NORMALIZATIONS
from edgeflare.conform.operators.one_input.one_axis import ONE_AXIS
from edgeflare.conform.operators.one_input.one_input_operator import OneInputOperator
from edgeflare.conform.operators.one_input.reductions import REDUCTIONS
from edgeflare.conform.operators.one_input.resizing import RESIZINGS
from edgeflare.conform.operators.one_input.softmax import SOFTMAXES
from edgeflare.conform.operators.one_input.top_values import TOP_VALUES

ONE_INPUT_OPERATORS: tuple[OneInputOperator, ...] = (
    *REDUCTIONS,
    *ONE_AXIS,
    *TOP_VALUES,
    *SOFTMAXES,
    *NORMALIZATIONS,
    *RESIZINGS,
)
