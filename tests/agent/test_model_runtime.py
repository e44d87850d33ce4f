"""The runtime of each kernel set, imported only when a model is opened; and TFLite Micro's."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import flatbuffers  # type: ignore[import-untyped]
import numpy as np
import pytest
from ai_edge_litert import schema_py_generated as schema
from numpy.typing import NDArray

from dynamic_range import quantize_weights
from edgeflare.conform.graph_file import graph_file
from edgeflare.conform.operator_graph import GraphValue, OperatorGraph
from edgeflare_agent.runtime import Invocation, IsolatedModel, ModelRejected, Options
from edgeflare_agent.runtime.fork_server import MODEL
from edgeflare_agent.runtime.micro import micro_runtime
from edgeflare_agent.runtime.model_runtime import (
    RuntimeInfo,
    RuntimeMissing,
    offered_kernel_sets,
    runtime_with,
)
from edgeflare_protos.kernel_sets import KERNEL_SETS, TFLITE_KERNEL_SETS, Kernels, RuntimePackage
from graph_writer import write_state_model

CHOOSE = """
import sys
from edgeflare_agent.runtime.model_runtime import runtime_with
said = runtime_with("builtin").misfit(b"PK\\3\\4\\0\\0\\0\\0")
assert said and "TFL3" in said, said
print(*sorted({"numpy", "ai_edge_litert", "tflite_runtime"} & set(sys.modules)))
"""


@pytest.mark.parametrize("kernels", [*TFLITE_KERNEL_SETS, "compiled-cpu", "micro"])
def test_the_runtime_of_each_kernel_set_says_which_it_is_and_opens_a_model(
    kernels: Kernels,
) -> None:
    runtime = runtime_with(kernels)
    assert runtime.misfit(MODEL[:8]) is None
    assert isinstance(runtime.load(), RuntimeInfo)
    model = runtime.open(MODEL, Options(kernels))
    assert model.operators == ("ABS",)


def test_a_device_offers_what_is_installed_on_it() -> None:
    offered = offered_kernel_sets()
    assert offered == tuple(name for name in KERNEL_SETS if name in offered)
    assert {*TFLITE_KERNEL_SETS, "compiled-cpu", "gpu", "micro"} <= set(offered)
    # No vendor's libraries are installed, and nothing stands in for an NPU.
    assert "npu" not in offered
    with pytest.raises(ModelRejected, match="finds no NPU: install its vendor's"):
        runtime_with("npu").open(MODEL, Options("npu"))


@pytest.mark.parametrize(
    ("version", "offered"),
    [("2.1.4", False), ("2.1.5", True), ("2.3.0.dev20261001", True), ("10.0", True)],
)
def test_compiled_models_are_offered_from_the_first_version_with_all_their_options(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, version: str, offered: bool
) -> None:
    install(tmp_path, "ai-edge-litert", version)
    monkeypatch.syspath_prepend(str(tmp_path))
    assert ({"compiled-cpu", "gpu"} <= set(offered_kernel_sets())) == offered
    if not offered:
        assert set(offered_kernel_sets()).isdisjoint({"compiled-cpu", "gpu", "npu"})
        with pytest.raises(RuntimeMissing, match=r"pip install 'ai-edge-litert>=2\.1\.5'"):
            runtime_with("gpu").load()


@pytest.mark.parametrize(
    ("vendor", "offered"), [("intel", True), ("qualcomm", False), ("mediatek", False)]
)
def test_an_npu_is_offered_where_all_that_it_needs_is_of_one_vendor(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, vendor: str, offered: bool
) -> None:
    """The runtime's package has compiler plugins of all vendors, and Intel's dispatch library."""
    install(tmp_path, f"ai-edge-litert-sdk-{vendor}", "0.1.0")
    monkeypatch.syspath_prepend(str(tmp_path))
    assert ("npu" in offered_kernel_sets()) == offered


def install(folder: Path, distribution: str, version: str) -> None:
    """Write what is known of a package that is installed; nothing else of it is there."""
    name = distribution.replace("-", "_")
    about = folder / f"{name}-{version}.dist-info" / "METADATA"
    about.parent.mkdir()
    about.write_text(f"Metadata-Version: 2.1\nName: {distribution}\nVersion: {version}\n")


def test_whether_a_file_fits_is_known_without_the_runtime() -> None:
    done = subprocess.run(
        [sys.executable, "-c", CHOOSE], capture_output=True, text=True, check=True
    )
    assert done.stdout == "\n"


EXAMPLES = Path(__file__).parents[2] / "examples"
WORDS = EXAMPLES / "spoken_words" / "compressed.tflite"
FASHION = EXAMPLES / "fashion_lenet4" / "compressed.tflite"


def answers(path: Path, options: Options, count: int = 20) -> tuple[bytes, IsolatedModel]:
    """Return the outputs for some noise."""
    with IsolatedModel.open(path, options) as model:
        noise = np.random.default_rng(0).integers(0, 256, count * model.input_bytes, np.uint8)
        batch = model.run(noise.tobytes(), count)
        assert not batch.failures
        return batch.outputs, model


def float_answers(path: Path, options: Options) -> NDArray[np.float32]:
    with IsolatedModel.open(path, options) as model:
        values = np.random.default_rng(0).normal(size=(4, model.input_bytes // 4))
        batch = model.run(values.astype(np.float32).tobytes(), 4)
        assert not batch.failures
        return np.frombuffer(batch.outputs, np.float32)


@pytest.mark.parametrize("path", [WORDS, FASHION], ids=lambda path: path.parent.name)
def test_it_answers_within_steps_of_the_reference_and_says_what_it_is(path: Path) -> None:
    micro, on_micro = answers(path, Options("micro"))
    assert micro == answers(path, Options("micro"))[0]
    reference, on_reference = answers(path, Options("reference"))
    assert (on_micro.inputs, on_micro.outputs) == (on_reference.inputs, on_reference.outputs)
    assert on_micro.operators == on_reference.operators
    assert on_micro.runtime.startswith("tflite-micro ")
    assert (on_micro.delegated_nodes, on_micro.adapter) == (0, "")
    steps = np.frombuffer(micro, np.int8).astype(int) - np.frombuffer(reference, np.int8)
    assert np.mean(np.abs(steps)) < 1


def test_a_model_opens_in_the_arena_that_was_found_and_in_no_smaller_one() -> None:
    _, model = answers(FASHION, Options("micro"), 1)
    _, fits = answers(FASHION, Options("micro", arena_bytes=model.arena_bytes), 1)
    assert fits.arena_bytes == model.arena_bytes > 0
    with pytest.raises(ModelRejected, match=r"its arena takes [\d,]+ bytes, and .* allows [\d,]+:"):
        IsolatedModel.open(FASHION, Options("micro", arena_bytes=model.arena_bytes - 1))
    assert answers(FASHION, Options("builtin"), 1)[1].arena_bytes == 0


def test_an_arena_that_kernels_die_in_is_too_small_and_no_crash(tmp_path: Path) -> None:
    given, made = GraphValue("float32", (1, 3)), GraphValue("float32", (3,))
    path = written(tmp_path, OperatorGraph.of_operator("SQUEEZE", [given], [made]))
    with IsolatedModel.open(path, Options("micro")) as model:
        assert model.run(np.arange(3, dtype=np.float32).tobytes(), 1).failures == ()
        assert model.arena_bytes % 16 == 0


def test_a_kernel_that_refuses_its_inputs_says_why(tmp_path: Path) -> None:
    value = GraphValue("int32", (3,))
    path = written(tmp_path, OperatorGraph.of_operator("ABS", [value], [value]))
    with IsolatedModel.open(path, Options("micro")) as model:
        (failure,) = model.run(bytes(12), 1).failures
    assert failure.kind == "error"
    assert failure.detail == (
        "TFLite Micro refuses ABS, node 0: Current data type INT32 is not supported."
    )


def written(folder: Path, graph: OperatorGraph) -> Path:
    path = folder / "operator.tflite"
    path.write_bytes(graph_file(graph))
    return path


def test_tensors_without_values_are_refused(tmp_path: Path) -> None:
    value = GraphValue("float32", (0, 3))
    path = written(tmp_path, OperatorGraph.of_operator("ABS", [value], [value]))
    with pytest.raises(ModelRejected, match=r"^TFLite Micro refuses ABS, node 0: a tensor without"):
        IsolatedModel.open(path, Options("micro"))


def test_a_state_is_handed_on_from_frame_to_frame(tmp_path: Path) -> None:
    path = write_state_model(tmp_path / "state.tflite", "FLOAT32")
    clip = Invocation(state={"state": "next"}, frames=3)
    kernels: tuple[Kernels, ...] = ("micro", "builtin")
    micro, cpu = (float_answers(path, Options(one, invocation=clip)) for one in kernels)
    np.testing.assert_allclose(micro, cpu, atol=1e-5)


def test_operators_that_it_lacks_are_named(tmp_path: Path) -> None:
    path = renamed(tmp_path / "other.tflite", schema.BuiltinOperator.ATAN2)
    with pytest.raises(ModelRejected, match=r"^TFLite Micro has no operator ATAN2$"):
        IsolatedModel.open(path, Options("micro"))


def renamed(path: Path, builtin: int) -> Path:
    """Write the one operator of a small model as another one, with two inputs."""
    model = schema.ModelT.InitFromPackedBuf(WORDS.read_bytes())
    model.operatorCodes[0].builtinCode = builtin
    model.operatorCodes[0].deprecatedBuiltinCode = min(builtin, 127)
    model.operatorCodes[0].version = 1
    builder = flatbuffers.Builder()
    builder.Finish(model.Pack(builder), b"TFL3")
    path.write_bytes(bytes(builder.Output()))
    return path


def test_an_operator_that_refuses_its_tensors_is_named_with_the_reason(tmp_path: Path) -> None:
    path = tmp_path / "hybrid.tflite"
    path.write_bytes(quantize_weights((EXAMPLES / "fashion_lenet4/original.tflite").read_bytes()))
    with pytest.raises(ModelRejected, match=r"^TFLite Micro refuses \w+, node \d+: .*[Hh]ybrid"):
        IsolatedModel.open(path, Options("micro"))


def test_shapes_other_than_those_of_the_file_are_refused() -> None:
    with IsolatedModel.open(WORDS, Options("builtin")) as model:
        (spec,) = model.inputs
    shapes = {spec.name: (2, *spec.shape[1:])}
    with pytest.raises(ModelRejected):
        IsolatedModel.open(WORDS, Options("micro", invocation=Invocation(shapes=shapes)))


def test_tensors_between_operators_are_not_kept() -> None:
    with pytest.raises(ModelRejected, match="tensors between operators cannot be read"):
        IsolatedModel.open(WORDS, Options("micro", capture=True))


def test_where_it_is_not_installed_the_line_says_what_to_type(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    runtime = micro_runtime.RUNTIME
    lacking = RuntimePackage("tflite-micro", "no_such_package", "micro")
    monkeypatch.setattr(micro_runtime, "_PACKAGE", lacking)
    assert not runtime.offers("micro")
    with pytest.raises(RuntimeMissing, match=r"pip install 'edgeflare\[micro\]'"):
        runtime.load()
