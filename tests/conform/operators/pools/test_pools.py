"""Pools: what is padded counts for nothing, and activations clamp."""

from __future__ import annotations

import numpy as np
import pytest

from edgeflare.conform.operators.pools.pools import AveragePool, L2Pool, MaxPool, Pool
from edgeflare.conform.specification.operator_specification import Operand
from edgeflare.conform.specification.settings import Configuration

TWO_BY_ONE: Configuration = {
    "batch": 1,
    "height": 3,
    "width": 1,
    "channels": 1,
    "kernel_h": 2,
    "kernel_w": 1,
    "stride_h": 2,
    "stride_w": 1,
    "padding": "SAME",
    "activation": "NONE",
}


def pooled(pool: Pool, activation: str) -> list[float]:
    graph = pool.build("float32", {**TWO_BY_ONE, "activation": activation}, np.random.default_rng())
    raw = np.array([3.0, -4.0, -8.0], np.float32).reshape(1, 3, 1, 1)
    node = graph.nodes[0]
    operand = Operand(graph.values[0], raw)
    (exact,) = pool.exact(node.options, [operand], graph.results(node))
    return [float(one) for one in exact.values.ravel()]


@pytest.mark.parametrize(
    ("pool", "activation", "expected"),
    [
        (MaxPool(), "NONE", [3.0, -8.0]),
        (MaxPool(), "RELU6", [3.0, 0.0]),
        (MaxPool(), "RELU_N1_TO_1", [1.0, -1.0]),
        (AveragePool(), "NONE", [-0.5, -8.0]),
        (L2Pool(), "NONE", [np.sqrt(12.5), 8.0]),
        (L2Pool(), "RELU6", [np.sqrt(12.5), 6.0]),
    ],
)
def test_a_window_beyond_the_end_has_what_is_there_alone(
    pool: Pool, activation: str, expected: list[float]
) -> None:
    assert pooled(pool, activation) == pytest.approx(expected)
