"""Blocks of a network, and the network with other connections in one of them."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from edgeflare.errors import UserError
from edgeflare.models.model_probe import HostProbe
from edgeflare.models.tflite_graph import Graph
from edgeflare.repair.architecture.candidate_operators import candidates
from edgeflare.repair.architecture.network_blocks import network_blocks
from edgeflare.repair.architecture.rewritten_block import (
    ORIGINAL,
    Connections,
    possible_edges,
    rewritten_block,
    without_unused,
)
from operator_chain import ChainStep, write_tflite

SHAPE = (1, 8, 8, 3)


def convolution(
    name: str, source: str, given: int, made: int, seed: int, **more: object
) -> ChainStep:
    stride = 2 if made > given else 1
    weights = np.random.default_rng(seed).normal(scale=0.4, size=(made, 3, 3, given))
    size = 8 if made == 4 else 4
    return ChainStep(
        name,
        "CONV_2D",
        (source,),
        (1, size, size, made),
        weights.astype(np.float32),
        np.full(made, 0.1, np.float32),
        stride=1 if made == 4 else stride,
        **more,  # type: ignore[arg-type]
    )


def residual(last: str = "MEAN") -> bytes:
    """A network of a stem, two residual blocks, of which the second one strides, and a mean."""
    steps = [
        convolution("stem", "image", 3, 4, 0, activation="RELU"),
        convolution("first", "stem", 4, 4, 1, activation="RELU"),
        convolution("second", "first", 4, 4, 2),
        ChainStep("sum", "ADD", ("second", "stem"), (1, 8, 8, 4), activation="RELU"),
        convolution("third", "sum", 4, 6, 3, activation="RELU"),
        convolution("fourth", "third", 6, 6, 4),
        convolution("shortcut", "sum", 4, 6, 5),
        ChainStep("total", "ADD", ("shortcut", "fourth"), (1, 4, 4, 6), activation="RELU"),
        ChainStep("end", last, ("total",), (1, 6) if last == "MEAN" else (1, 4, 4, 6)),
    ]
    return write_tflite(steps, SHAPE)


def run(content: bytes, image: NDArray[np.float32]) -> NDArray[np.float32]:
    with HostProbe(content, "xnnpack") as probe:
        return probe.run([image])[0].astype(np.float32)


def test_blocks_are_graphs_of_features() -> None:
    graph = Graph(residual())
    first, second = network_blocks(graph)
    assert first.operators == (1, 2, 3)
    assert [dict(node.edges) for node in first.nodes] == [{}, {0: (1,)}, {1: (2,), 0: ()}]
    assert second.operators == (4, 5, 6, 7)
    assert [dict(node.edges) for node in second.nodes] == [{}, {0: (4,)}, {0: (6,), 1: (5,)}]


def test_an_operator_that_fits_into_no_block_is_named() -> None:
    steps = [
        convolution("stem", "image", 3, 4, 0),
        convolution("first", "stem", 4, 4, 1),
        ChainStep("norm", "L2_NORMALIZATION", ("first",), (1, 8, 8, 4)),
        convolution("second", "norm", 4, 4, 2),
        ChainStep("sum", "ADD", ("second", "stem"), (1, 8, 8, 4)),
        ChainStep("end", "MEAN", ("sum",), (1, 4)),
    ]
    with pytest.raises(UserError, match="operator 2, L2_NORMALIZATION, is in a block"):
        network_blocks(Graph(write_tflite(steps, SHAPE)))


@pytest.mark.parametrize(
    ("given", "made", "count"),
    [(14, 14, 6), (14, 7, 6), (15, 8, 6), (14, 10, 5), (14, 12, 4), (28, 10, 6), (28, 11, 0)],
)
def test_candidates_reach_the_later_feature(given: int, made: int, count: int) -> None:
    rng = np.random.default_rng(0)
    found = candidates((1, given, given, 3), (1, made, made, 5), rng)
    assert len(found) == count
    for operators in found.values():
        reached = (given, given)
        for operator in operators:
            reached = operator.reached(*reached)
        assert reached == (made, made)


@pytest.mark.parametrize("number", [0, 1])
def test_added_candidates_change_nothing_until_they_learn(number: int) -> None:
    content = residual()
    graph, rng = Graph(content), np.random.default_rng(0)
    block = network_blocks(graph)[number]
    wanted = {}
    for edge in possible_edges(graph, block):
        before, after = (block.nodes[at] for at in edge)
        shapes = [graph.tensors[at].shape for at in (before.value, after.sum)]
        wanted[edge] = dict(candidates(shapes[0], shapes[1], rng))
        assert len(wanted[edge]) == 6
        if edge[0] in after.edges:
            wanted[edge][ORIGINAL] = None  # type: ignore[assignment]
    made = rewritten_block(content, block, wanted)
    image = rng.normal(size=SHAPE).astype(np.float32)
    np.testing.assert_allclose(run(made.content, image), run(content, image), rtol=1e-4, atol=1e-6)


def test_connections_are_replaced() -> None:
    content, rng = residual(), np.random.default_rng(0)
    graph = Graph(content)
    block = network_blocks(graph)[0]
    shape = (*SHAPE[:3], 4)
    pooled = candidates(shape, shape, rng)["max_pool"]
    wanted: Connections = {(0, 1): {ORIGINAL: None}, (0, 2): {"max_pool": pooled}}
    made = Graph(without_unused(rewritten_block(content, block, wanted).content))
    names = [operator.name for operator in made.operators[1:4]]
    assert names == [
        "CONV_2D",
        "MAX_POOL_2D",
        "CONV_2D",
    ]  # no sum is left, and the last one rectifies
    assert made.options(3)["fusedActivationFunction"] == 1
    image = rng.normal(size=SHAPE).astype(np.float32)
    whole = rewritten_block(
        content, block, {edge: {ORIGINAL: None} for edge in [(0, 1), (1, 2), (0, 2)]}
    )
    np.testing.assert_allclose(run(whole.content, image), run(content, image), rtol=1e-5)
