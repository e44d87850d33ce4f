"""The same inputs on more threads, and as items of one batch."""

from __future__ import annotations

import sys
from pathlib import Path

import msgspec
import numpy as np
import pytest
from ai_edge_litert import schema_py_generated as schema

import fault_injection
from brief_commands import brief_checks
from called_commands import EXAMPLES, call_here
from edgeflare.devices.device import connect
from edgeflare.devices.profile_lookup import find_profiles
from edgeflare.models.evaluator import ONCE, Evaluator
from edgeflare.models.tflite_graph import Graph
from edgeflare.release.check_document import load_check
from edgeflare.release.figures.device_figures import InvocationVariant
from edgeflare.release.invocation_variants import ReadOutputs, device_variants
from fault_injection import Planted
from faulty_agent import faulty_agent
from graph_writer import GraphWriter

EXAMPLE = EXAMPLES / "fashion_lenet4"


def sum_with_reversed(path: Path) -> Path:
    """Write y = x + x with its items in reverse order, which is 2 x of one item alone."""
    writer = GraphWriter()
    x, reverse, y = (writer.tensor(name, (1, 3), "FLOAT32") for name in ("x", "reverse", "y"))
    for tensor in writer.graph.tensors:
        tensor.shapeSignature = [-1, 3]
    axis = writer.constant("axis", np.array([0], np.int32))
    writer.operator("REVERSE_V2", [x, axis], [reverse], schema.ReverseV2OptionsT())
    writer.operator("ADD", [x, reverse], [y], schema.AddOptionsT())
    return writer.save(path, [x], [y])


def variants(path: Path, device: str, rows: np.ndarray) -> tuple[InvocationVariant, ...]:
    def ask(model: Evaluator) -> ReadOutputs:
        return ReadOutputs(model.signature.outputs, model.submit(rows).result())

    with connect(find_profiles([device])[0]) as connected:
        return device_variants(connected, path, ONCE, ask, lambda: False)


def test_items_that_depend_on_their_neighbours_are_seen(tmp_path: Path) -> None:
    rows = np.random.default_rng(0).normal(size=(6, 3)).astype(np.float32)
    threads, batch = variants(sum_with_reversed(tmp_path / "m.tflite"), "emulated-builtin", rows)
    assert (threads.kind, threads.inputs, threads.others, threads.snr_db) == (
        "threads",
        6,
        0,
        None,
    )
    assert (batch.kind, batch.size, batch.others, batch.changed) == ("batch", 4, 6, None)
    assert batch.snr_db is not None
    assert batch.snr_db < 10


def test_items_that_do_not_are_the_same_in_batches() -> None:
    rows = np.random.default_rng(0).integers(-128, 128, (6, 28, 28, 1)).astype(np.int8)
    _, batch = variants(EXAMPLE / "compressed.tflite", "emulated-builtin", rows)
    assert (batch.kind, batch.inputs, batch.others) == ("batch", 6, 0)


def test_kernels_without_threads_and_files_without_batches_are_not_asked() -> None:
    rows = np.zeros((2, 128, 128, 3), np.int8)
    path = EXAMPLES / "face_detection" / "compressed.tflite"
    assert variants(path, "emulated-micro", rows) == ()


@pytest.mark.slow
def test_a_device_that_decides_otherwise_on_more_threads_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    graph = Graph((EXAMPLE / "compressed.tflite").read_bytes())
    last = [one for one in graph.layers if one.name == "FULLY_CONNECTED"][-1]
    layer = graph.tensors[last.outputs[0]].name
    planted = Planted("weights negated", layer, threads=2)
    (tmp_path / "spec.json").write_bytes(msgspec.json.encode(planted))
    launcher = [sys.executable, fault_injection.__file__, str(tmp_path / "spec.json")]
    monkeypatch.chdir(tmp_path)
    with faulty_agent(tmp_path, launcher) as device, brief_checks():
        given = ("--device", device, "--trust", "--limit", "40", "--no-near", "--out", "out")
        said = call_here("check", EXAMPLE, *given)
    assert said.code == 1, said.err
    cause = load_check(tmp_path / "out" / "check.json").cause
    assert cause is not None
    assert cause.rule == "kernels"
    assert "of 16 inputs otherwise on 2 threads" in cause.sentence
