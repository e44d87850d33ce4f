"""Writing models: what a file holds stays, and what is added works."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from ai_edge_litert import schema_py_generated as schema
from ai_edge_litert.interpreter import Interpreter

from edgeflare.core.tensor import Tensor
from edgeflare.models.tflite_graph import Graph
from edgeflare.models.tflite_writer import Writer, notes

EXAMPLE = Path(__file__).parents[2] / "examples" / "fashion_lenet4"


def scaled_by(factor: float, content: bytes | None = None) -> bytes:
    """A model that multiplies: another's output, or what it is given."""
    writer = Writer(content)
    known = Tensor("values", (1, 10), "float32")
    values = writer.tensor(known) if content is None else Graph(content).outputs[0]
    constant = writer.constant("factor", np.array([factor], np.float32))
    product = writer.operator("MUL", [values, constant], writer.tensor(known))
    if content is None:
        writer.begin_and_end([values], [product])
    else:
        writer.replace_output(values, product)
    return writer.content()


def run(content: bytes, values: np.ndarray) -> np.ndarray:
    interpreter = Interpreter(model_content=content)
    interpreter.allocate_tensors()
    interpreter.set_tensor(interpreter.get_input_details()[0]["index"], values)
    interpreter.invoke()
    outputs: np.ndarray = interpreter.get_tensor(interpreter.get_output_details()[0]["index"])
    return outputs


def test_a_new_model_runs() -> None:
    values = np.arange(10, dtype=np.float32)[np.newaxis]
    assert run(scaled_by(3.0), values).tolist() == (3 * values).tolist()


def test_what_is_added_runs_behind_the_model_under_its_outputs_name() -> None:
    before = (EXAMPLE / "original.tflite").read_bytes()
    after = scaled_by(2.0, before)
    image = np.random.default_rng(0).random((1, 28, 28, 1), dtype=np.float32)
    assert np.array_equal(run(after, image), 2 * run(before, image))
    one, other = (Interpreter(model_content=content) for content in (before, after))
    assert other.get_signature_list() == one.get_signature_list()
    assert other.get_output_details()[0]["name"] == one.get_output_details()[0]["name"]
    image_runner = other.get_signature_runner()
    (given,) = image_runner.get_input_details()
    (outputs,) = image_runner(**{given: image}).values()
    assert np.array_equal(outputs, run(after, image))


def test_the_models_own_operators_and_weights_stay() -> None:
    before = (EXAMPLE / "compressed.tflite").read_bytes()
    writer = Writer(before)
    writer.note("ours", b"a note")
    was, now = Graph(before), Graph(writer.content())
    assert now.operators == was.operators
    assert now.tensors == was.tensors
    for tensor in was.tensors:
        if tensor.constant:
            assert np.array_equal(now.values(tensor.index), was.values(tensor.index))


def test_notes_are_read_back_beside_those_that_were_there() -> None:
    before = (EXAMPLE / "compressed.tflite").read_bytes()
    writer = Writer(before)
    writer.note("ours", b"first")
    writer.note("ours", b"second")
    assert notes(writer.content()) == {**notes(before), "ours": b"second"}


@pytest.mark.parametrize("size", [1, 3, 17])
def test_constants_lie_where_the_schema_wants_them(size: int) -> None:
    writer = Writer()
    writer.constant("odd", np.zeros(size, np.int8))
    writer.constant("after", np.full(5, 7.0, np.float32))
    content = writer.content()
    assert content.index(np.full(5, 7.0, np.float32).tobytes()) % 16 == 0


def test_an_operator_code_is_written_once() -> None:
    twice = scaled_by(2.0, scaled_by(3.0))
    model = schema.ModelT.InitFromPackedBuf(twice)
    assert len(model.operatorCodes) == 1
    assert len(model.subgraphs[0].operators) == 2
