"""A planted fault changes the answers of the models that its condition holds of, and no others."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pytest

import kernel_faults
from edgeflare.conform.graphs.graph_file import graph_file
from edgeflare.conform.graphs.operator_graph import (
    GraphValue,
    OperatorGraph,
    Values,
    side_by_side,
)
from edgeflare.conform.operators.known_operators import known_operators
from edgeflare.conform.specification.operand_values import operand_values
from edgeflare.conform.specification.settings import Setting
from edgeflare.core.tensor_rows import pack_rows, unpack_rows
from edgeflare.models.tflite import open_tflite
from kernel_fault_catalogue import KernelFault, drawn_faults, fresh_configurations, settings_of
from kernel_fault_kinds import GROUPS

pytestmark = pytest.mark.slow

ROWS = 3
QUIET = ("crash on size zero", "hang", "NaN swallowed")
"""Groups whose faults change no answer to usual numbers."""


def planted(folder: Path, faults: Sequence[KernelFault]) -> list[str]:
    """Return the command that starts a worker with faults."""
    spec = folder / "spec.json"
    spec.write_text(json.dumps([asdict(one) for one in faults]))
    return [sys.executable, kernel_faults.__file__, str(spec)]


def answers(
    folder: Path, graph: OperatorGraph, operands: Sequence[Values], *faults: KernelFault
) -> tuple[Values, ...]:
    """Run a graph in a worker with faults, or with none: (rows, *shape) for each output."""
    model = folder / "pack.tflite"
    model.write_bytes(graph_file(graph))
    loaded = open_tflite(model, "builtin", launcher=planted(folder, faults) if faults else None)
    try:
        signature = loaded.signature
        batch = loaded.submit(pack_rows(signature.inputs, operands)).result()
        assert not batch.failures
        return unpack_rows(signature.outputs, batch.outputs)
    finally:
        loaded.close()


def models(fault: KernelFault) -> Iterator[tuple[OperatorGraph, Mapping[str, Setting]]]:
    """Yield models with values in all tensors, and their settings."""
    rng = np.random.default_rng(5)
    specification = known_operators()[fault.operator]
    for one in fresh_configurations(specification, fault.type, rng, 40):
        graph = specification.build(fault.type, one, rng)
        if graph.inputs and all(value.size for value in graph.values):
            yield graph, settings_of(specification, fault.type, one)


def test_faults_change_the_models_of_their_conditions_alone(tmp_path: Path) -> None:
    """One fault of each group is planted; where two could be in one model, it has the first."""
    faults = [next(drawn_faults(3, [group])) for group in GROUPS if group not in QUIET]
    rng = np.random.default_rng(7)
    graphs, operands, holding = [], [], []
    for fault in faults:
        specification = known_operators()[fault.operator]
        rivals = [one for one in faults if (one.operator, one.type) == fault_cell(fault)]
        for graph, settings in models(fault):
            graphs.append(graph)
            rows = [specification.operands(graph, "uniform", rng) for _ in range(ROWS)]
            operands += [np.stack(one) for one in zip(*rows, strict=True)]
            holding.append([one for one in rivals if one.holds(settings)][:1])
    pack = side_by_side(graphs)
    sound = answers(tmp_path, pack, operands)
    faulty = answers(tmp_path, pack, operands, *faults)
    differ = iter([a.tobytes() != b.tobytes() for a, b in zip(sound, faulty, strict=True)])
    changed = [max([next(differ) for _ in one.outputs]) for one in graphs]
    for one, held in zip(changed, holding, strict=True):
        assert held or not one
    for fault in faults:
        shown = [one for one, held in zip(changed, holding, strict=True) if held == [fault]]
        assert np.mean(shown) > 0.1, fault


def fault_cell(fault: KernelFault) -> tuple[str, str]:
    return fault.operator, fault.type


def test_what_reads_a_faulty_result_reads_it_as_it_is(tmp_path: Path) -> None:
    value = GraphValue("float32", (9,))
    first = OperatorGraph.of_operator("RELU", [value], [value])
    second = OperatorGraph.of_operator("ABS", [value], [value])
    nodes = (first.nodes[0], second.nodes[0].__class__("ABS", (1,), (2,)))
    joined = OperatorGraph((value,) * 3, nodes, (0,), (2,))
    fault = KernelFault("tail", "4", "RELU", "float32", ("size % 4 ≠ 0",))
    given = operand_values(GraphValue("float32", (2, 9)), "uniform", np.random.default_rng(0))
    given[:, 8] = 5
    (sound,) = answers(tmp_path, joined, [given])
    (faulty,) = answers(tmp_path, joined, [given], fault)
    np.testing.assert_array_equal(sound[:, :8], faulty[:, :8])
    np.testing.assert_array_equal(sound[:, 8], [5, 5])
    np.testing.assert_array_equal(faulty[:, 8], [0, 0])


def test_the_answer_to_the_row_before_is_stale(tmp_path: Path) -> None:
    value = GraphValue("float32", (3,))
    graph = OperatorGraph.of_operator("RELU", [value], [value])
    fault = KernelFault("stale output", "of the row before", "RELU", "float32", ())
    given = np.arange(9, dtype=np.float32).reshape(3, 3)
    (faulty,) = answers(tmp_path, graph, [given], fault)
    np.testing.assert_array_equal(faulty, given[[0, 0, 1]])


def test_a_kernel_that_crashes_on_size_zero(tmp_path: Path) -> None:
    model = tmp_path / "model.tflite"
    empty, full = GraphValue("float32", (0, 3)), GraphValue("float32", (2, 3))
    graphs = [OperatorGraph.of_operator("RELU", [one], [one]) for one in (empty, full)]
    model.write_bytes(graph_file(side_by_side(graphs)))
    fault = KernelFault("crash on size zero", "SIGSEGV", "RELU", "float32", ("size = 0",))
    loaded = open_tflite(model, "builtin", launcher=planted(tmp_path, [fault]))
    try:
        signature = loaded.signature
        operands = [np.zeros((1, *one.shape), np.float32) for one in signature.inputs]
        batch = loaded.submit(pack_rows(signature.inputs, operands)).result()
        assert batch.failures == {0: "crash"}
    finally:
        loaded.close()


def test_faults_are_drawn_by_a_seed_alone() -> None:
    some = ["truncation", "wrong axis", "tail"]
    drawn = list(drawn_faults(11, some))
    assert drawn == list(drawn_faults(11, some))
    assert [one.group for one in drawn] == [one for one in some for _ in range(2)]
    assert drawn != list(drawn_faults(12, some))
