"""Shares of the margin's error: of all layers together they are all of it."""

from __future__ import annotations

from contextlib import closing
from typing import get_args

import numpy as np
import pytest

from edgeflare.diagnose.layer_matching import match_layers
from edgeflare.diagnose.margin_error import margin_error
from edgeflare.diagnose.original_layers import OriginalLayers
from edgeflare.models.graph_parts import extract
from edgeflare.models.graph_scores import scores_of
from edgeflare.models.tflite_graph import Graph
from networks import Kind, pair_of
from tampering import (
    COMPRESSED,
    ORIGINAL,
    InterpreterProbe,
    example_input,
    original_input,
    whole,
)

PAIRS = {"lenet": (ORIGINAL.read_bytes(), COMPRESSED.read_bytes())} | {
    kind: pair_of(kind) for kind in get_args(Kind)
}


def opens(content: bytes, capture: bool) -> InterpreterProbe:
    return InterpreterProbe(content, capture=capture)


@pytest.mark.parametrize("name", PAIRS)
def test_the_shares_of_all_layers_add_up(name: str) -> None:
    """But for what rounding the input did, which is hardly anything for 8-bit images."""
    original, compressed = PAIRS[name]
    mine, yours = Graph(compressed), Graph(original)
    pairs = {one: other for one, (other, _) in match_layers(mine, yours).items()}
    assert len(pairs) == len(mine.layers)
    state = whole(mine, example_input(), "xnnpack", compressed)
    real = {tensor: mine.tensors[tensor].real(values) for tensor, values in state.items()}
    middle = {
        yours.operators[other].outputs[0]: real[mine.operators[one].outputs[0]]
        for one, other in pairs.items()
    }
    with closing(OriginalLayers(yours, original, opens)) as layers:
        seen = layers.capture(original_input())
        inputs = [real[tensor] for one in pairs for tensor in mine.fed(mine.operators[one])]
        alone = layers.alone(list(pairs.values()), inputs)
        made = {one: yours.operators[other].outputs[0] for one, other in pairs.items()}
        asked = {one: (alone[tensor], middle[tensor]) for one, tensor in made.items()}
        known = {tensor: values.astype(np.float64) for tensor, values in seen.items()}
        found = margin_error(layers, pairs, middle, known, asked)
    assert found is not None
    before_the_softmax = mine.layers[:-1]
    assert found.shares.keys() == {one.index for one in before_the_softmax}
    assert sum(found.shares.values()) == pytest.approx(1.0, abs=0.02)
    scores, tensor = known[scores_of(yours)].ravel(), middle[scores_of(yours)].ravel()
    right = int(scores.argmax())
    wrong = int(np.argsort(tensor)[-2]) if tensor.argmax() == right else int(tensor.argmax())
    moved = scores - tensor
    assert found.size == pytest.approx(moved[right] - moved[wrong])


@pytest.mark.parametrize("name", PAIRS)
def test_scores_are_what_a_last_softmax_is_given(name: str) -> None:
    graph = Graph(PAIRS[name][0])
    last = graph.layers[-1]
    assert last.name == "SOFTMAX"
    assert scores_of(graph) == last.inputs[0]
    headless = Graph(extract(graph, 0, graph.layers[-2].index).content)
    assert scores_of(headless) == headless.outputs[0]


def test_a_model_whose_scores_are_not_seen_has_no_shares() -> None:
    graph = Graph(PAIRS["lenet"][0])
    with closing(OriginalLayers(graph, PAIRS["lenet"][0], opens)) as layers:
        assert margin_error(layers, {}, {}, {}, {}) is None
