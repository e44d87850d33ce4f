"""Blocks of a compressed model: their operators, their errors, and which is to blame."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest
from ai_edge_litert import schema_py_generated as schema

from edgeflare.errors import UserError
from edgeflare.models.tflite_graph import Graph
from edgeflare.repair.candidate_details import Block
from edgeflare.repair.fitting.activation_ranges import fit_ranges
from edgeflare.repair.fitting.quantized_network import QuantizedNetwork
from edgeflare.repair.fitting.quantizer import float_operators, weights_only
from edgeflare.repair.methods.precision import (
    promotion_scores,
)
from edgeflare.repair.precision.blocks import (
    OperatorErrors,
    blamed,
    blocks_of,
    joined_tail,
    operator_errors,
    operators_of,
    residual,
    residual_scores,
)
from edgeflare.repair.precision.precision_promotion import (
    MarginComparison,
    PromotedModels,
)
from fault_injection import Planted, broken
from fitted_networks import judged, outputs, untold
from graph_writer import GraphWriter
from operator_chain import ChainStep, write_tflite
from tampering import edited


def test_operators_that_carry_numbers_belong_to_the_block_behind_which_they_are() -> None:
    network = judged("example").network
    blocks = blocks_of(network)
    assert [one.name for one in blocks] == [
        "CONV_2D (operator 0)",
        "CONV_2D (operator 2)",
        "FULLY_CONNECTED (operator 8)",
        "FULLY_CONNECTED (operator 9)",
    ]
    assert [one.operators for one in blocks] == [(0, 1), (2, 3, 7), (8,), (9, 10)]


def test_a_sum_belongs_to_the_last_block_that_it_reads() -> None:
    network = judged("resnet").network
    graph = network.graph
    blocks = blocks_of(network)
    every = operators_of(blocks)
    assert len(set(every)) == len(every)
    sums = [one for one in graph.layers if one.name == "ADD"]
    assert sums
    for one in sums:
        (block,) = (block for block in blocks if one.index in block.operators)
        makers = {graph.made_by[tensor] for tensor in graph.fed(one)}
        assert max(makers) in block.operators
        assert len(makers.intersection(block.operators)) == 1


def test_scores_keep_their_steps_where_they_are_joined_with_boxes_in_float() -> None:
    """By hand: boxes span 0 to 200, scores 0 to 1, and what is joined before has weights behind."""
    rng = np.random.default_rng(0)
    zeros = np.zeros(2, np.float32)
    wide = np.full((2, 4), 25, np.float32)
    small = rng.uniform(0.05, 0.12, (2, 4)).astype(np.float32)
    steps = [
        ChainStep("both", "CONCATENATION", ("image", "image"), (1, 4)),
        ChainStep("boxes", "FULLY_CONNECTED", ("both",), (1, 2), wide, zeros),
        ChainStep("scores", "FULLY_CONNECTED", ("both",), (1, 2), small, zeros),
        ChainStep("joined", "CONCATENATION", ("boxes", "scores"), (1, 4)),
        ChainStep("end", "ADD", ("joined", "joined"), (1, 4)),
    ]
    names = ("image", "both", "boxes", "scores", "joined", "end")
    tops = (2.0, 2.0, 200.0, 200.0, 200.0, 400.0)
    ranges = {name: (0.0, top) for name, top in zip(names, tops, strict=True)}
    original, compressed = write_tflite(steps, (1, 2)), write_tflite(steps, (1, 2), ranges)
    real = rng.uniform(0, 2, (16, 2)).astype(np.float32)
    raw = Graph(compressed).tensors[0].raw(real.astype(np.float64))
    network = QuantizedNetwork(compressed, original, raw, real)
    tail = joined_tail(network)
    assert tail == (3, 4)
    made = float_operators(network, tail).content
    ranged = fit_ranges(network.with_content(made), untold)
    wanted = outputs(original, real)[:, 2:]
    errors = [np.abs(outputs(content, raw)[:, 2:] - wanted).max() for content in (made, ranged)]
    assert errors[0] > 0.3
    assert errors[1] < 0.03


def test_a_model_that_joins_nothing_has_no_tail() -> None:
    with pytest.raises(UserError, match="no operator joins what the model puts out"):
        joined_tail(judged("example").network)


def test_a_model_that_computes_in_float_has_no_blocks() -> None:
    network = judged("example").network
    with pytest.raises(UserError, match="no operator with weights that computes on int8 numbers"):
        blocks_of(replace(network, content=network.original))


def test_margins_tell_how_near_a_model_is_and_on_which_inputs_it_deviates() -> None:
    known = judged("example")
    network = replace(known.network, rows=known.rows, original_rows=known.original_rows)
    comparison = MarginComparison(network)
    same = comparison.error(network.original)
    assert (same.mean, same.deviating) == (0.0, 0)
    nearer = comparison.error(weights_only(known.network).content)
    assert nearer.mean < comparison.error(network.content).mean
    raw, exact = (
        outputs(network.content, known.rows),
        outputs(network.original, known.original_rows),
    )
    best, second = np.sort(raw, axis=1)[:, -1], np.sort(raw, axis=1)[:, -2]
    deviating = (raw.argmax(axis=1) != exact.argmax(axis=1)) | (best == second)
    leads = np.diff(np.sort(exact, axis=1)[:, -2:])[:, 0]
    there = int(deviating[leads <= np.median(leads)].sum())
    assert there > 0
    assert comparison.error(network.content).deviating == there


@cache
def blocks() -> tuple[Block, ...]:
    return blocks_of(judged("example").network)


@cache
def near_network() -> QuantizedNetwork:
    """The example with images halfway between two, which are less decided."""
    known = judged("example")
    return replace(known.network, rows=known.rows, original_rows=known.original_rows)


def with_fault(
    block: int, fault: str, amount: float, network: QuantizedNetwork | None = None
) -> QuantizedNetwork:
    network = network or near_network()
    graph = network.graph
    output = graph.operators[blocks()[block].operators[0]].outputs[0]
    planted = Planted(fault, graph.tensors[output].name, amount)
    return network.with_content(broken(network.content, planted))


def test_an_operator_adds_no_error_of_those_before_it() -> None:
    operators = operators_of(blocks())
    few = replace(
        near_network(), rows=near_network().rows[:8], original_rows=near_network().original_rows[:8]
    )
    healthy = operator_errors(few, operators)
    wrong = with_fault(0, "some weights", 0.5)
    faulty = operator_errors(few.with_content(wrong.content), operators)
    first = blocks()[0].operators[0]
    assert faulty[first].relative.mean() > 5 * healthy[first].relative.mean()
    for one in set(healthy) - {first}:
        np.testing.assert_array_equal(faulty[one].squared, healthy[one].squared)


def block(*operators: int) -> Block:
    return Block(f"CONV_2D (operator {operators[0]})", "", operators)


def test_an_operator_with_several_outputs_is_compared_by_its_first() -> None:
    """A dense layer whose output is split, as gates of a recurrent one are, and added up."""
    rng = np.random.default_rng(0)
    weights = rng.integers(-127, 128, (4, 3), np.int8)

    def written(*, whole: bool) -> bytes:
        graph = GraphWriter()
        dtype, version = ("INT8", 2) if whole else ("FLOAT32", 1)

        def tensor(name: str, size: int, scale: float) -> int:
            return graph.tensor(name, (1, size), dtype, (scale, 0) if whole else None)

        given, made = tensor("x", 3, 1 / 127), tensor("made", 4, 4 / 127)
        held = graph.constant("weights", weights, (1 / 127, 0))
        if not whole:
            held = graph.constant("weights", (weights / 127).astype(np.float32))
        connected = schema.FullyConnectedOptionsT()
        graph.operator("FULLY_CONNECTED", [given, held], [made], connected, 4)
        halves = [tensor(name, 2, 4 / 127) for name in ("first", "second")]
        axis = graph.constant("axis", np.array(1, np.int32))
        split = schema.SplitOptionsT()
        split.numSplits = 2
        graph.operator("SPLIT", [axis, made], halves, split, version)
        total = tensor("sum", 2, 8 / 127)
        graph.operator("ADD", halves, [total], schema.AddOptionsT(), version)
        return graph.content([given], [total])

    rows = rng.integers(-127, 128, (8, 3), np.int8)
    real = (rows / 127).astype(np.float32)
    network = QuantizedNetwork(written(whole=True), written(whole=False), rows, real)
    errors = operator_errors(network, range(3))
    assert set(errors) == {0, 1, 2}
    assert all(one.relative.max() < 0.05 for one in errors.values())


def test_residual_adds_up_the_operators_of_a_block() -> None:
    errors = {
        at: OperatorErrors(np.array([[error**2]]), 1.0) for at, error in enumerate((0.3, 0.4, 0.1))
    }
    both, last = block(0, 1), block(2)
    scores = residual_scores((both, last), errors)
    np.testing.assert_allclose([scores[both.name], scores[last.name]], [0.5, 0.1])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("block", "fault", "amount"),
    [(0, "scale off", 2.0), (1, "some weights", 0.3), (2, "some weights", 0.3)],
)
def test_the_block_with_a_fault_is_blamed_and_gains_most_by_its_promotion(
    block: int, fault: str, amount: float
) -> None:
    healthy, network = residual(near_network()), with_fault(block, fault, amount)
    name = blocks()[block].name
    found = residual(network)
    assert healthy is not None
    assert found is not None
    assert found.blamed == name
    assert found.scores[name] > 2 * healthy.scores[name]
    assert found.scores.keys() == {one.name for one in found.blocks}
    models = PromotedModels(network, MarginComparison(network))
    scores = promotion_scores(blocks(), models.measured)
    assert blamed(blocks(), scores) == blocks()[block]


def test_a_model_without_blocks_in_integers_or_with_another_stride_has_none() -> None:
    """With another stride operators put out fewer values than those they are compared with."""

    def widened(model: Any) -> None:
        model.subgraphs[0].operators[3].builtinOptions.strideW = 99

    network = judged("example").network
    assert residual(replace(network, content=network.original, rows=network.original_rows)) is None
    few = replace(network, rows=network.rows[:2], original_rows=network.original_rows[:2])
    assert residual(few.with_content(edited(network.content, widened))) is None
