"""Model files: read, written and edited as they are, wherever their constants lie."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from ai_edge_litert import schema_py_generated as schema
from ai_edge_litert.interpreter import Interpreter
from hypothesis import given, settings
from hypothesis import strategies as st

from edgeflare.core.tensor import Tensor
from edgeflare.errors import InfrastructureError
from edgeflare.models.graph_parts import extract
from edgeflare.models.in_place_edit import InPlaceEdit
from edgeflare.models.model_file import check_model_file, read_model_file, temporary_model
from edgeflare.models.tflite_file import read_model, unread_inputs
from edgeflare.models.tflite_graph import Graph
from edgeflare.models.tflite_writer import Writer, notes, written
from graph_writer import GraphWriter, write_state_model
from outside_buffers import with_buffers_outside
from tampering import COMPRESSED, ORIGINAL, edited, example_input, original_input, run

Refusal = Callable[..., str]


def large(path: Path) -> None:
    path.touch()
    os.truncate(path, 2**32 + 1)


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (os.mkfifo, "is not a model file"),
        (Path.mkdir, "is not a model file"),
        (lambda _: None, "there is no model file"),
        (Path.touch, "is empty"),
        (large, "at most 4,294,967,296 are read"),
    ],
    ids=["pipe", "folder", "absent", "empty", "large"],
)
def test_what_is_no_model_file_is_not_read(
    make: Callable[[Path], object], said: str, refusal: Refusal, tmp_path: Path
) -> None:
    path = tmp_path / "theirs.tflite"
    make(path)
    assert said in refusal(read_model_file, path)
    assert said in refusal(check_model_file, path)


def test_a_model_file_is_read_as_a_whole(tmp_path: Path) -> None:
    path = tmp_path / "ours.tflite"
    path.write_bytes(b"all of it")
    assert read_model_file(path) == b"all of it"


# Constants inside and outside of the flatbuffer.

CONTENT = COMPRESSED.read_bytes()
OUTSIDE = with_buffers_outside(CONTENT)
GRAPH = Graph(CONTENT)
BUFFERS = len(read_model(CONTENT).buffers)


def flatbuffer(content: bytes) -> list[Any]:
    """The buffers as the flatbuffer has them."""
    return list(schema.ModelT.InitFromPackedBuf(content).buffers)


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


def require_same_graph(content: bytes) -> None:
    graph = Graph(content)
    assert graph.tensors == GRAPH.tensors
    assert graph.operators == GRAPH.operators
    for tensor in graph.tensors:
        if tensor.constant:
            assert np.array_equal(graph.values(tensor.index), GRAPH.values(tensor.index))


def test_its_graph_and_notes_are_read() -> None:
    require_same_graph(OUTSIDE)
    assert notes(OUTSIDE) == notes(CONTENT) != {}


def test_what_is_written_of_it_has_its_buffers_inside() -> None:
    writer = Writer(OUTSIDE)
    writer.constant("more", np.ones(3, np.float32))
    first = extract(Graph(OUTSIDE), 0, 1)
    whole = example_input()
    for content in (writer.content(), first.content, edited(OUTSIDE, lambda _: None)):
        assert not any(buffer.offset for buffer in flatbuffer(content))
    wanted = run(extract(Graph(CONTENT), 0, 1).content, [whole])
    assert np.array_equal(run(first.content, [whole])[0], wanted[0])
    assert np.array_equal(run(writer.content(), [whole])[0], run(CONTENT, [whole])[0])


@pytest.mark.parametrize("kept", [0.99, 0.7])
def test_a_file_that_is_cut_off_is_refused(kept: float, refusal: Refusal) -> None:
    message = refusal(Graph, OUTSIDE[: int(kept * len(OUTSIDE))], "big.tflite")
    assert message.startswith("big.tflite: the file is cut off")


def test_constants_that_share_a_place_many_times_are_refused(refusal: Refusal) -> None:
    """What is written of such a file has each of them, and would be as much longer."""

    def sharing(buffers: int) -> bytes:
        model = read_model(CONTENT)
        for buffer in model.buffers[:buffers]:
            buffer.data, buffer.offset, buffer.size = None, 16, len(CONTENT)
        return written(model) + bytes(len(CONTENT))

    assert len(read_model(sharing(3)).buffers) == BUFFERS
    assert "repeats what lies behind" in refusal(read_model, sharing(10))


def test_an_input_that_no_operator_reads_is_named(tmp_path: Path) -> None:
    step = write_state_model(tmp_path / "step.tflite", "FLOAT32").read_bytes()
    assert unread_inputs(read_model(step)) == ()
    graph = GraphWriter()
    names = ("x", "passed", "state", "y")
    x, passed, state, y = (graph.tensor(name, (1, 3), "FLOAT32") for name in names)
    graph.operator("LOGISTIC", [x], [y])
    unread = read_model(graph.content([x, passed, state], [y, passed]))
    assert unread_inputs(unread) == ("state",)
    assert unread_inputs(unread, "absent") == ()


# Edits in place.

FILES = {"inside": CONTENT, "outside": OUTSIDE}
WEIGHTS = GRAPH.operators[8].inputs[1]
HIDDEN = GRAPH.operators[8].outputs[0]


@pytest.mark.parametrize("where", FILES)
def test_only_the_values_of_one_constant_change(where: str) -> None:
    """So the runtime computes with them."""
    edit, bias = InPlaceEdit(FILES[where]), GRAPH.operators[9].inputs[2]
    biases = np.array(GRAPH.values(bias))
    biases[7] = 1_000_000
    edit.set_values(bias, biases)
    content = edit.content()
    found = Graph(content)
    assert len(content) == len(FILES[where])
    assert found.tensors == GRAPH.tensors
    for tensor in GRAPH.tensors:
        if tensor.constant:
            wanted = biases if tensor.index == bias else GRAPH.values(tensor.index)
            assert np.array_equal(found.values(tensor.index), wanted)
    assert run(content, [example_input()])[0].argmax() == 7


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


def test_values_that_something_else_has_too_are_not_changed(refusal: Refusal) -> None:
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


def test_a_quantization_that_another_tensor_has_too_is_not_changed(refusal: Refusal) -> None:
    content = bytearray(CONTENT)
    main = schema.Model.GetRootAs(content).Subgraphs(0)
    places = {}
    for at in range(main.TensorsLength()):
        table = main.Tensors(at)._tab
        field = table.Pos + table.Offset(12)  # where the offset of its quantization lies
        places[at] = field, field + int.from_bytes(content[field : field + 4], "little")
    field, _ = places[HIDDEN]
    other = next(at for at, (_, table) in places.items() if at != HIDDEN and table > field)
    content[field : field + 4] = (places[other][1] - field).to_bytes(4, "little")
    edit = InPlaceEdit(bytes(content), "shared.tflite")
    quantization = GRAPH.tensors[other]
    message = refusal(edit.set_quantization, HIDDEN, quantization.scales, quantization.zero_points)
    assert message.startswith(
        f"shared.tflite: the quantization of tensor {GRAPH.tensors[HIDDEN].name!r}"
    )


# Models that are written.


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


def test_a_new_model_runs_and_an_operator_code_is_written_once() -> None:
    values = np.arange(10, dtype=np.float32)[np.newaxis]
    assert np.array_equal(run(scaled_by(3.0), [values])[0], 3 * values)
    twice = scaled_by(2.0, scaled_by(3.0))
    model = schema.ModelT.InitFromPackedBuf(twice)
    assert len(model.operatorCodes) == 1
    assert len(model.subgraphs[0].operators) == 2


def test_what_is_added_runs_behind_the_model_under_its_outputs_name() -> None:
    before = ORIGINAL.read_bytes()
    after, image = scaled_by(2.0, before), original_input()
    wanted = 2 * run(before, [image])[0]
    assert np.array_equal(run(after, [image])[0], wanted)
    one, other = (Interpreter(model_content=content) for content in (before, after))
    assert other.get_signature_list() == one.get_signature_list()
    assert other.get_output_details()[0]["name"] == one.get_output_details()[0]["name"]
    image_runner = other.get_signature_runner()
    (given,) = image_runner.get_input_details()
    (outputs,) = image_runner(**{given: image}).values()
    assert np.array_equal(outputs, wanted)


def test_the_models_own_operators_weights_and_notes_stay() -> None:
    writer = Writer(CONTENT)
    writer.note("ours", b"first")
    writer.note("ours", b"second")
    require_same_graph(writer.content())
    assert notes(writer.content()) == {**notes(CONTENT), "ours": b"second"}


@pytest.mark.parametrize("size", [1, 3, 17])
def test_constants_lie_where_the_schema_wants_them(size: int) -> None:
    writer = Writer()
    writer.constant("odd", np.zeros(size, np.int8))
    writer.constant("after", np.full(5, 7.0, np.float32))
    content = writer.content()
    assert content.index(np.full(5, 7.0, np.float32).tobytes()) % 16 == 0


def test_a_temporary_file_is_there_within_and_errors_name_what_the_user_knows() -> None:
    with temporary_model(b"TFL3", "some-folded", "some.tflite") as path:
        assert path.name == "some-folded.tflite"
        assert path.read_bytes() == b"TFL3"
    assert not path.parent.exists()

    def lose() -> None:
        with temporary_model(b"", "some-folded", "my.tflite, folded") as path:
            raise InfrastructureError(f"{path}: its worker died; open {path} again")

    with pytest.raises(InfrastructureError) as caught:
        lose()
    assert str(caught.value) == "my.tflite, folded: its worker died; open my.tflite, folded again"
