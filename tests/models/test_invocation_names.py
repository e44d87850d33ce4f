from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from ai_edge_litert import schema_py_generated as schema

from edgeflare.models.invocation import ONCE, Invocation
from edgeflare.models.invocation_names import invocation_of
from graph_writer import GraphWriter, write_state_model

STATE = Invocation(state={"state": "next"}, frames=5)


@pytest.fixture
def compressed(tmp_path: Path) -> Path:
    return write_state_model(tmp_path / "compressed.tflite", "INT8")


def test_names_that_both_models_have_stay(compressed: Path, tmp_path: Path) -> None:
    original = write_state_model(tmp_path / "original.tflite", "FLOAT32")
    assert invocation_of(STATE, original, compressed) == STATE
    assert invocation_of(ONCE, original, compressed) == ONCE


def test_other_names_are_found_by_the_only_like_shape(
    compressed: Path, tmp_path: Path, refusal: Callable[..., str]
) -> None:
    """The frame and the state of `compressed` have one shape, those of this original two."""
    graph = GraphWriter()
    x = graph.tensor("a", (1, 1), "FLOAT32")
    state = graph.tensor("b", (1, 1, 3), "FLOAT32")
    following = graph.tensor("c", (1, 1, 3), "FLOAT32")
    graph.operator("ADD", [x, state], [following], schema.AddOptionsT(), 1)
    original = graph.save(tmp_path / "original.tflite", [x, state], [following])
    assert invocation_of(STATE, original, compressed).state == {"b": "c"}
    shapes = Invocation(shapes={"state": (1, 3)})
    assert invocation_of(shapes, original, compressed).shapes == {"b": (1, 3)}
    alike = write_state_model(tmp_path / "alike.tflite", "FLOAT32")
    message = refusal(invocation_of, STATE, original, alike.with_name("original.tflite"))
    assert "has no input 'state', and its shape does not tell which it is" in message
