"""All operators that are known, by name."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from edgeflare.conform.operators.aggregation.aggregate_operator import AggregateOperator
from edgeflare.conform.operators.aggregation.one_axis import (
    NORMALIZATIONS,
    ONE_AXIS,
    SOFTMAXES,
    TOP_VALUES,
)
from edgeflare.conform.operators.aggregation.reductions import REDUCTIONS
from edgeflare.conform.operators.aggregation.resizing import RESIZINGS
from edgeflare.conform.operators.elementwise.binary_operators import BINARY_OPERATORS, SUM_OF_MANY
from edgeflare.conform.operators.elementwise.conversion_operator import CONVERSION_OPERATORS
from edgeflare.conform.operators.elementwise.unary_operators import UNARY_OPERATORS
from edgeflare.conform.operators.movement.block_moves import BLOCK_MOVES
from edgeflare.conform.operators.movement.cuts import CUTS
from edgeflare.conform.operators.movement.enlargements import PADS, REPEATS
from edgeflare.conform.operators.movement.joins import JOINS
from edgeflare.conform.operators.movement.lookups import LOOKUPS
from edgeflare.conform.operators.movement.reshapes import RESHAPES
from edgeflare.conform.operators.movement.reversals import REVERSALS
from edgeflare.conform.operators.pools import POOLS
from edgeflare.conform.operators.recurrent.lstm import LSTMS
from edgeflare.conform.operators.recurrent.rnn import RNNS
from edgeflare.conform.operators.weighted_sums.batch_matmul import BATCH_MATMUL
from edgeflare.conform.operators.weighted_sums.convolutions import (
    CONVOLUTION,
    CONVOLUTION_3D,
    DEPTHWISE_CONVOLUTION,
)
from edgeflare.conform.operators.weighted_sums.fully_connected import FULLY_CONNECTED
from edgeflare.conform.operators.weighted_sums.transpose_convolution import TRANSPOSE_CONVOLUTION
from edgeflare.conform.specification.operator_specification import OperatorSpecification

WEIGHTED_SUMS: tuple[OperatorSpecification, ...] = (
    CONVOLUTION,
    DEPTHWISE_CONVOLUTION,
    TRANSPOSE_CONVOLUTION,
    CONVOLUTION_3D,
    FULLY_CONNECTED,
    BATCH_MATMUL,
)

RECURRENT_OPERATORS: tuple[OperatorSpecification, ...] = (*LSTMS, *RNNS)

AGGREGATE_OPERATORS: tuple[AggregateOperator, ...] = (
    *REDUCTIONS,
    *ONE_AXIS,
    *TOP_VALUES,
    *SOFTMAXES,
    *NORMALIZATIONS,
    *RESIZINGS,
)

ELEMENTWISE_OPERATORS: tuple[OperatorSpecification, ...] = (
    *UNARY_OPERATORS,
    *BINARY_OPERATORS,
    *CONVERSION_OPERATORS,
    SUM_OF_MANY,
)
"""Declarations of elementwise operators."""


@cache
def known_operators() -> Mapping[str, OperatorSpecification]:
    """Return the specifications of all operators, by the names that the schema gives them."""
    families: tuple[tuple[OperatorSpecification, ...], ...] = (
        ELEMENTWISE_OPERATORS,
        MOVEMENT_OPERATORS,
        AGGREGATE_OPERATORS,
        POOLS,
        WEIGHTED_SUMS,
        RECURRENT_OPERATORS,
    )
    known = [specification for family in families for specification in family]
    return {
        specification.operator: specification
        for specification in sorted(known, key=lambda known_one: known_one.operator)
    }


MOVEMENT_OPERATORS = (
    *RESHAPES,
    *JOINS,
    *REPEATS,
    *CUTS,
    *PADS,
    *LOOKUPS,
    *BLOCK_MOVES,
    *REVERSALS,
)
