"""A planted fault of a kernel changes the models that its condition holds of, and no others."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pytest

import kernel_faults
from edgeflare.conform.graph_file import graph_file
from edgeflare.conform.operator_graph import OperatorGraph, Values, side_by_side
from edgeflare.conform.operators.operator_catalogue import known_operators
from edgeflare.conform.specification.parameter import Setting
from edgeflare.core.tensor import pack_rows, unpack_rows
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
