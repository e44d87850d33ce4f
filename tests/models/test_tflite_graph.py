"""Graphs are read as they are."""

from __future__ import annotations

import numpy as np
import pytest

from edgeflare.core.task import OutputMaker
from edgeflare.errors import UserError
from edgeflare.models.tflite_graph import Graph
from public_cases import CASES
from tampering import COMPRESSED, ORIGINAL


def test_a_graph_is_read_as_it_is() -> None:
    graph = Graph(COMPRESSED.read_bytes())
    assert graph.operators[0].name == "CONV_2D"
    assert graph.operators[-1].name == "SOFTMAX"
    assert graph.preparing == frozenset()
    image, kernel, bias = (graph.tensors[tensor] for tensor in graph.operators[0].inputs)
    assert image.shape == (1, 28, 28, 1)
    assert image.dtype == kernel.dtype == "int8"
    assert not image.constant
    assert kernel.constant
    assert len(kernel.scales) == kernel.shape[kernel.axis] > 1
    real = kernel.real(graph.values(kernel.index))
    original = Graph(ORIGINAL.read_bytes())
    wanted = original.values(original.operators[0].inputs[1]).astype(np.float64)
    steps = np.reshape(kernel.scales, (-1, 1, 1, 1))
    assert (np.abs(real - wanted) <= 0.501 * steps).all()
    assert bias.dtype == "int32"


def test_what_is_no_graph_is_said_in_one_line() -> None:
    content = COMPRESSED.read_bytes()
    with pytest.raises(UserError, match=r"^half\.tflite: its graph cannot be read: [^\n]*$"):
        Graph(content[: len(content) // 3], "half.tflite")


def test_outputs_are_from_the_operator_before_conversions_and_reshapes() -> None:
    graph = Graph((CASES / "detection_postprocess" / "compressed.tflite").read_bytes())
    name = "TFLite_Detection_PostProcess"
    made = [OutputMaker(15, name, at, reads="strided_slice1") for at in range(4)]
    assert [graph.origin(tensor) for tensor in graph.outputs] == made
    named = graph.signature_outputs("serving_default")
    assert [named[name] for name in ("boxes", "classes", "scores", "count")] == [33, 34, 35, 36]
    (slice_of,) = graph.operators[11].outputs
    assert graph.operators[12].inputs == (slice_of,)
    assert graph.origin(graph.operators[12].outputs[0]) == graph.origin(slice_of)
    assert graph.origin(graph.inputs[0]) is None
