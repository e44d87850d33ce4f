"""All operators that are known, by name."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from edgeflare.conform.operators.elementwise.elementwise_operators import ELEMENTWISE_OPERATORS
from edgeflare.conform.operators.movement.movement_operators import MOVEMENT_OPERATORS
from edgeflare.conform.operators.one_input.one_input_operators import ONE_INPUT_OPERATORS
from edgeflare.conform.operators.pools.pools import POOLS
from edgeflare.conform.operators.weighted_sums.weighted_sum_operators import WEIGHTED_SUMS
from edgeflare.conform.specification.operator_specification import OperatorSpecification


@cache
def known_operators() -> Mapping[str, OperatorSpecification]:
    """Return the specifications of all operators, by the names that the schema gives them."""
    families: tuple[tuple[OperatorSpecification, ...], ...] = (
        ELEMENTWISE_OPERATORS,
        MOVEMENT_OPERATORS,
        ONE_INPUT_OPERATORS,
        POOLS,
        WEIGHTED_SUMS,
    )
    known = [one for family in families for one in family]
    return {one.operator: one for one in sorted(known, key=lambda one: one.operator)}
