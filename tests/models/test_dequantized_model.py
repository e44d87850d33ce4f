"""The dequantized form of a model: its own weights and ranges, without rounding between."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from ai_edge_litert import schema_py_generated as schema
from numpy.typing import NDArray

from edgeflare.models.dequantized_model import dequantized, open_dequantized
from edgeflare.models.invocation import Invocation
from edgeflare.models.tflite import TFLiteModel, open_tflite
from edgeflare.models.tflite_graph import Graph
from graph_writer import GraphWriter

EXAMPLES = Path(__file__).parents[2] / "examples"
STEP = 0.03


def two_layers(path: Path, low: float = -1.0) -> Path:
    """Write y = 3 x and z = y + y, int8; y holds from `low` in 255 steps of 0.03."""
    graph = GraphWriter()
    zero = round(-128 - low / STEP)
    x = graph.tensor("x", (1, 5), "INT8", (STEP, 0))
    three = graph.tensor("three", (1, 5), "INT8", (3.0, 0), np.ones((1, 5), np.int8))
    y = graph.tensor("y", (1, 5), "INT8", (STEP, zero))
    z = graph.tensor("z", (1, 5), "INT8", (4 * STEP, 0))
    graph.operator("MUL", [x, three], [y], None, 2)
    graph.operator("ADD", [y, y], [z], None, 2)
    return graph.save(path, [x], [z])


def outputs(model: TFLiteModel, inputs: NDArray[np.int8]) -> NDArray[np.int8]:
    found: NDArray[np.int8] = model.submit(inputs).result().outputs.astype(np.int8)
    return found


def test_what_is_put_out_stays_within_the_ranges_of_the_tensors(tmp_path: Path) -> None:
    low = -0.9
    inputs = np.linspace(-127, 127, 40).astype(np.int8).reshape(8, 5)
    with open_dequantized(two_layers(tmp_path / "model.tflite", low)) as model:
        found = outputs(model, inputs)
    least, most = low, low + 255 * STEP
    expected = 2 * np.clip(3.0 * inputs * STEP, least, most)
    np.testing.assert_allclose(found, expected / (4 * STEP), atol=0.51)


def test_it_takes_and_gives_what_the_model_does_and_rounds_only_at_the_end() -> None:
    path = EXAMPLES / "fashion_lenet4" / "compressed.tflite"
    twin = open_tflite(path, "builtin")
    shape = (20, *twin.signature.input.shape[1:])
    noise = np.random.default_rng(0).integers(-128, 128, shape).astype(np.int8)
    with open_dequantized(path) as model:
        assert model.signature == twin.signature
        differences = np.abs(outputs(model, noise).astype(int) - outputs(twin, noise))
    twin.close()
    assert 0 < differences.max() < 64
    assert differences.mean() < 2


@pytest.mark.parametrize("name", ["fashion_lenet4", "face_detection", "spoken_words"])
def test_no_tensor_between_the_ends_is_quantized(name: str) -> None:
    graph = Graph(dequantized((EXAMPLES / name / "compressed.tflite").read_bytes()))
    ends = {*graph.inputs, *graph.outputs}
    assert [one.name for one in graph.tensors if one.scales and one.index not in ends] == []
    assert {"DEQUANTIZE", "QUANTIZE"} <= {one.name for one in graph.operators}


def test_conversions_between_floats_are_left_out(tmp_path: Path) -> None:
    graph = GraphWriter()
    x = graph.tensor("x", (1, 3), "FLOAT32")
    inner = graph.tensor("inner", (1, 3), "INT8", (STEP, 0))
    again = graph.tensor("again", (1, 3), "INT8", (2 * STEP, 0))
    y = graph.tensor("y", (1, 3), "FLOAT32")
    graph.operator("QUANTIZE", [x], [inner])
    graph.operator("QUANTIZE", [inner], [again], None, 2)
    graph.operator("DEQUANTIZE", [again], [y], None, 2)
    path = graph.save(tmp_path / "conversions.tflite", [x], [y])
    kept = {one.name for one in Graph(dequantized(path.read_bytes())).operators}
    assert kept <= {"MINIMUM", "MAXIMUM"}


@pytest.mark.parametrize("nothing", [[], None])
def test_operators_without_inputs_or_outputs_stay(tmp_path: Path, nothing: list[int]) -> None:
    graph = GraphWriter()
    x = graph.tensor("x", (1, 5), "INT8", (STEP, 0))
    variable = graph.tensor("variable", (), "RESOURCE")
    y = graph.tensor("y", (1, 5), "INT8", (STEP, 0))
    z = graph.tensor("z", (1, 5), "INT8", (2 * STEP, 0))
    graph.operator("VAR_HANDLE", nothing, [variable], schema.VarHandleOptionsT())
    graph.operator("ASSIGN_VARIABLE", [variable, x], nothing, schema.AssignVariableOptionsT())
    graph.operator("READ_VARIABLE", [variable], [y], schema.ReadVariableOptionsT())
    graph.operator("ADD", [y, y], [z], None, 2)
    path = graph.save(tmp_path / "variable.tflite", [x], [z])
    inputs = np.arange(-50, 50, dtype=np.int8).reshape(20, 5)
    with open_dequantized(path) as model:
        assert np.array_equal(outputs(model, inputs), inputs)
        assert {"VAR_HANDLE", "ASSIGN_VARIABLE", "READ_VARIABLE"} <= set(model.operators)


def test_a_model_in_float_has_no_such_form(refusal: Callable[..., str]) -> None:
    content = (EXAMPLES / "fashion_lenet4" / "original.tflite").read_bytes()
    said = refusal(dequantized, content, "original.tflite")
    assert "no quantized tensors: leave dequantized out of --ensemble" in said


def test_a_form_that_cannot_be_opened_is_told_as_of_the_users_file(
    tmp_path: Path, refusal: Callable[..., str]
) -> None:
    path = two_layers(tmp_path / "model.tflite")

    def opened() -> None:
        with open_dequantized(path, Invocation("step")):
            pass

    assert refusal(opened).startswith(f"the dequantized form of {path}: there is no signature")
