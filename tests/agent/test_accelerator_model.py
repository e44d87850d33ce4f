"""Models on accelerators: what they answer, what they count, and what they refuse."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Any

import flatbuffers  # type: ignore[import-untyped]
import numpy as np
import pytest
from ai_edge_litert import schema_py_generated as schema
from numpy.typing import NDArray

from edgeflare.conform.graph_file import graph_file
from edgeflare.conform.operator_graph import GraphValue, OperatorGraph, Quantization
from edgeflare_agent.runtime import (
    Acceleration,
    Invocation,
    IsolatedModel,
    ModelRejected,
    Options,
    WorkerLost,
)
from edgeflare_agent.runtime.compiled import accelerator_model
from edgeflare_agent.runtime.compiled.accelerator_model import AcceleratedModel, AcceleratorLost
from edgeflare_protos.kernel_sets import Kernels
from graph_writer import GraphWriter, write_state_model

EXAMPLES = Path(__file__).parents[2] / "examples"
WORDS = EXAMPLES / "spoken_words" / "compressed.tflite"
FACES = EXAMPLES / "face_detection" / "compressed.tflite"
SIZED_WHILE_RUNNING = EXAMPLES / "fashion_lenet4" / "compressed.tflite"


def answers(
    path: Path, options: Options, count: int = 6, seed: int = 0
) -> tuple[NDArray[Any], IsolatedModel]:
    """Return the outputs for some noise, one row for each input."""
    with IsolatedModel.open(path, options) as model:
        noise = np.random.default_rng(seed).integers(0, 256, count * model.input_bytes, np.uint8)
        batch = model.run(noise.tobytes(), count)
        assert not batch.failures
        dtype = np.dtype(model.outputs[0].dtype)
        return np.frombuffer(batch.outputs, dtype).reshape(count, -1), model


@pytest.mark.gpu
@pytest.mark.usefixtures("gpu")
@pytest.mark.parametrize("path", [WORDS, FACES], ids=lambda path: path.parent.name)
def test_the_gpu_runs_the_whole_model_and_says_on_what(path: Path) -> None:
    gpu, on_gpu = answers(path, Options("gpu", acceleration=Acceleration(float32=True)))
    cpu, on_cpu = answers(path, Options("builtin"))
    assert (on_gpu.inputs, on_gpu.outputs) == (on_cpu.inputs, on_cpu.outputs)
    assert on_gpu.operators == on_cpu.operators
    assert on_gpu.delegated_nodes == on_gpu.total_nodes == len(on_cpu.operators)
    assert "SwiftShader" in on_gpu.adapter
    assert on_cpu.adapter == ""
    # A few steps apart where they should be, and not the same kernels at all.
    assert np.mean(np.abs(gpu.astype(int) - cpu)) < 8


@pytest.mark.gpu
@pytest.mark.usefixtures("gpu")
def test_its_inputs_and_outputs_are_in_the_order_of_the_graph(tmp_path: Path) -> None:
    path = write_state_model(tmp_path / "state.tflite", "FLOAT32")
    gpu, on_gpu = answers_of_floats(path, Options("gpu"))
    cpu, on_cpu = answers_of_floats(path, Options("builtin"))
    assert [spec.name for spec in on_gpu.inputs] == [spec.name for spec in on_cpu.inputs]
    np.testing.assert_allclose(gpu, cpu, atol=1e-5)


@pytest.mark.gpu
@pytest.mark.usefixtures("gpu")
def test_it_takes_values_that_the_python_interface_of_litert_does_not(tmp_path: Path) -> None:
    value = GraphValue("int16", (2, 8), Quantization((0.01,), 0))
    path = written(tmp_path, OperatorGraph.of_operator("ABS", [value], [value]))
    given = np.arange(-8, 8, dtype=np.int16)
    with IsolatedModel.open(path, Options("gpu")) as model:
        batch = model.run(given.tobytes(), 1)
    assert np.frombuffer(batch.outputs, np.int16).tolist() == np.abs(given).tolist()


@pytest.mark.gpu
@pytest.mark.usefixtures("gpu")
def test_commands_that_are_invalid_are_no_answer_of_zeros(tmp_path: Path) -> None:
    value = GraphValue("int32", (2, 4))
    clamped = {"fusedActivationFunction": "RELU6"}
    path = written(tmp_path, OperatorGraph.of_operator("ADD", [value] * 2, [value], clamped))
    with pytest.raises(
        ModelRejected, match="invalid commands, and would answer zeros: unresolved value"
    ):
        IsolatedModel.open(path, Options("gpu"))


def written(folder: Path, graph: OperatorGraph) -> Path:
    path = folder / "operator.tflite"
    path.write_bytes(graph_file(graph))
    return path


@pytest.mark.gpu
@pytest.mark.usefixtures("gpu")
def test_a_model_whose_weights_are_gone_costs_its_worker_and_nothing_more(tmp_path: Path) -> None:
    """Kernels of the CPU say that the tensor lacks data; the accelerator's compiler dies of it."""
    model = schema.ModelT.InitFromPackedBuf(FACES.with_name("original.tflite").read_bytes())
    model.buffers[1].data = None
    builder = flatbuffers.Builder(1024)
    builder.Finish(model.Pack(builder), file_identifier=b"TFL3")
    path = tmp_path / "theirs.tflite"
    path.write_bytes(bytes(builder.Output()))
    with IsolatedModel.open(path, Options("gpu")) as opened:
        for _ in range(2):
            (failure,) = opened.run(bytes(opened.input_bytes), 1).failures
            assert failure.kind in ("crash", "error")
    assert answers(WORDS, Options("gpu"), 1)[0].size


