"""Numbers that are handed on as they are: a state, and by an operator that copies them."""

import numpy as np
import pytest
from ai_edge_litert import schema_py_generated as schema

from edgeflare.check.scale_handover import scale_faults
from edgeflare.models.tflite_graph import Graph
from graph_writer import GraphWriter

GOING_IN = (0.02, -1)
ROUNDED = float(np.nextafter(np.float32(0.02), np.float32(1)))
FAR = (0.034, -1)


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
        ((0.02, 0), (0.02, 0), ["state scale"]),
        (FAR, FAR, ["raw state"]),
        (FAR, GOING_IN, ["copied scale"]),
    ],
)
def test_what_reads_numbers_otherwise_is_a_fault(
    computed: tuple[float, int], made: tuple[float, int], expected: list[str]
) -> None:
    assert kinds(computed, made) == expected
