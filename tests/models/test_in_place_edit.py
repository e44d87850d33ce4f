"""Files edited in place differ from what they were in the edited values alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edgeflare.models.in_place_edit import InPlaceEdit
from edgeflare.models.tflite_graph import Graph
from outside_buffers import with_buffers_outside
from tampering import COMPRESSED, edited, example_input, run

CONTENT = COMPRESSED.read_bytes()
GRAPH = Graph(CONTENT)
OUTSIDE = with_buffers_outside(CONTENT)
FILES = {"inside": CONTENT, "outside": OUTSIDE}
WEIGHTS = GRAPH.operators[8].inputs[1]
HIDDEN = GRAPH.operators[8].outputs[0]


@pytest.mark.parametrize("where", FILES)
def test_only_the_values_of_one_constant_change(where: str) -> None:
    content = FILES[where]
    edit = InPlaceEdit(content)
    edit.set_values(WEIGHTS, np.negative(GRAPH.values(WEIGHTS).astype(np.int8)))
    found = Graph(edit.content())
    assert len(edit.content()) == len(content)
    assert found.tensors == GRAPH.tensors
    for tensor in GRAPH.tensors:
        if tensor.constant:
            sign = -1 if tensor.index == WEIGHTS else 1
            wanted = sign * GRAPH.values(tensor.index)
            assert np.array_equal(found.values(tensor.index), wanted)


@settings(max_examples=20)
@given(st.sampled_from(list(FILES)), st.floats(1e-6, 1e3), st.integers(-128, 127))
def test_only_the_quantization_of_one_tensor_changes(where: str, scale: float, point: int) -> None:
    edit = InPlaceEdit(FILES[where])
    edit.set_quantization(HIDDEN, [scale], [point])
    content = edit.content()
    assert len(content) == len(FILES[where])
    for tensor, before in zip(Graph(content).tensors, GRAPH.tensors, strict=True):
        if tensor.index != HIDDEN:
            assert tensor == before
    assert Graph(content).tensors[HIDDEN].scales == (float(np.float32(scale)),)
    assert Graph(content).tensors[HIDDEN].zero_points == (point,)


def test_a_file_with_the_values_it_has_is_the_same_to_the_byte() -> None:
    edit = InPlaceEdit(CONTENT)
    for tensor in GRAPH.tensors:
        edit.set_quantization(tensor.index, tensor.scales, tensor.zero_points)
        if tensor.constant and tensor.shape:
            edit.set_values(tensor.index, GRAPH.values(tensor.index))
    assert edit.content() == CONTENT


def test_the_runtime_computes_with_what_was_written() -> None:
    last = GRAPH.operators[9]
    edit = InPlaceEdit(CONTENT)
    biases = np.array(GRAPH.values(last.inputs[2]))
    biases[7] = 1_000_000
    edit.set_values(last.inputs[2], biases)
    assert run(edit.content(), [example_input()])[0].argmax() == 7


def test_what_does_not_fit_is_refused() -> None:
    edit = InPlaceEdit(CONTENT)
    with pytest.raises(ValueError, match="int8"):
        edit.set_values(WEIGHTS, GRAPH.values(WEIGHTS).astype(np.int16))
    with pytest.raises(ValueError, match="int8"):
        edit.set_values(WEIGHTS, GRAPH.values(WEIGHTS)[:1])
    with pytest.raises(ValueError, match="has 1 scales"):
        edit.set_quantization(HIDDEN, [1.0, 2.0], [0, 0])
    for scale in (0.0, -1.0, float("nan"), 1e-60):
        with pytest.raises(ValueError, match="no scales"):
            edit.set_quantization(HIDDEN, [scale], [0])
    assert edit.content() == CONTENT


def test_values_that_something_else_has_too_are_not_changed(refusal: Callable[..., str]) -> None:
    def share(model: Any) -> None:
        tensors = model.subgraphs[0].tensors
        other, weights = tensors[GRAPH.operators[0].inputs[1]], tensors[WEIGHTS]
        other.buffer, other.shape, other.type = weights.buffer, weights.shape, weights.type
        other.quantization = weights.quantization

    shared = InPlaceEdit(edited(CONTENT, share), "shared.tflite")
    message = refusal(shared.set_values, WEIGHTS, GRAPH.values(WEIGHTS))
    assert message.startswith(
        f"shared.tflite: the values of tensor {GRAPH.tensors[WEIGHTS].name!r}"
    )
