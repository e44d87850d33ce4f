"""What quantization explains, and the first layer where it does not."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import closing
from functools import partial
from typing import Any

import numpy as np
import pytest
from ai_edge_litert import schema_py_generated as schema

from edgeflare.diagnose.compression_error import CompressionError
from edgeflare.diagnose.compression_localization import CompressionLocalizer
from edgeflare.diagnose.layer_matching import match_layers
from edgeflare.models.graph_parts import extract
from edgeflare.models.tflite_graph import Graph
from requantizing import CONVERTERS, Converter, requantized
from tampering import (
    COMPRESSED,
    ORIGINAL,
    InterpreterProbe,
    constant_of,
    edited,
    example_input,
    original_input,
    weighted,
    whole,
    with_constant,
)

CONTENT, FLOAT = COMPRESSED.read_bytes(), ORIGINAL.read_bytes()
WEIGHTED = weighted(CONTENT)


def loss_of(content: bytes, original: bytes) -> CompressionError:
    return next(loss(content, original=original))


def loss(
    content: bytes, seeds: range = range(1), original: bytes = FLOAT
) -> Iterator[CompressionError]:
    graph = Graph(content)
    finder = CompressionLocalizer(
        graph,
        Graph(original),
        original,
        lambda model, capture: InterpreterProbe(model, capture=capture),
    )
    with closing(finder):
        for seed in seeds:
            twin = whole(graph, example_input(seed), "xnnpack", content)
            yield finder.find(twin, original_input(seed))


def test_what_the_converter_did_is_explained_everywhere() -> None:
    """By a factor: where the bound is loose, a fault can hide below it."""
    for found in loss(CONTENT, range(12)):
        assert found.first is None
        assert found.note == ""
        assert found.unmatched == ()
        assert len(found.layers) == len(Graph(CONTENT).layers)
        for layer in found.layers:
            assert layer.residual <= 0.8 * layer.explained
            assert layer.constants is None or layer.constants.steps <= 0.5001
        json.dumps(found.to_json(), allow_nan=False)


FAULTS: dict[str, tuple[int, Callable[[Any], Any]]] = {
    "weights of another sign": (1, lambda values: -values),
    "one weight": (1, lambda values: _one(values, 3)),
    "rounded to every second step": (1, lambda values: values // 2 * 2 + 1),
    "a bias": (2, lambda values: _one(values, max(500, int(np.abs(values).max())))),
    "channels in another order": (1, lambda values: np.roll(values, 1, axis=0)),
}


def _one(values: Any, by: int) -> Any:
    changed = values.copy()
    changed.flat[0] = np.clip(changed.flat[0] + by, np.iinfo(values.dtype).min + 1, None)
    return changed


@pytest.mark.slow
@pytest.mark.parametrize("operator", WEIGHTED)
@pytest.mark.parametrize("fault", FAULTS)
def test_a_constant_that_is_not_the_originals_is_found(fault: str, operator: int) -> None:
    position, change = FAULTS[fault]
    broken = with_constant(CONTENT, constant_of(CONTENT, operator, position), change)
    (found,) = loss(broken)
    assert found.first is not None
    assert found.first.operator == operator
    assert [layer.layer.operator for layer in found.layers if layer.beyond] == [operator]


@pytest.mark.parametrize("converter", CONVERTERS.values(), ids=CONVERTERS)
def test_whatever_a_converter_rounds_is_explained(converter: Converter) -> None:
    for found in loss(requantized(FLOAT, CONTENT, converter), range(6)):
        assert (found.first, found.most, found.margin, found.beyond) == (None, None, None, ())


def biased(content: bytes, operator: int, change: Callable[[Any], Any]) -> bytes:
    return with_constant(content, constant_of(content, operator, 2), change)


def test_of_two_layers_the_one_that_took_most_of_the_margin_is_named() -> None:
    """A bias that is off by a step in an early layer, and biases that are all off in the last."""
    early, last = WEIGHTED[1], WEIGHTED[-1]
    by_a_step = biased(CONTENT, early, lambda values: _one(values, 1))
    shifted = biased(by_a_step, last, lambda values: values + 2000 * np.arange(values.size))
    for found in loss(shifted, range(4)):
        assert [layer.layer.operator for layer in found.beyond] == [early, last]
        assert found.first == found.beyond[0].layer
        assert found.most == found.beyond[1].layer
        small, large = (abs(layer.margin_share or 0.0) for layer in found.beyond)
        assert small < large
        assert large > 0.5
        constants = found.beyond[1].constants
        assert constants is not None
        assert constants.steps > 2000


def test_a_layer_is_named_where_it_took_a_twentieth_of_the_margins_error_else_only_listed() -> None:
    named = []
    for by in (1, 10, 3000):
        change = partial(_one, by=by)
        found = loss_of(biased(CONTENT, WEIGHTED[1], change), FLOAT)
        (layer,) = found.beyond
        assert found.first == layer.layer
        assert layer.margin_share is not None
        named.append(found.most is not None)
        assert named[-1] == (abs(layer.margin_share) >= 0.05)
        json.dumps(found.to_json(), allow_nan=False)
    assert set(named) == {True, False}


def test_a_scale_that_is_off_is_found() -> None:
    operator = WEIGHTED[1]
    graph = Graph(CONTENT)
    weights = graph.operators[operator].inputs[1]

    def stretch(model: Any) -> None:
        quantization = model.subgraphs[0].tensors[weights].quantization
        quantization.scale = [scale * 1.5 for scale in quantization.scale]

    (found,) = loss(edited(CONTENT, stretch))
    assert found.first is not None
    assert found.first.operator == operator


def test_a_pooling_that_became_another_is_found_by_its_result() -> None:
    graph = Graph(CONTENT)
    pool = next(one.index for one in graph.layers if one.name == "MAX_POOL_2D")

    def smaller(model: Any) -> None:
        options = model.subgraphs[0].operators[pool].builtinOptions
        options.filterWidth = options.filterHeight = 1

    (found,) = loss(edited(CONTENT, smaller))
    assert found.first is not None
    assert found.first.operator == pool
    (layer,) = [layer for layer in found.layers if layer.beyond]
    assert set(layer.options) == {"filterWidth", "filterHeight"}
    assert layer.residual > layer.explained


def _averages(model: Any) -> None:
    """Let the mean be taken where the largest was."""
    for code in model.operatorCodes:
        if code.builtinCode == schema.BuiltinOperator.MAX_POOL_2D:
            code.builtinCode = schema.BuiltinOperator.AVERAGE_POOL_2D
            code.deprecatedBuiltinCode = schema.BuiltinOperator.AVERAGE_POOL_2D


def test_an_operator_of_another_type_is_found_by_its_place() -> None:
    pool = next(one.index for one in Graph(CONTENT).layers if one.name == "MAX_POOL_2D")
    (found,) = loss(edited(CONTENT, _averages))
    assert found.unmatched == ()
    assert found.first is not None
    assert (found.first.operator, found.first.name) == (pool, "AVERAGE_POOL_2D")


def test_an_operator_of_another_type_that_does_the_same_is_no_loss() -> None:
    def alone(model: Any) -> None:
        """Pool over one value, whose mean is the largest as well."""
        for operator in model.subgraphs[0].operators:
            options = operator.builtinOptions
            if hasattr(options, "filterWidth"):
                options.filterWidth = options.filterHeight = 1

    found = loss_of(edited(edited(CONTENT, alone), _averages), edited(FLOAT, alone))
    assert found.first is None
    assert found.unmatched == ()
    assert "AVERAGE_POOL_2D" in {layer.layer.name for layer in found.layers}


def test_layers_are_matched_also_where_names_tell_nothing() -> None:
    def nameless(model: Any) -> None:
        for tensor in model.subgraphs[0].tensors:
            tensor.name = b""

    compressed, original = Graph(edited(CONTENT, nameless)), Graph(FLOAT)
    found = match_layers(compressed, original)
    assert {by for _, by in found.values()} == {"order"}
    assert sorted(found) == [one.index for one in compressed.layers]
    for mine, (yours, _) in found.items():
        assert compressed.operators[mine].name == original.operators[yours].name
    named = match_layers(Graph(CONTENT), original)
    assert {mine: yours for mine, (yours, _) in named.items()} == {
        mine: yours for mine, (yours, _) in found.items()
    }
    assert "name" in {by for _, by in named.values()}


def test_a_layer_that_was_left_out_leaves_the_others_matched() -> None:
    """The original without its softmax, as many are trained."""
    original = Graph(FLOAT)
    logits = Graph(extract(original, 0, original.layers[-2].index).content)
    found = match_layers(Graph(CONTENT), logits)
    assert len(found) == len(logits.layers)
    assert Graph(CONTENT).layers[-1].index not in found
