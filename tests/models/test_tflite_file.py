"""Files with constants inside and outside of the flatbuffer are one and the same model."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from ai_edge_litert import schema_py_generated as schema
from hypothesis import given, settings
from hypothesis import strategies as st

from edgeflare.models.graph_parts import extract
from edgeflare.models.tflite_file import read_model, unread_inputs
from edgeflare.models.tflite_graph import Graph
from edgeflare.models.tflite_writer import Writer, notes
from graph_writer import GraphWriter, write_state_model
from outside_buffers import with_buffers_outside
from tampering import COMPRESSED, edited, example_input, run

CONTENT = COMPRESSED.read_bytes()
OUTSIDE = with_buffers_outside(CONTENT)
BUFFERS = len(read_model(CONTENT).buffers)


def flatbuffer(content: bytes) -> list[Any]:
    """The buffers as the flatbuffer has them."""
    return list(schema.ModelT.InitFromPackedBuf(content).buffers)


def _as_it_is(model: Any) -> None:
    """Change nothing."""


@settings(max_examples=10)
@given(st.sets(st.integers(0, BUFFERS - 1)))
def test_a_model_is_the_same_wherever_its_buffers_lie(among: set[int]) -> None:
    found = read_model(with_buffers_outside(CONTENT, among)).buffers
    for one, wanted in zip(found, read_model(CONTENT).buffers, strict=True):
        assert (one.offset, one.size) == (0, 0)
        assert bytes(one.data if one.data is not None else b"") == bytes(
            wanted.data if wanted.data is not None else b""
        )


def test_such_a_file_is_one_that_the_runtime_runs() -> None:
    assert sum(buffer.offset > 0 for buffer in flatbuffer(OUTSIDE)) > 10
    for seed in range(3):
        (found,), (wanted,) = (run(one, [example_input(seed)]) for one in (OUTSIDE, CONTENT))
        assert np.array_equal(found, wanted)


def test_its_graph_and_notes_are_read() -> None:
    graph, wanted = Graph(OUTSIDE), Graph(CONTENT)
    assert graph.tensors == wanted.tensors
    assert graph.operators == wanted.operators
    for tensor in graph.tensors:
        if tensor.constant:
            assert np.array_equal(graph.values(tensor.index), wanted.values(tensor.index))
    assert notes(OUTSIDE) == notes(CONTENT) != {}


def test_what_is_written_of_it_has_its_buffers_inside() -> None:
    writer = Writer(OUTSIDE)
    writer.constant("more", np.ones(3, np.float32))
    first = extract(Graph(OUTSIDE), 0, 1)
    whole = example_input()
    for content in (writer.content(), first.content, edited(OUTSIDE, _as_it_is)):
        assert not any(buffer.offset for buffer in flatbuffer(content))
    wanted = run(extract(Graph(CONTENT), 0, 1).content, [whole])
    assert np.array_equal(run(first.content, [whole])[0], wanted[0])
    assert np.array_equal(run(writer.content(), [whole])[0], run(CONTENT, [whole])[0])


@pytest.mark.parametrize("kept", [0.99, 0.7])
def test_a_file_that_is_cut_off_is_refused(kept: float, refusal: Callable[..., str]) -> None:
    message = refusal(Graph, OUTSIDE[: int(kept * len(OUTSIDE))], "big.tflite")
    assert message.startswith("big.tflite: the file is cut off")


def test_constants_that_share_a_place_many_times_are_refused(refusal: Callable[..., str]) -> None:
    """What is written of such a file has each of them, and would be as much longer."""

    def sharing(buffers: int) -> bytes:
        model = read_model(CONTENT)
        for buffer in model.buffers[:buffers]:
            buffer.data, buffer.offset, buffer.size = None, 16, len(CONTENT)
        builder = schema.flatbuffers.Builder(1024)
        builder.Finish(model.Pack(builder), file_identifier=b"TFL3")
        return bytes(builder.Output()) + bytes(len(CONTENT))

    assert len(read_model(sharing(3)).buffers) == BUFFERS
    assert "repeats what lies behind" in refusal(read_model, sharing(10))


def test_an_input_that_no_operator_reads_is_named(tmp_path: Path) -> None:
    step = write_state_model(tmp_path / "step.tflite", "FLOAT32").read_bytes()
    assert unread_inputs(read_model(step)) == ()
    graph = GraphWriter()
    x, passed, state = (graph.tensor(name, (1, 3), "FLOAT32") for name in ("x", "passed", "state"))
    y = graph.tensor("y", (1, 3), "FLOAT32")
    graph.operator("LOGISTIC", [x], [y], None)
    graph.save(tmp_path / "unread.tflite", [x, passed, state], [y, passed])
    unread = read_model((tmp_path / "unread.tflite").read_bytes())
    assert unread_inputs(unread) == ("state",)
    assert unread_inputs(unread, "absent") == ()
