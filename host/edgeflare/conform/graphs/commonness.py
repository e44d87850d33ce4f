"""How common operators and types are, and in which order pairs of them are tried by that."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from edgeflare.conform.drafts.cells import Cell

FIRST_TYPES: Final = ("float32", "int8")
"""Types whose pairs are tried first: most models are of these."""

_COMMON: Final = frozenset(
    {
        *("ADD", "AVERAGE_POOL_2D", "CONCATENATION", "CONV_2D", "DEPTHWISE_CONV_2D"),
        *("FULLY_CONNECTED", "LOGISTIC", "MAXIMUM", "MAX_POOL_2D", "MEAN", "MUL", "PAD"),
        *("REDUCE_MAX", "RELU", "RESHAPE", "RESIZE_BILINEAR", "SLICE", "SOFTMAX", "SPLIT"),
        *("STRIDED_SLICE", "SUB", "SUM", "TANH", "TRANSPOSE", "TRANSPOSE_CONV"),
    }
)
"""Operators that most models have, whose pairs are tried first: a slow device does not come to the
thousands of others."""

_DELEGATED: Final = frozenset(
    {
        *("ABS", "BATCH_MATMUL", "CAST", "CEIL", "COS", "CUMSUM", "DEPTH_TO_SPACE"),
        *("DEQUANTIZE", "DIV", "ELU", "EQUAL", "EXP", "EXPAND_DIMS", "FLOOR", "FLOOR_DIV"),
        *("FLOOR_MOD", "GATHER", "GELU", "GREATER", "GREATER_EQUAL", "HARD_SWISH"),
        *("L2_NORMALIZATION", "LEAKY_RELU", "LESS", "LESS_EQUAL", "LOG", "MINIMUM"),
        *("MIRROR_PAD", "NEG", "NOT_EQUAL", "ONE_HOT", "PACK", "PADV2", "POW", "PRELU"),
        *("QUANTIZE", "REDUCE_MIN", "REDUCE_PROD", "RELU6", "RELU_0_TO_1", "RELU_N1_TO_1"),
        *("RESIZE_NEAREST_NEIGHBOR", "ROUND", "RSQRT", "SELECT", "SELECT_V2", "SIGN"),
        *("SIN", "SPACE_TO_DEPTH", "SPLIT_V", "SQRT", "SQUARE", "SQUARED_DIFFERENCE"),
        *("SQUEEZE", "TILE", "TOPK_V2", "UNPACK"),
    }
)
"""Other operators that XNNPACK, LiteRT's GPU accelerator or NNAPI take: delegates fuse operators
and place tensors by rules of their own, which the built-in kernels do not."""

_OTHER_TYPE: Final = 4
"""How much later an operator is tried in a type that few models have."""


def lateness(cell: Cell) -> int:
    """Return how late pairs of an operator and type are tried, 0 for those that come first."""
    operator, type_ = cell
    rare = 0 if operator in _COMMON else 1 if operator in _DELEGATED else 2
    return _OTHER_TYPE * (type_ not in FIRST_TYPES) + rare


def pair_lateness(cells: Sequence[Cell]) -> int:
    """Return how late operators that read each other's results are tried."""
    apart = len({type_ for _, type_ in cells}) > 1
    return sum(map(lateness, cells)) + _OTHER_TYPE * apart


def covering_order(
    pairs: Sequence[tuple[Cell, Cell]], late: Sequence[Any], rng: np.random.Generator
) -> list[int]:
    """Return the places of pairs by how late they are, before them those with a new operator.

    So each operator is soon the first and the second of a pair once.

    Args:
        pairs: pairs of operators.
        late: how late each is tried; those that come alike are put in an order that is drawn.
        rng: draws it.

    """
    keys = rng.random(len(pairs))
    makers, takers = set[Cell](), set[Cell]()
    first, rest = list[int](), list[int]()
    for at in sorted(range(len(pairs)), key=lambda at: (late[at], keys[at])):
        maker, taker = pairs[at]
        (rest if maker in makers and taker in takers else first).append(at)
        makers.add(maker)
        takers.add(taker)
    return first + rest
