"""All elementwise operators."""

from __future__ import annotations

from edgeflare.conform.operators.elementwise.binary_operators import BINARY_OPERATORS
from edgeflare.conform.operators.elementwise.conversion_operator import CONVERSION_OPERATORS
from edgeflare.conform.operators.elementwise.sum_of_many import SumOfMany
from edgeflare.conform.operators.elementwise.unary_operators import UNARY_OPERATORS
from edgeflare.conform.specification.operator_specification import OperatorSpecification

ELEMENTWISE_OPERATORS: tuple[OperatorSpecification, ...] = (
    *UNARY_OPERATORS,
    *BINARY_OPERATORS,
    *CONVERSION_OPERATORS,
    SumOfMany(),
)
"""One declaration for each."""
