"""How a model is invoked: types, signatures, shapes, states and the frames of clips."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from ai_edge_litert import schema_py_generated as schema
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from edgeflare_agent.runtime import Invocation, IsolatedModel, ModelRejected, Options
from edgeflare_agent.runtime.model_runtime import TensorSpec
from edgeflare_agent.runtime.tflite.model_tensors import TensorDetails, tensor_spec
from edgeflare_agent.runtime.worker import handed_over
from edgeflare_protos.kernel_sets import Kernels
from graph_writer import GraphWriter
from interpreter_answers import opened_interpreter

TYPES = (
    *("bool", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64"),
    *("float16", "float32", "float64", "complex64"),
)
"""What numpy calls a type; TFLite writes them in capitals."""


def opened(path: Path, invocation: Invocation | None = None) -> IsolatedModel:
    return IsolatedModel.open(path, Options("builtin", invocation=invocation or Invocation()))


def refusal(path: Path, invocation: Invocation | None = None) -> str:
    with pytest.raises(ModelRejected) as caught:
        opened(path, invocation)
    assert "\n" not in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize("dtype", TYPES)
def test_numbers_of_any_type_go_in_and_come_out(
    dtype: str, cast_model: Callable[[str, str], Path]
) -> None:
    values = np.array([[0, 1, 1, 0]])
    for taken, made in ((dtype, "float32"), ("float32", dtype)):
        with opened(cast_model(taken.upper(), made.upper())) as model:
            assert [spec.dtype for spec in model.inputs] == [taken]
            assert [spec.dtype for spec in model.outputs] == [made]
            batch = model.run(values.astype(taken).tobytes(), 1)
        assert batch.failures == ()
        assert batch.outputs == values.astype(made).tobytes()


@pytest.mark.parametrize(
    ("dtype", "words"),
    [
        ("STRING", "tensor other holds strings, which are not supported"),
        ("RESOURCE", "tensor other holds a resource or variant, which are not supported"),
        ("VARIANT", "tensor other holds a resource or variant, which are not supported"),
    ],
)
def test_what_is_no_number_is_refused(
    dtype: str, words: str, textual_model: Callable[[str], Path]
) -> None:
    assert words in refusal(textual_model(dtype))


@pytest.mark.parametrize(("signature", "size", "factor"), [("negate", 2, -1), ("double", 3, 2)])
def test_a_signature_by_name(
    signature: str, size: int, factor: int, two_signature_model: Path
) -> None:
    inputs = np.random.default_rng(1).normal(size=(5, size)).astype(np.float32)
    with opened(two_signature_model, Invocation(signature)) as model:
        assert [(spec.name, spec.shape) for spec in model.inputs] == [("v", (1, size))]
        assert [(spec.name, spec.shape) for spec in model.outputs] == [("w", (1, size))]
        batch = model.run(inputs.tobytes(), 5)
    assert batch.failures == ()
    assert batch.outputs == (factor * inputs).tobytes()


def test_an_unknown_signature_is_refused(two_signature_model: Path, float_model: Path) -> None:
    words = refusal(two_signature_model, Invocation("neglect"))
    assert words == "there is no signature 'neglect': its signatures are double, negate"
    assert "it has no signatures" in refusal(float_model, Invocation("negate"))


@pytest.mark.parametrize("rows", [1, 4, 100])
def test_dynamic_dimensions_are_given_a_size(rows: int, dynamic_model: Path) -> None:
    inputs = np.random.default_rng(rows).normal(size=(3, rows, 3)).astype(np.float32)
    with opened(dynamic_model, Invocation(shapes={"x": (rows, 3)})) as model:
        assert [spec.shape for spec in (*model.inputs, *model.outputs)] == [(rows, 3)] * 3
        batch = model.run(inputs.tobytes(), 3)
    assert batch.failures == ()
    sevens = np.full((rows, 3), 7, np.float32).tobytes()
    assert batch.outputs == b"".join((2 * one).tobytes() + sevens for one in inputs)


def test_a_shape_that_does_not_fit_is_refused(dynamic_model: Path) -> None:
    for shape in ((4, 5), (4,), (4, 3, 1)):
        words = refusal(dynamic_model, Invocation(shapes={"x": shape}))
        assert f"input 'x' has shape (-1, 3), which {shape} does not fit" in words
    assert "there is no input 'z': its inputs are x" in refusal(
        dynamic_model, Invocation(shapes={"z": (4, 3)})
    )


@pytest.mark.parametrize("shape", [(1 << 30, 1 << 30), (3, -7), (0, 1 << 30, 1 << 30, 1 << 30)])
def test_a_shape_that_no_tensor_has_is_refused(shape: tuple[int, ...]) -> None:
    """Kernels compute such shapes from memory that nothing wrote; no file has them by itself."""
    details = TensorDetails(
        name="y",
        index=1,
        shape=shape,
        shape_signature=shape,
        dtype=np.float32,
        quantization=(0.0, 0),
    )
    with pytest.raises(ModelRejected, match=r"tensor y has shape .* which no memory holds"):
        tensor_spec("y", details)


KERNELS: tuple[Kernels, ...] = ("xnnpack", "builtin", "reference")
FRAMES = 6
CLIP = Invocation(state={"state": "next"}, frames=FRAMES)


def expected(path: Path, kernels: Kernels, clip: NDArray[Any]) -> bytes:
    """The outputs of all frames, with the state handed over by hand: first `next`, then `y`."""
    interpreter = opened_interpreter(path, kernels)
    fed, x = interpreter.get_input_details()
    following, y = interpreter.get_output_details()
    real = np.zeros((1, 3), np.float32)
    states, answers = [], []
    for frame in clip:
        raw = real
        if fed["dtype"] == np.int8:
            scale, zero_point = fed["quantization"]
            raw = np.clip(np.round(real / scale + zero_point), -128, 127)
        interpreter.set_tensor(fed["index"], raw.astype(fed["dtype"]))
        interpreter.set_tensor(x["index"], frame)
        interpreter.invoke()
        states.append(interpreter.get_tensor(following["index"]))
        answers.append(interpreter.get_tensor(y["index"]))
        real = states[-1].astype(np.float32)
        if fed["dtype"] == np.int8:
            scale, zero_point = following["quantization"]
            real = (real - zero_point) * np.float32(scale)
    return b"".join(one.tobytes() for one in (*states, *answers))


@pytest.mark.parametrize("kernels", KERNELS)
@pytest.mark.parametrize("dtype", ["FLOAT32", "INT8"])
def test_a_state_is_handed_over_dequantized(
    kernels: Kernels, dtype: str, state_model: Callable[[str], Path]
) -> None:
    path = state_model(dtype)
    raw = np.random.default_rng(3).integers(-90, 90, (5, FRAMES, 1, 3)).astype(np.int8)
    clips = raw if dtype == "INT8" else (raw / 30).astype(np.float32)
    with IsolatedModel.open(path, Options(kernels, warmup=1, invocation=CLIP)) as model:
        assert [(spec.name, spec.shape) for spec in model.inputs] == [("x", (FRAMES, 1, 3))]
        assert [(spec.name, spec.shape) for spec in model.outputs] == [
            ("next", (FRAMES, 1, 3)),
            ("y", (FRAMES, 1, 3)),
        ]
        together = model.run(clips.tobytes(), len(clips))
        alone = [model.run(clip.tobytes(), 1).outputs for clip in clips[::-1]][::-1]
    assert together.failures == ()
    assert together.outputs == b"".join(expected(path, kernels, clip) for clip in clips)
    assert together.outputs == b"".join(alone)


@pytest.mark.parametrize("kernels", KERNELS)
def test_variable_tensors_are_reset_before_each_clip(
    kernels: Kernels, variable_model: Path
) -> None:
    clips = np.random.default_rng(4).normal(size=(3, FRAMES, 1, 1, 2)).astype(np.float32)
    interpreter = opened_interpreter(variable_model, kernels)
    (x,), (y,) = interpreter.get_input_details(), interpreter.get_output_details()
    right = []
    for clip in clips:
        interpreter.reset_all_variables()
        for frame in clip:
            interpreter.set_tensor(x["index"], frame)
            interpreter.invoke()
            right.append(interpreter.get_tensor(y["index"]).tobytes())
    options = Options(kernels, warmup=2, invocation=Invocation(frames=FRAMES))
    with IsolatedModel.open(variable_model, options) as model:
        assert model.run(clips.tobytes(), 3).outputs == b"".join(right)
    assert right[0] != right[1]


def test_no_answer_depends_on_the_inputs_before(variable_model: Path, resource_model: Path) -> None:
    for path, size in ((variable_model, 2), (resource_model, 1)):
        inputs = np.ones((4, size), np.float32)
        with IsolatedModel.open(path, Options("builtin", warmup=1)) as model:
            answers = model.run(inputs.tobytes(), 4)
        assert answers.failures == ()
        assert answers.outputs == inputs.tobytes()


@pytest.mark.parametrize("kernels", [*KERNELS, "micro"])
def test_a_resource_is_kept_within_a_clip(kernels: Kernels, resource_model: Path) -> None:
    clips = np.ones((2, 3, 1), np.float32)
    options = Options(kernels, warmup=1, invocation=Invocation(frames=3))
    with IsolatedModel.open(resource_model, options) as model:
        totals = np.frombuffer(model.run(clips.tobytes(), 2).outputs, np.float32)
    assert totals.tolist() == [1, 2, 3, 1, 2, 3]


@pytest.mark.parametrize("kernels", KERNELS)
@pytest.mark.parametrize("counted", ["graph", "branch", "signature"])
def test_each_clip_starts_at_what_a_resource_was_at_first(
    counted: str, kernels: Kernels, tmp_path: Path
) -> None:
    path = write_counter(tmp_path / "counter.tflite", counted)
    invocation = Invocation(frames=3)
    if counted == "graph":  # its shapes are known once it has run
        invocation = replace(invocation, shapes={"x": (1,)})
    elif counted == "signature":
        invocation = replace(invocation, signature="count")
    with IsolatedModel.open(path, Options(kernels, warmup=1, invocation=invocation)) as model:
        counts = np.frombuffer(model.run(bytes(2 * 3 * 4), 2).outputs, np.float32)
    assert counts.tolist() == [1, 2, 3, 1, 2, 3]


def write_counter(path: Path, counted: str) -> Path:
    """Write x + how often it ran, which the first graph counts, a branch, or a signature."""
    graph = GraphWriter()
    x, y = graph.tensor("x", (1,), "FLOAT32"), graph.tensor("y", (1,), "FLOAT32")
    once = schema.CallOnceOptionsT()
    once.initSubgraphIndex = 1
    if counted == "graph":
        graph.graph.tensors[x].shapeSignature = [-1]
        graph.operator("CALL_ONCE", [], [], once)
        _count(graph, x, y)
    elif counted == "branch":
        yes = graph.tensor("yes", (), "BOOL", data=np.array(True))
        branches = schema.IfOptionsT()
        branches.thenSubgraphIndex = branches.elseSubgraphIndex = 2
        graph.operator("CALL_ONCE", [], [], once)
        graph.operator("IF", [yes, x], [y], branches)
    else:
        graph.operator("NEG", [x], [y], schema.NegOptionsT())
    graph.second()
    handle = _handle(graph)
    zero = graph.tensor("zero", (1,), "FLOAT32", data=np.zeros(1, np.float32))
    graph.operator("ASSIGN_VARIABLE", [handle, zero], [], schema.AssignVariableOptionsT())
    graph.first([], [])
    if counted != "graph":
        graph.second()
        given, made = graph.tensor("v", (1,), "FLOAT32"), graph.tensor("w", (1,), "FLOAT32")
        if counted == "signature":
            graph.operator("CALL_ONCE", [], [], once)
            graph.signature("count", 2, {"x": given}, {"y": made})
        _count(graph, given, made)
        graph.first([given], [made])
    return graph.save(path, [x], [y])


def _handle(graph: GraphWriter) -> int:
    handle, named = graph.tensor("handle", (), "RESOURCE"), schema.VarHandleOptionsT()
    named.sharedName = "count"
    graph.operator("VAR_HANDLE", [], [handle], named)
    return handle


def _count(graph: GraphWriter, x: int, y: int) -> None:
    handle = _handle(graph)
    one = graph.tensor("one", (1,), "FLOAT32", data=np.ones(1, np.float32))
    before, after = (graph.tensor(name, (1,), "FLOAT32") for name in ("before", "after"))
    graph.operator("READ_VARIABLE", [handle], [before], schema.ReadVariableOptionsT())
    graph.operator("ADD", [before, one], [after], schema.AddOptionsT())
    graph.operator("ASSIGN_VARIABLE", [handle, after], [], schema.AssignVariableOptionsT())
    graph.operator("ADD", [after, x], [y], schema.AddOptionsT())


@pytest.mark.parametrize(
    ("state", "words"),
    [
        ({"state": "nxt"}, "no output 'nxt' for a state: its outputs are next (1, 3), y (1, 3)"),
        ({"stat": "next"}, "no input 'stat' for a state: its inputs are state (1, 3), x (1, 3)"),
        ({"state": "next", "x": "y"}, "each of its inputs is fed by a state"),
    ],
)
def test_a_state_that_is_not_there_is_refused(
    state: dict[str, str], words: str, state_model: Callable[[str], Path]
) -> None:
    assert words in refusal(state_model("FLOAT32"), Invocation(state=state, frames=2))


def test_a_state_that_does_not_fit_is_refused(
    two_input_model: Path, cast_model: Callable[[str, str], Path]
) -> None:
    for path, state, words in (
        (two_input_model, {"b": "sums"}, "does not fit the input 'b' of shape (1, 2)"),
        (cast_model("FLOAT32", "INT32"), {"x": "y"}, "is int32, which does not fit"),
    ):
        assert words in refusal(path, Invocation(state=state, frames=2))


QUANTIZED = st.builds(
    lambda scale, zero_point: TensorSpec(
        "t", (1, 256), "int8", float(np.float32(scale)), zero_point
    ),
    st.floats(1e-4, 10),
    st.integers(-128, 127),
)


@given(QUANTIZED, QUANTIZED)
def test_a_state_keeps_its_value_but_for_rounding_and_range(
    made: TensorSpec, takes: TensorSpec
) -> None:
    raw = np.arange(-128, 128, dtype=np.int8).reshape(1, 256)
    real = (raw.astype(np.float64) - made.zero_point) * made.scale
    low, high = ((limit - takes.zero_point) * takes.scale for limit in (-128, 127))
    given_back = (handed_over(raw, made, takes).astype(float) - takes.zero_point) * takes.scale
    step = takes.scale * 0.501 + 1e-4 * np.abs(real)
    assert np.all(np.abs(given_back - np.clip(real, low, high)) <= step)
    assert np.array_equal(handed_over(raw, made, made), raw)
