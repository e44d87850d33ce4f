"""Intermediate tensors, captured in the worker process of the real runtime."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np

from edgeflare.models.tflite_graph import Graph
from edgeflare.repair.fitting.captured_tensors import captured
from graph_writer import write_state_model
from tampering import COMPRESSED, example_input, run, whole

CONTENT = COMPRESSED.read_bytes()
ROWS = np.concatenate([example_input(seed) for seed in range(3)])


def test_tensors_of_each_input_are_those_of_the_runtime() -> None:
    graph = Graph(CONTENT)
    tensors = [graph.inputs[0], *(one.outputs[0] for one in graph.layers)]
    found = captured(CONTENT, ROWS, tensors)
    assert list(found) == tensors
    for number, row in enumerate(ROWS):
        wanted = whole(graph, row[None], "builtin", CONTENT)
        for tensor in tensors:
            assert found[tensor].dtype == wanted[tensor].dtype
            assert found[tensor][number].tobytes() == wanted[tensor].tobytes()
    assert found[graph.layers[0].outputs[0]].shape == (3, 24, 24, 6)


def test_the_output_is_that_of_the_model_as_it_runs() -> None:
    graph = Graph(CONTENT)
    made = captured(CONTENT, ROWS, graph.outputs, "reference")[graph.outputs[0]]
    assert made.shape == (3, 10)
    wanted = [run(CONTENT, [row[None]], "reference")[0] for row in ROWS]
    assert np.array_equal(made, np.concatenate(wanted))


def test_a_tensor_that_the_kernels_keep_to_themselves_is_named(
    refusal: Callable[..., str],
) -> None:
    constant = Graph(CONTENT).operators[0].inputs[1]
    message = refusal(captured, CONTENT, ROWS, [constant])
    assert Graph(CONTENT).tensors[constant].name in message


def test_a_model_with_several_inputs_is_refused(
    tmp_path: Path, refusal: Callable[..., str]
) -> None:
    content = write_state_model(tmp_path / "step.tflite", "INT8").read_bytes()
    assert "2 inputs" in refusal(captured, content, ROWS, [0])
