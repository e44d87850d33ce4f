"""What the files of a pair say without being run."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from ai_edge_litert import schema_py_generated as schema

from called_commands import EXAMPLES
from edgeflare.models.pair import load_pair
from edgeflare.models.pair_file import Settings
from edgeflare.models.tflite_graph import Graph
from edgeflare.release.file_faults import file_figures, scale_faults
from graph_writer import GraphWriter

EXAMPLE = EXAMPLES / "fashion_lenet4"
ORIGINAL, COMPRESSED = EXAMPLE / "original.tflite", EXAMPLE / "compressed.tflite"

GOING_IN = (0.02, -1)
ROUNDED = float(np.nextafter(np.float32(0.02), np.float32(1)))
FAR = (0.034, -1)


@pytest.mark.parametrize(
    ("original", "compressed", "said"),
    [
        (ORIGINAL, COMPRESSED, ""),
        (ORIGINAL, ORIGINAL, "both files are equal"),
        (COMPRESSED, ORIGINAL, "are they swapped?"),
    ],
)
def test_the_same_file_twice_and_swapped_ones_are_said(
    original: Path, compressed: Path, said: str
) -> None:
    given = Settings(original=str(original), compressed=str(compressed))
    found = file_figures(load_pair(EXAMPLE, given))
    assert found.faults == ()
    assert (found.original_bytes, found.compressed_bytes) == (
        original.stat().st_size,
        compressed.stat().st_size,
    )
    assert said in " ".join(found.notes)
    assert bool(found.notes) is bool(said)


def kinds(computed: tuple[float, int], made: tuple[float, int]) -> list[str]:
    """Return the kinds of faults of next = reshape(x + state), of which both are quantized so."""
    graph = GraphWriter()
    x, state = (graph.tensor(name, (1, 4), "INT8", GOING_IN) for name in ("x", "state"))
    total = graph.tensor("sum", (1, 4), "INT8", computed)
    following = graph.tensor("next", (4,), "INT8", made)
    shape = graph.constant("shape", np.array([4], np.int32))
    graph.operator("ADD", [x, state], [total], schema.AddOptionsT(), 2)
    graph.operator("RESHAPE", [total, shape], [following], schema.ReshapeOptionsT())
    content = graph.content([x, state], [following])
    return [one.kind for one in scale_faults(Graph(content), {"state": "next"})]


@pytest.mark.parametrize(
    ("computed", "made", "expected"),
    [
        ((ROUNDED, -1), (ROUNDED, -1), []),  # of an exporter that computed the same scale twice
        ((0.02, 0), (0.02, 0), ["state-scale"]),
        (FAR, FAR, ["raw-state"]),
        (FAR, GOING_IN, ["copied-scale"]),
    ],
)
def test_what_reads_numbers_otherwise_is_a_fault(
    computed: tuple[float, int], made: tuple[float, int], expected: list[str]
) -> None:
    assert kinds(computed, made) == expected


def multiplying(path: Path, factor: float, dtype: str) -> Path:
    """Write a model of y = x · factor, which is stored in a type."""
    graph = GraphWriter()
    x, y = (graph.tensor(name, (1, 4), "FLOAT32") for name in ("x", "y"))
    constant = graph.constant("factor", np.full(4, factor, dtype))
    if dtype == "float16":
        stored, constant = constant, graph.tensor("wide", (4,), "FLOAT32")
        graph.operator("DEQUANTIZE", [stored], [constant], version=3)
    graph.operator("MUL", [x, constant], [y], schema.MulOptionsT())
    return graph.save(path, [x], [y])


@pytest.mark.parametrize(("factor", "expected"), [(1e-9, ["flushed-constant"]), (0.5, [])])
def test_zeros_are_the_fault_of_half_precision_where_it_cannot_hold_the_values(
    factor: float, expected: list[str], tmp_path: Path
) -> None:
    original = multiplying(tmp_path / "f.tflite", factor, "float32")
    compressed = multiplying(tmp_path / "g.tflite", 0.0, "float16")
    given = Settings(original=str(original), compressed=str(compressed))
    found = file_figures(load_pair(EXAMPLE, given))
    assert [fault.kind for fault in found.faults] == expected
