"""Rows that a detector's own post-processing leaves unwritten count for nothing."""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from ai_edge_litert import schema_py_generated as schema

from edgeflare.core.tensor_rows import pack_rows, unpack_rows
from edgeflare.models.detection_rows import (
    batch_with_unused_rows_zeroed,
    with_unused_rows_zeroed,
)
from edgeflare.models.tflite import open_tflite
from edgeflare.models.tflite_graph import Graph
from graph_writer import GraphWriter
from public_cases import CASES

COMPRESSED = CASES / "detection_postprocess" / "compressed.tflite"


@pytest.mark.slow
def test_outputs_are_equal_whatever_was_in_the_memory_of_unused_rows() -> None:
    with np.load(COMPRESSED.parent / "seeds.npz") as seeds:
        images = seeds["images"][:12]
    with closing(open_tflite(COMPRESSED, "builtin")) as model:
        given, outputs, makers = model.signature.input, model.signature.outputs, model.makers()
        real = images.reshape(12, *given.shape[1:]) / (255 * given.scale) + given.zero_point
        batch = model.submit(np.round(real).clip(-128, 127).astype(given.dtype)).result()
    assert not batch.failures
    at = {one.at: place for place, one in enumerate(makers) if one is not None}
    arrays = list(unpack_rows(outputs, batch.outputs))
    counts = arrays[at[3]].astype(int).ravel()
    assert len(set(counts)) > 1
    other = [array.copy() for array in arrays]
    for place in (at[0], at[1], at[2]):
        for row, count in enumerate(counts):
            other[place][row, 0, count:] = np.nan
    kept, again = (
        batch_with_unused_rows_zeroed(
            outputs, makers, replace(batch, outputs=pack_rows(outputs, one))
        )
        for one in (arrays, other)
    )
    assert kept.outputs.tobytes() == again.outputs.tobytes()
    found = unpack_rows(outputs, kept.outputs)[at[2]]
    for row, count in enumerate(counts):
        assert found[row, 0, :count].tolist() == arrays[at[2]][row, 0, :count].tolist()
        assert not found[row, 0, count:].any()


@pytest.mark.parametrize("count", [0.0, 2.0, 3.0, np.nan])
def test_rows_are_told_behind_a_reshape_too(count: float, tmp_path: Path) -> None:
    graph = GraphWriter()
    shapes = {"x": (1, 3, 4), "boxes": (1, 3, 4), "classes": (1, 3), "scores": (1, 3), "n": (1,)}
    x, *made = (graph.tensor(name, shape, "FLOAT32") for name, shape in shapes.items())
    flat = graph.tensor("flat", (12,), "FLOAT32")
    graph.operator("CUSTOM", [x], made)
    graph.model.operatorCodes[0].customCode = "TFLite_Detection_PostProcess"
    graph.operator("RESHAPE", [made[0]], [flat], schema.ReshapeOptionsT())
    known = Graph(graph.save(tmp_path / "post.tflite", [x], [flat, *made[1:]]).read_bytes())
    values = {flat: np.ones(12), made[2]: np.ones((1, 3)), made[3]: np.array([count])}
    used = 0 if np.isnan(count) else int(count)
    found = with_unused_rows_zeroed(known, {x: np.ones((1, 3, 4)), **values})
    assert found[x].all()
    assert found[flat].tolist() == [1] * 4 * used + [0] * 4 * (3 - used)
    assert found[made[2]].tolist() == [[1] * used + [0] * (3 - used)]