def answers_of_floats(path: Path, options: Options) -> tuple[NDArray[Any], IsolatedModel]:
    with IsolatedModel.open(path, options) as model:
        values = np.random.default_rng(0).normal(size=(4, model.input_bytes // 4))
        batch = model.run(values.astype(np.float32).tobytes(), 4)
        return np.frombuffer(batch.outputs, np.float32), model


@pytest.mark.gpu
@pytest.mark.usefixtures("gpu")
def test_a_state_is_handed_on_from_frame_to_frame(tmp_path: Path) -> None:
    path = write_state_model(tmp_path / "state.tflite", "FLOAT32")
    clip = Invocation(state={"state": "next"}, frames=3)
    kernels: tuple[Kernels, ...] = ("gpu", "builtin")
    gpu, cpu = (answers_of_floats(path, Options(one, invocation=clip))[0] for one in kernels)
    np.testing.assert_allclose(gpu, cpu, atol=1e-5)


@pytest.mark.gpu
@pytest.mark.usefixtures("gpu")
def test_nodes_that_it_does_not_take_run_on_the_cpu_only_if_asked(tmp_path: Path) -> None:
    path = in_part(tmp_path / "part.tflite")
    with pytest.raises(ModelRejected, match=r"takes \d of \d nodes, and not .*set fallback = true"):
        IsolatedModel.open(path, Options("gpu"))
    partly = Options("gpu", acceleration=Acceleration(fallback=True))
    gpu, on_gpu = answers_of_floats(path, partly)
    cpu, _ = answers_of_floats(path, Options("builtin"))
    assert 0 < on_gpu.delegated_nodes < on_gpu.total_nodes
    np.testing.assert_allclose(gpu, cpu, atol=1e-5)


def in_part(path: Path) -> Path:
    """Write x → LOGISTIC → STRIDED_SLICE, which drops an axis → RESHAPE → LOGISTIC, in float."""
    graph = GraphWriter()
    x = graph.tensor("x", (1, 4), "FLOAT32")
    first = graph.tensor("first", (1, 4), "FLOAT32")
    begin, end, step = (
        graph.tensor(name, (2,), "INT32", None, np.asarray(ends, np.int32))
        for name, ends in (("begin", (0, 0)), ("end", (1, 4)), ("step", (1, 1)))
    )
    row = graph.tensor("row", (4,), "FLOAT32")
    shape = graph.tensor("shape", (2,), "INT32", None, np.asarray((1, 4), np.int32))
    back = graph.tensor("back", (1, 4), "FLOAT32")
    y = graph.tensor("y", (1, 4), "FLOAT32")
    slicing = schema.StridedSliceOptionsT()
    slicing.shrinkAxisMask = 1
    graph.operator("LOGISTIC", [x], [first])
    graph.operator("STRIDED_SLICE", [first, begin, end, step], [row], slicing)
    graph.operator("RESHAPE", [row, shape], [back], schema.ReshapeOptionsT())
    graph.operator("LOGISTIC", [back], [y])
    return graph.save(path, [x], [y])


@pytest.mark.skipif(find_spec("openvino") is not None, reason="there may be an NPU")
def test_no_nodes_are_counted_on_an_npu_that_is_not_there(tmp_path: Path) -> None:
    path = write_state_model(tmp_path / "state.tflite", "FLOAT32")
    with pytest.raises(ModelRejected, match="finds no NPU"):
        IsolatedModel.open(path, Options("npu"))
    allowed = Options("npu", acceleration=Acceleration(fallback=True))
    npu, on_npu = answers_of_floats(path, allowed)
    cpu, on_cpu = answers_of_floats(path, Options("compiled-cpu"))
    assert npu.tolist() == cpu.tolist()
    # XNNPACK takes them all, which the runtime counts likewise.
    assert (on_npu.delegated_nodes, on_cpu.delegated_nodes) == (0, on_cpu.total_nodes)


@pytest.mark.gpu
@pytest.mark.usefixtures("gpu")
def test_what_it_refuses_is_said_in_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "sized while it runs" in refusal(SIZED_WHILE_RUNNING, Options("gpu"))
    assert "cannot be read from the GPU" in refusal(WORDS, Options("gpu", capture=True))
    for name in ("VK_DRIVER_FILES", "VK_ICD_FILENAMES"):
        monkeypatch.setenv(name, "/nowhere/at_all.json")
    assert "finds no driver that it can use" in refusal(WORDS, Options("gpu"))


def refusal(path: Path, options: Options) -> str:
    with pytest.raises(ModelRejected) as rejected:
        IsolatedModel.open(path, options)
    said = str(rejected.value)
    assert "\n" not in said
    return said


@pytest.mark.gpu
@pytest.mark.usefixtures("gpu")
def test_a_gpu_that_is_lost_is_trouble_of_the_device(monkeypatch: pytest.MonkeyPatch) -> None:
    with IsolatedModel.open(WORDS, Options("gpu")) as model:
        noise = bytes(model.input_bytes)
        answered = model.run(noise, 1)
        pid = model.worker_pid
        assert pid is not None
        # Without its driver, no new worker can open the model.
        for name in ("VK_DRIVER_FILES", "VK_ICD_FILENAMES"):
            monkeypatch.setenv(name, "/nowhere/at_all.json")
        model._bury()
        with pytest.raises(WorkerLost, match="does not load any more: the GPU accelerator"):
            model.run(noise, 1)
    assert not answered.failures


class _Failing:
    """A buffer, and a compiled model, of an accelerator that is gone."""

    def write(self, array: NDArray[Any]) -> None: ...

    def run_by_index(self, *_: object) -> None:
        raise RuntimeError("VK_ERROR_DEVICE_LOST\nat vkQueueSubmit")


def test_an_error_of_the_accelerator_is_no_answer_to_an_input() -> None:
    model = AcceleratedModel(WORDS.read_bytes(), Options("compiled-cpu"))
    model._compiled, model._given = _Failing(), [_Failing()]
    with pytest.raises(AcceleratorLost, match="VK_ERROR_DEVICE_LOST at vkQueueSubmit"):
        model.step([np.zeros(1, np.int8)], [])


def test_shapes_that_it_refuses_are_a_refusal_of_the_model(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise ValueError("New shape is not\ncompatible with current shape.")

    monkeypatch.setattr(accelerator_model, "_compiled", refuse)
    with pytest.raises(ModelRejected, match="refuses it: New shape is not compatible"):
        AcceleratedModel(WORDS.read_bytes(), Options("compiled-cpu"))


def test_the_shapes_are_those_of_the_signature_that_is_named(tmp_path: Path) -> None:
    graph = GraphWriter()
    x, y = (graph.tensor(letter, (1, 3), "FLOAT32") for letter in "xy")
    for one in (x, y):
        graph.graph.tensors[one].shapeSignature = [-1, 3]
    made = [graph.tensor(letter, (1, 3), "FLOAT32") for letter in "uv"]
    graph.operator("LOGISTIC", [x], [made[0]])
    graph.operator("TANH", [y], [made[1]])
    outputs = {"u": made[0], "v": made[1]}
    graph.signature("first", 0, {"x": x, "y": y}, outputs)
    graph.signature("second", 0, {"y": y, "x": x}, outputs)
    path = graph.save(tmp_path / "two.tflite", [x, y], made)
    invocation = Invocation("second", {"x": (2, 3), "y": (4, 3)})
    given = np.linspace(-1, 1, 18, dtype=np.float32)
    found = {}
    kernels: tuple[Kernels, ...] = ("compiled-cpu", "xnnpack")
    for name in kernels:
        with IsolatedModel.open(path, Options(name, invocation=invocation)) as model:
            found[name] = model.run(given.tobytes(), 1).outputs, model.inputs, model.outputs
    assert found["compiled-cpu"] == found["xnnpack"]


@pytest.mark.parametrize("kernels", ["compiled-cpu"])
@pytest.mark.parametrize("path", [WORDS, SIZED_WHILE_RUNNING], ids=lambda path: path.parent.name)
def test_the_cpu_of_a_compiled_model_is_xnnpack(path: Path, kernels: Kernels) -> None:
    compiled, on_it = answers(path, Options(kernels))
    interpreted, _ = answers(path, Options("xnnpack"))
    assert compiled.tolist() == interpreted.tolist()
    assert on_it.adapter == ""


def test_variables_are_reset_by_compiling_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    compiled = []
    before = accelerator_model._compiled

    def counted(*given: Any) -> Any:
        compiled.append(given)
        return before(*given)

    monkeypatch.setattr(accelerator_model, "_compiled", counted)
    model = AcceleratedModel(WORDS.read_bytes(), Options("compiled-cpu"))
    model.reset()
    assert len(compiled) == 1
    model._reloads = True
    model.reset()
    assert len(compiled) == 2
